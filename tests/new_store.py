"""A new store in a file: a copy, for to make one takes ten times as long as most tests."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from spinney.stores.sql import open_store


def new_store(file: Path) -> str:
    """Its URL. All of one process are the same store in what is drawn at random when one is made."""
    shutil.copyfile(_made(), file)
    file.chmod(0o600)
    return f"sqlite:///{file}"


@cache
def _made() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="spinney-new-store-")
    atexit.register(folder.cleanup)
    file = Path(folder.name) / "spinney.db"
    store = open_store(f"sqlite:///{file}")
    store.create()
    store.close()
    return file
