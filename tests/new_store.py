"""A new store in a file: a copy, for to make one takes ten times as long as most tests."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from spinney.stores.contract import Store
from spinney.stores.sql import open_store

Fill = Callable[[Store], object]


def new_store(file: Path, fill: Fill | None = None) -> str:
    """Its URL. All of one process are the same store in what is drawn at random when one is made.

    ``fill``: puts into it what it shall hold; called once, for all that are made with the same.
    """
    shutil.copyfile(_made(fill), file)
    file.chmod(0o600)
    return f"sqlite:///{file}"


@cache
def _made(fill: Fill | None) -> Path:
    folder = tempfile.TemporaryDirectory(prefix="spinney-new-store-")
    atexit.register(folder.cleanup)
    file = Path(folder.name) / "spinney.db"
    store = open_store(f"sqlite:///{file}" if fill is None else new_store(file))
    if fill is None:
        store.create()
    else:
        fill(store)
    store.close()
    return file
