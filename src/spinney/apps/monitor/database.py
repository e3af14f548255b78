"""The open database of this process.

Stages, pages and commands all get it here, so that they share its connections."""

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from spinney.apps.monitor import settings
from spinney.apps.monitor.inventory import TABLES

if TYPE_CHECKING:
    from spinney.tables.database import Database


def database() -> "Database":
    """Return the monitor's database, one for each process and address, since connections do not survive a
    fork. Raises TablesUnusable unless its tables have been made and are of the revision of this code, and
    UsageError for wrong settings."""
    return _open(settings.load().tables, os.getpid()).checked()


@lru_cache(maxsize=4)
def _open(url: str, process: int) -> "Database":
    """Return the database at an address. ``process``: the id of this process, as a part of the cache's
    key."""
    return TABLES.open(url)
