"""Reading the database of a receiver, beside the job that writes it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from spinney.errors import UsageError


@contextmanager
def snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that sees one snapshot of the database in this file, and cannot write. Raises
    UsageError where nothing was written yet, and sqlite3.Error for a file that is no database."""
    if not path.exists():
        raise UsageError(f"there is no receiver {path.stem}; 'spinney receivers list' lists them all")
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        db.execute("begin")
        yield db
