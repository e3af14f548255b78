"""The store that a command works on, open while the command lasts."""

import getpass
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.config import Settings, settings
from spinney.model import names

if TYPE_CHECKING:
    from spinney.control import Control
    from spinney.stores.contract import Store


def where(store: str | None, folders: str | None = None) -> Settings:
    """What is in force here: the option, the environment, ``spinney.toml``, the default."""
    return settings(store, folders, environment=os.environ, directory=Path.cwd())


@contextmanager
def opened(store: str | None) -> Iterator["Store"]:
    """The store, closed at the end."""
    from spinney.stores.sql import open_store

    found = open_store(where(store).store)
    try:
        yield found
    finally:
        found.close()


@contextmanager
def hand(store: str | None, by: str | None = None) -> Iterator["Control"]:
    """The operator's verbs on that store, in somebody's name."""
    from spinney.control import Control
    from spinney.waking import wake_all

    run_dir = where(store).run_dir
    with opened(store) as found:
        yield Control(
            store=found,
            clock=now_us,
            nudge=lambda: wake_all(found, run_dir),
            by=whoever(by),
        )


def now_us() -> int:
    """Microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def whoever(by: str | None) -> str:
    """Who asks: as named, else the login name. Raises UsageError for what names nobody."""
    if by:
        return names.label("name of who asks (--by)", by)
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
