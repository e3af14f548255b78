"""Jobs of an older Motus job server, kept as history; and jobs of this service in the form that its tools read.

Both are an SQLite file with one table ``jobs``, as the page on Motus data processing describes it: trees by ``pid`` and
``stump``, ``done`` 1, 0 or negative, parameters and what the job wrote in ``data`` as JSON, generated names ending in
``_``. Imported jobs are a record of the past: nothing of them runs.

``import_jobs`` checks what others wrote, row by row, and may be repeated; ``export_jobs`` writes a new file."""

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from spinney.errors import UsageError

SCHEMA = """
create table if not exists jobs (
    id integer unique primary key not null,
    pid integer references jobs (id),
    stump integer references jobs (id),
    ctime float(53),
    mtime float(53),
    type text,
    done integer,
    queue text,
    path text,
    oldpath text,
    data json,
    motusUserID integer,
    motusProjectID integer
)
"""
_INSERT = "insert or replace into jobs values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class OldJob(NamedTuple):
    """A job of an old Motus server, as a row of its table ``jobs``."""

    id: int
    pid: int | None
    """The job above it; None: it is at the top of its tree."""
    stump: int
    """The top of its tree; its own id where it is that."""
    ctime: float
    """When it was made, and as ``mtime`` last changed, in seconds since 1970."""
    mtime: float
    type: str
    done: int
    """1: it is done; 0: it is not yet; negative: it failed."""
    queue: str | None = None
    path: str | None = None
    oldpath: str | None = None
    data: str | None = None
    """A JSON object with its parameters, and with what it wrote under names that end in ``_``."""
    motusUserID: int | None = None
    motusProjectID: int | None = None


def import_jobs(source: Path, history: Path) -> tuple[int, list[str]]:
    """Copy the jobs of an old server into the history, in one transaction; return how many, and a sentence
    for each row that is wrong and was left out, in the order of the rows. Jobs below a wrong one are left
    out, too. Rows that are there already are replaced. Raises UsageError for a file that has no such
    table, and for a history that cannot be written."""
    try:
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old:
            # Text that is not UTF-8 must not end the import: its row is refused by ``_fault``.
            old.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
            columns = ", ".join(OldJob._fields)
            rows = old.execute(f"select {columns} from jobs order by id").fetchall()  # noqa: S608 - names of columns
    except sqlite3.Error as error:
        raise UsageError(f"{source} is no database of a Motus job server: {error}") from error
    # A row can be judged only when its parent has been, whatever their numbers.
    stump_of: dict[int, int] = {}
    jobs: list[OldJob] = []
    faults: dict[Sequence[Any], str] = {}
    for row in _parents_first(rows):
        fault = _fault(row, stump_of)
        if fault is None:
            jobs.append(OldJob(*row))
            stump_of[row[0]] = row[2]
        else:
            faults[row] = fault
    history.parent.mkdir(parents=True, exist_ok=True)
    _write(history, jobs, "close what has it open, make room, or move it away if it is damaged")
    return len(jobs), [f"job {row[0]!r}: {faults[row]}" for row in rows if row in faults]


def read(history: Path, *, tree: int | None = None) -> list[OldJob]:
    """Return the jobs of the history, or of the tree below a top-level job, by id; none where nothing was
    imported. Raises UsageError where the file cannot be read."""
    if not history.exists():
        return []
    columns = ", ".join(OldJob._fields)
    query = f"select {columns} from jobs where ?1 is null or stump = ?1 order by id"  # noqa: S608 - names of columns
    try:
        with closing(sqlite3.connect(f"{history.absolute().as_uri()}?mode=ro", uri=True)) as db:
            return [OldJob(*row) for row in db.execute(query, (tree,))]
    except sqlite3.Error as error:
        raise UsageError(f"the history {history} cannot be read: {error}") from error


def export_jobs(target: Path, jobs: Iterable[OldJob]) -> int:
    """Write jobs to a new file, and return how many. Raises UsageError where it exists or cannot be written:
    an export must not overwrite a history."""
    try:
        target.touch(exist_ok=False)
    except FileExistsError:
        raise UsageError(f"{target} exists; name a new file") from None
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}; name another file") from error
    return _write(target, jobs, "make room, and name a new file")


def _write(file: Path, jobs: Iterable[OldJob], advice: str) -> int:
    """Write jobs to a file in one transaction, and return how many. Raises UsageError, with the advice, where that
    fails."""
    try:
        with closing(sqlite3.connect(file)) as db, db:
            db.execute(SCHEMA)
            return db.executemany(_INSERT, jobs).rowcount
    except sqlite3.Error as error:
        raise UsageError(f"{file} cannot be written: {error}; {advice}") from error


def renumbered(jobs: Iterable[OldJob], offset: int) -> Iterator[OldJob]:
    """Yield jobs with ids, parents and stumps that are greater by ``offset``, so that they come behind those
    of the history."""
    for job in jobs:
        parent = None if job.pid is None else job.pid + offset
        yield job._replace(id=job.id + offset, pid=parent, stump=job.stump + offset)


def _parents_first(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield each row behind that of its parent, whichever number is lower; at the end those whose parents are
    missing, or that are their own ancestors."""
    below: dict[Any, list[Sequence[Any]]] = {}
    for row in rows:
        below.setdefault(row[1], []).append(row)
    reached = deque(below.pop(None, ()))
    while reached:
        row = reached.popleft()
        reached += below.pop(row[0], ())
        yield row
    for orphans in below.values():
        yield from orphans


def _fault(row: Sequence[Any], stump_of: dict[int, int]) -> str | None:
    """Return why a row is no job; None for a good one. ``stump_of``: the top of the tree of each good job
    before it, among which its parent has to be."""
    job_id, parent, stump, ctime, mtime, type_, done, *_, data, _, _ = row
    if not isinstance(job_id, int) or job_id < 1:
        return "its id is no positive number"
    if parent is not None and parent not in stump_of:
        return f"its parent {parent!r} is not there, or is wrong itself"
    if stump != (job_id if parent is None else stump_of[parent]):
        return f"its stump {stump!r} is not the top of its tree"
    if not isinstance(type_, str) or not isinstance(done, int):
        return "it has no type, or no number as its state"
    if not all(isinstance(moment, int | float) for moment in (ctime, mtime)):
        return "its times are no numbers"
    for name, value in zip(OldJob._fields, row, strict=True):
        if isinstance(value, bytes) or (isinstance(value, str) and not _is_utf_8(value)):
            return f"its {name} is no text in UTF-8"
    try:
        if data is not None and not isinstance(orjson.loads(data), dict):
            return "its data is no JSON object"
    except (orjson.JSONDecodeError, TypeError):
        return "its data is no JSON"
    return None


def _is_utf_8(text: str) -> bool:
    """Return whether a text was UTF-8 in the database; bytes that were not are surrogates here."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
