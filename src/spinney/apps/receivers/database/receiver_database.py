"""Write the detections of new raw files into the database of their receiver.

The files of a boot session are detected in the order of their times, and different ones of one name by the length of
their unpacked contents, the longest first. New files that come behind all others of their session go on from where the
last one ended, and so does the last one itself when it has grown; others let the session be detected afresh, from the
copies that are kept of its files. So the detections are the same in whatever pieces and order the files come, and a
file that comes again, under whatever name, changes nothing. All of a call is one transaction: readers see all of it or
nothing, and after a kill the call is repeated."""

import hashlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from spinney.apps.receivers.database.schema import SCHEMA
from spinney.apps.receivers.detection import contents
from spinney.apps.receivers.detection.bursts import BurstFinder
from spinney.apps.receivers.detection.pulses import Position, ReadCounts, read_pulses
from spinney.apps.receivers.detection.runs import RULES, Hit, RunFinder
from spinney.apps.receivers.detection.source_files import SourceFile, source_file
from spinney.apps.receivers.detection.tags import Tag
from spinney.errors import UsageError

BUSY_S = 60.0
"""How long a writer waits for another one; the application has a lock beside, so that this is a last resort."""


class Detected(NamedTuple):
    """What a call of ``detect`` or ``rerun`` has done, in numbers."""

    files: int
    """New files."""
    repeated: int
    """Files whose content was there already."""
    pulses: int
    """Pulses that were read, also of files that were read again."""
    hits: int
    """Hits of these sessions that were not there before."""
    broken: int
    """Lines that could not be read, or whose time was wrong."""
    afresh: tuple[int, ...]
    """The sessions that were detected again from their first file."""


class _New(NamedTuple):
    """A raw file with its content's digest: a new one, or one that the database has already."""

    source: SourceFile
    path: Path
    sha256: str

    @property
    def place(self) -> tuple[float, str]:
        """Return the sort key of the files of a session: their times, then their names."""
        return self.source.begun, self.source.name


class ReceiverDatabase:
    """The database of one receiver, in a file. Its methods open and close the file, so that nothing is kept
    between calls."""

    def __init__(
        self, path: Path, tags: Sequence[Tag], *, job: int = 0, between: Callable[[], None] = lambda: None
    ) -> None:
        """``path``: the file, which is made when something is first written. ``tags``: what is detected; a
        session that was detected with others, or by other ``RULES``, is detected afresh when its next file
        comes. ``job``: the number of the job that detects. ``between`` is called after each piece of a raw file, so
        that a caller may show progress or stop; what it raises leaves the database as it was."""
        self._path, self._tags, self._job, self._between = path, tuple(tags), job, between
        # Paths of raw files are kept relative to this folder, so that it may be moved.
        self._data = path.absolute().parent.parent.resolve()
        described = orjson.dumps([[tag.model_dump() for tag in self._tags], repr(RULES)])
        self._digest = hashlib.sha256(described).hexdigest()

    def detect(self, paths: Iterable[Path], *, now_s: float) -> Detected:
        """Detect in these raw files, which must stay where they are, and write what is new. A file whose
        content the database has is only counted. ``now_s``: the time now, in seconds since 1970; pulses that are later
        by more than a day are broken.

        Raises UsageError for a name that no receiver gives, OSError for a file that cannot be read, and
        sqlite3.Error."""
        new = sorted(
            (_described(Path(path)) for path in paths),
            key=lambda each: (each.source.session, *each.place, each.sha256),
        )
        with self._writing() as db:
            # All digests of the receiver: a file may come again under the name of another session.
            digests = {sha256 for (sha256,) in db.execute("select sha256 from files")}
            by_session: dict[int, list[_New]] = defaultdict(list)
            for each in new:
                if each.sha256 not in digests:
                    digests.add(each.sha256)  # also of another session: a content counts once
                    by_session[each.source.session].append(each)
            results = [
                self._detect_session(db, session, files, now_s) for session, files in by_session.items()
            ]
        total = _total(results)
        return total._replace(repeated=len(new) - total.files)

    def rerun(self, sessions: Iterable[int], *, now_s: float) -> Detected:
        """Detect these sessions afresh, from the files that the database has of them: after a change of the
        tags or rules. A session without files becomes empty. Errors are those of ``detect``."""
        with self._writing() as db:
            return _total([self._detect_session(db, session, [], now_s, afresh=True) for session in sessions])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction that writes, and commit it at the end of the block. The write lock is taken at
        once: what is read before the first write would otherwise be out of date when the lock comes."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)) as db:
            # WAL lets pages and exports read while a job writes; ``full`` makes the commit durable before the stage is
            # recorded as passed.
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = full")
            db.executescript(SCHEMA)
            db.execute("begin immediate")
            yield db
            db.execute("commit")  # a connection that is closed without it rolls back

    def _detect_session(
        self, db: sqlite3.Connection, session: int, new: list[_New], now_s: float, *, afresh: bool = False
    ) -> Detected:
        """Detect in the new files of one session, after those before or with all of them, and enter the
        batch. ``afresh``: all files are read again, whatever is new."""
        new = _ordered(new)
        start = None if afresh else _start(db, session, new, self._digest, self._data)
        afresh = start is None
        begin, state = start or (0, {})
        # Hits are counted by difference, because a session that is detected afresh replaces its own.
        before = _number_of_hits(db, session)
        every = new
        if afresh:
            every = _ordered([*_known_files(db, session, self._data), *new])
            for table in ("runs", "hits", "gps"):
                db.execute(f"delete from {table} where session = ?", (session,))  # noqa: S608 - names of tables
        # The number of a batch is free for the whole transaction, which has the only write lock.
        (batch,) = db.execute("select coalesce(max(id), 0) + 1 from batches").fetchone()
        made = (batch, self._job, now_s, session, afresh)
        db.execute("insert into batches values (?, ?, ?, ?, 0, 0, 0, ?)", made)
        bursts = BurstFinder(self._tags, state.get("bursts"))
        runs = RunFinder(self._tags, state.get("runs"))
        pulses = broken = 0
        fresh = {each.sha256 for each in new}
        for each in every:
            counts, broken_before = ReadCounts(), bursts.broken
            for piece in read_pulses(each.path, counts, now_s=now_s, begin=begin):
                _write_hits(db, session, runs.add(bursts.find(piece)))
                _write_positions(db, session, counts.positions)
                counts.positions.clear()
                self._between()
            begin = 0  # only the first file continues one
            counts.broken += bursts.broken - broken_before
            counts.pulses -= bursts.broken - broken_before
            pulses, broken = pulses + counts.pulses, broken + counts.broken
            # Files that were there keep the row, and the batch, of the call that brought them.
            if each.sha256 in fresh:
                _write_file(db, batch, each, counts, self._data)
        if every:
            last, state = every[-1].source, {"bursts": bursts.state, "runs": runs.state}
            db.execute(
                "insert or replace into sessions values (?, ?, ?, ?, ?)",
                (session, last.begun, last.name, self._digest, orjson.dumps(state)),
            )
        hits = _number_of_hits(db, session) - before
        db.execute(
            "update batches set files = ?, pulses = ?, hits = ? where id = ?", (len(new), pulses, hits, batch)
        )
        return Detected(len(new), 0, pulses, hits, broken, (session,) if afresh else ())


def _total(results: Sequence[Detected]) -> Detected:
    """Return what was done in several sessions together."""
    return Detected(
        files=sum(result.files for result in results),
        repeated=0,
        pulses=sum(result.pulses for result in results),
        hits=sum(result.hits for result in results),
        broken=sum(result.broken for result in results),
        afresh=tuple(session for result in results for session in result.afresh),
    )


def _described(path: Path) -> _New:
    """Return a raw file with its digest. Raises UsageError for a name that no receiver gives, and OSError."""
    source = source_file(path)
    if source is None:
        raise UsageError(f"{path.name!r} is not the name of a raw file of a receiver")
    return _New(source, path, sha256_of(path))


def sha256_of(path: Path) -> str:
    """Return the digest of a file, in hexadecimal digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ordered(files: Sequence[_New]) -> list[_New]:
    """Return the files of a session as they are detected. If several files have one name, the one with the longest
    unpacked content is first: a damaged copy then adds nothing to it."""
    number = Counter(each.place for each in files)

    def order(each: _New) -> tuple[float, str, int, str]:
        return (*each.place, -contents.length(each.path) if number[each.place] > 1 else 0, each.sha256)

    return sorted(files, key=order)


def _start(
    db: sqlite3.Connection, session: int, new: Sequence[_New], digest: str, data: Path
) -> tuple[int, dict[str, Any]] | None:
    """Return from which byte of its content the first new file is read, and the state with which the session
    goes on; None if the session has to be detected afresh, because the tags or rules have changed, or the
    file belongs before others. A session that is new begins with an empty state."""
    row = db.execute(
        "select last_begun, last_name, tags, state from sessions where session = ?", (session,)
    ).fetchone()
    if row is None:
        return 0, {}
    begun, name, tags, state = row
    begin = _resumes_at(db, (begun, name), new[0], data) if new and tags == digest else None
    return None if begin is None else (begin, orjson.loads(state))


def _resumes_at(db: sqlite3.Connection, last: tuple[float, str], first: _New, data: Path) -> int | None:
    """Return from which byte on the first new file is new to a session that ended with the file ``last``: all of it if
    it is behind that, and what it has more if it is that file, grown. Return None for any other."""
    if first.place != last:
        return 0 if first.place > last else None
    rows = db.execute(
        "select path from files where session = ? and begun = ? and name = ?", (first.source.session, *last)
    )
    grown = [contents.grown_from(first.path, data / path) for (path,) in rows]
    ends = [end for end in grown if end is not None]
    # If there are several copies, one from which it has not grown is damaged, and the session may have gone on from it.
    return max(ends) if ends and len(ends) == len(grown) else None


def _known_files(db: sqlite3.Connection, session: int, data: Path) -> list[_New]:
    """Return the files that the database has of a session, in no order. ``data``: what their paths begin at."""
    rows = db.execute("select name, path, sha256 from files where session = ?", (session,))
    files = []
    for name, path, sha256 in rows:
        source = source_file(name)
        if source is not None:
            files.append(_New(source, data / path, sha256))
    return files


def _number_of_hits(db: sqlite3.Connection, session: int) -> int:
    """Return how many hits a session has now."""
    (number,) = db.execute("select count(*) from hits where session = ?", (session,)).fetchone()
    return int(number)


def _write_hits(db: sqlite3.Connection, session: int, hits: Sequence[Hit]) -> None:
    """Insert hits, and the runs that they begin. A run is inserted once, whichever of its hits comes
    first."""
    db.executemany(
        "insert or ignore into runs values (?, ?, ?, ?)",
        [(session, hit.run, hit.burst.tag, hit.burst.port) for hit in hits],
    )
    db.executemany(
        "insert into hits values (?, ?, ?, ?, ?, ?, ?)",
        # All fields of a burst but its tag and port, which its run has.
        [(session, hit.run, *hit.burst[2:]) for hit in hits],
    )


def _write_positions(db: sqlite3.Connection, session: int, positions: Sequence[Position]) -> None:
    """Insert positions; if several have the same time, the first counts."""
    db.executemany(
        "insert or ignore into gps values (?, ?, ?, ?, ?)", [(session, *each) for each in positions]
    )


def _write_file(db: sqlite3.Connection, batch: int, each: _New, counts: ReadCounts, data: Path) -> None:
    """Enter a raw file with what was read of it. Its path is that from ``data`` on, or absolute where it lies
    elsewhere, because a rerun reads it again."""
    source, path = each.source, each.path.resolve()
    db.execute(
        "insert into files values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            each.sha256,
            source.name,
            str(path.relative_to(data) if path.is_relative_to(data) else path),
            source.session,
            source.begun,
            batch,
            counts.lines,
            counts.pulses,
            counts.broken,
            counts.damage,
        ),
    )
