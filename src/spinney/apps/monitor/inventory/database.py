"""The open database of this process."""

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from spinney.apps.monitor import settings
from spinney.apps.monitor.inventory import TABLES

if TYPE_CHECKING:
    from spinney.tables.database import Database


def database() -> "Database":
    """Return the monitor's database, one for each process, since connections do not survive a fork. Raises
    TablesUnusable unless its tables have been made."""
    return _open(settings.load().tables, os.getpid()).checked()


@lru_cache(maxsize=4)
def _open(url: str, process: int) -> "Database":
    return TABLES.open(url)
