"""The application's own record of what the archive holds: a row per object, a row per file.

One SQLite file beside the bags. Writing the same object twice leaves one row: a stage that runs
again after a crash writes what it wrote before.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from spinney.apps.ingest.bagging import Stored

FILE_NAME = "inventory.sqlite"
BUSY_S = 60.0

_SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS objects (
        deposit     TEXT NOT NULL,     -- the batch, by a name that is unique over stores
        name        TEXT NOT NULL,
        job_id      INTEGER NOT NULL,
        bag         TEXT NOT NULL,     -- below the archive
        files       INTEGER NOT NULL,
        bytes       INTEGER NOT NULL,
        verified    INTEGER NOT NULL,  -- digests that were compared and found equal
        skipped     INTEGER NOT NULL,  -- entries left out with a note
        PRIMARY KEY (deposit, name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS files (
        deposit     TEXT NOT NULL,
        name        TEXT NOT NULL,
        path        TEXT NOT NULL,     -- within the bag's data/
        bytes       INTEGER NOT NULL,
        sha256      TEXT NOT NULL,
        PRIMARY KEY (deposit, name, path)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS files_by_digest ON files (sha256)",
)
_ENTER = """
    INSERT OR REPLACE INTO objects (deposit, name, job_id, bag, files, bytes, verified, skipped)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_LIST = """
    SELECT deposit, name, job_id, bag, files, bytes, verified, skipped
    FROM objects WHERE deposit = ? ORDER BY name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An object in the archive."""

    deposit: str
    name: str
    job_id: int
    bag: str
    files: int
    size_bytes: int
    verified: int
    skipped: int


def record(inventory: Path, entry: Entry, files: Iterable[Stored]) -> None:
    """Enter an object with its files, or enter it anew. One transaction; durable on return."""
    with _opened(inventory) as db:
        db.execute("BEGIN IMMEDIATE")
        with db:
            key = (entry.deposit, entry.name)
            db.execute("DELETE FROM files WHERE deposit = ? AND name = ?", key)
            db.execute(_ENTER, astuple(entry))
            db.executemany(
                "INSERT INTO files (deposit, name, path, bytes, sha256) VALUES (?, ?, ?, ?, ?)",
                ((*key, f.path, f.size_bytes, f.sha256) for f in files),
            )


def entries(inventory: Path, deposit: str) -> list[Entry]:
    """The objects of one deposit, by name. Empty when nothing was ever recorded."""
    if not inventory.exists():
        return []
    with _opened(inventory) as db:
        rows = db.execute(_LIST, (deposit,)).fetchall()
    return [Entry(**dict(zip(Entry.__slots__, row, strict=True))) for row in rows]


@contextmanager
def _opened(inventory: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(inventory, timeout=BUSY_S, isolation_level=None)) as db:
        # A rollback journal, not WAL: nothing is left beside the file of an archive at rest.
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("BEGIN IMMEDIATE")
        with db:
            for statement in _SCHEMA:
                db.execute(statement)
        yield db
