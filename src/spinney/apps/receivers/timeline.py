"""What the databases of receivers hold: numbers for all receivers; for one receiver, its boot sessions over time with
their files and runs, and the work of jobs.

All of it is read from snapshots, without NumPy, by pages and commands. The positions for a picture are computed here,
so that the template only draws."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from spinney.apps.receivers.database.snapshots import snapshot
from spinney.apps.receivers.detection.source_files import AHEAD_S, CLOCK_SET_S

T = TypeVar("T")
COUNTED = ("files", "sessions", "runs", "hits")
"""Tables of a database, of which an overview has the number of rows."""
SESSIONS_MAX = 100
"""How many boot sessions a timeline shows, the newest ones; ``RUNS_MAX`` limits the marks of all their runs
together."""
RUNS_MAX = 3000
WIDTH = 1000.0
"""Units of the picture's width."""


class Session(NamedTuple):
    """A boot session: times in s since 1970, positions in the picture's units."""

    number: int
    begun: float
    ended: float
    """The begin of its last file, or the last hit behind it."""
    files: int
    pulses: int
    """The number of pulses, as counted when each file was read."""
    runs: int
    hits: int
    damaged: int
    """Files with lines that could not be read, or that are cut off."""
    file_marks: tuple[float, ...]
    """Where each of its files begins."""
    run_marks: tuple[tuple[float, float, str], ...]
    """Left edge, width and tag of each run."""


class Batch(NamedTuple):
    """What a job has written of one session (the table ``batches``); the numbers are those of new files, and
    of hits gained or lost."""

    job: int
    at: float
    """The time of the batch, in seconds since 1970."""
    session: int
    files: int
    pulses: int
    hits: int
    afresh: bool
    """Whether the session was detected again from its first file."""


class Timeline(NamedTuple):
    """The newest boot sessions of a receiver, and the newest batches, each newest first."""

    sessions: tuple[Session, ...]
    batches: tuple[Batch, ...]
    begun: float
    """When the earliest of these sessions began, and as ``ended`` the last one ended, by clocks that were right
    (``CLOCK_SET_S``, ``AHEAD_S``) where there is one, in seconds since 1970; zeros without any. The picture goes from
    one to the other."""
    ended: float


def database_files(data: Path) -> list[Path]:
    """Return the databases of the receivers, by name; the name of a receiver is the stem. ``data``: the
    folder of the settings. The list is empty where nothing was detected yet."""
    return sorted((data / "databases").glob("*.sqlite"))


def of_each(data: Path, look: Callable[[sqlite3.Connection], T]) -> Iterator[tuple[str, T | sqlite3.Error]]:
    """Yield each receiver by name with what ``look`` returns of its database, or why that cannot be read.
    Each database is opened when it is its turn, and closed before the next."""
    for path in database_files(data):
        try:
            with snapshot(path) as db:
                result: T | sqlite3.Error = look(db)
        except sqlite3.Error as error:
            result = error
        yield path.stem, result


def totals(db: sqlite3.Connection, *, now_s: float) -> dict[str, float | None]:
    """Return the ``COUNTED`` numbers of a receiver, and when its ``last`` file was begun (seconds since 1970), of those
    that may be right at the time ``now_s`` (None without one)."""
    counts = {name: db.execute(f"select count(*) from {name}").fetchone()[0] for name in COUNTED}  # noqa: S608
    last = db.execute("select max(begun) from files where begun < ?", (now_s + AHEAD_S,))
    return {**counts, "last": last.fetchone()[0]}


def read(db: sqlite3.Connection, *, now_s: float) -> Timeline:
    """Return the timeline of the receiver whose database this is, empty for one without files. The runs with the most
    hits of each session are drawn, at most ``RUNS_MAX`` over all sessions.

    ``now_s``: the time now, in seconds since 1970. The name of a file may give any time; one that cannot be right
    stands at the edge of the picture, which would else have all others in one point."""
    # The newest sessions, by the index ``files_by_session``; a session without a file has no row.
    rows = db.execute(
        "select session, min(begun), max(begun), count(*), sum(pulses), sum(broken > 0 or damage <> ''), "
        "min(case when begun >= ?1 and begun < ?2 then begun end), max(case when begun < ?2 then begun end) "
        "from files group by session order by session desc limit ?3",
        (CLOCK_SET_S, now_s + AHEAD_S, SESSIONS_MAX),
    )
    files = [_SessionFiles(*row) for row in rows]
    # The hits of these sessions only: the primary key begins with the session, so older ones are not read.
    rows = db.execute(
        "select session, count(distinct run), count(*), max(time), min(case when time >= ? then time end) from hits "
        "where session >= ? group by session",
        (CLOCK_SET_S, min((each.session for each in files), default=0)),
    )
    hits = {session: _SessionHits(*numbers) for session, *numbers in rows}
    first_times = _without_none(
        *(each.first_right for each in files), *(each.first_right for each in hits.values())
    )
    last_times = _without_none(*(each.last_right for each in files), *(each.last for each in hits.values()))
    begun = min(first_times or [each.first for each in files], default=0.0)
    ended = max(last_times or [each.last for each in files], default=0.0)
    scale = WIDTH / max(1.0, ended - begun)
    sessions = tuple(
        _session(db, each, hits.get(each.session, _NO_HITS), begun=begun, scale=scale) for each in files
    )
    batches = db.execute(
        "select job, at, session, files, pulses, hits, afresh from batches order by id desc limit 50"
    )
    return Timeline(sessions, tuple(Batch(*row) for row in batches), begun, ended)


class _SessionFiles(NamedTuple):
    """The files of a session, in numbers; times in seconds since 1970."""

    session: int
    first: float
    """When the first file was begun; ``last``: the last file. The receiver's clock may have been wrong."""
    last: float
    files: int
    pulses: int
    damaged: int
    first_right: float | None
    """When the first file was begun whose clock was set and not ahead; ``last_right``: the last one not ahead. None
    without such a file."""
    last_right: float | None


class _SessionHits(NamedTuple):
    """The hits of a session, in numbers; times in seconds since 1970."""

    runs: int
    hits: int
    last: float
    first_right: float | None
    """The time of the first hit after the receiver's clock was set; None without one."""


_NO_HITS = _SessionHits(0, 0, float("-inf"), None)


def _without_none(*times: float | None) -> list[float]:
    """Return the times that are not None."""
    return [time for time in times if time is not None]


def _session(
    db: sqlite3.Connection, files: _SessionFiles, hits: _SessionHits, *, begun: float, scale: float
) -> Session:
    """Return a session with its marks in the picture, which begins at ``begun`` and has ``scale`` units a second."""
    return Session(
        number=files.session,
        begun=files.first,
        ended=max(files.last, hits.last),
        files=files.files,
        pulses=files.pulses,
        runs=hits.runs,
        hits=hits.hits,
        damaged=files.damaged,
        file_marks=tuple(
            round(min(max(0.0, at - begun) * scale, WIDTH), 1)
            for (at,) in db.execute("select distinct begun from files where session = ?", (files.session,))
        ),
        run_marks=_run_marks(db, files.session, begun, scale),
    )


def _run_marks(
    db: sqlite3.Connection, session: int, begun: float, scale: float
) -> tuple[tuple[float, float, str], ...]:
    """Return left edge, width and tag of the runs of a session with the most hits. A short run is still wide
    enough to be seen; one before the picture stands at its edge."""
    # The runs with most hits are kept, since those of three hits are often noise.
    rows = db.execute(
        "select min(time), max(time), tag from hits join runs using (session, run) where session = ? "
        "group by run order by count(*) desc limit ?",
        (session, RUNS_MAX // SESSIONS_MAX),
    )
    return tuple(
        (
            round(max(0.0, first - begun) * scale, 1),
            round(max(1.5, (last - max(first, begun)) * scale), 1),
            tag,
        )
        for first, last, tag in rows
    )
