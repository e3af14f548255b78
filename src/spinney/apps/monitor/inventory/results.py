"""The results of checks: written in groups, read by service, and thinned when they are old.

``mon_history`` has every result, and ``mon_statuses`` the newest one of each service and task; one transaction writes
both. The threads of a node write through one ``ResultWriter``; several nodes may write at once."""

import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, or_, select, text, tuple_, update

from spinney.apps.monitor.inventory.model import Change, CurrentStatus, Result
from spinney.apps.monitor.inventory.schema import history, services, statuses
from spinney.tables.database import Database
from spinney.tables.errors import TablesAway

INFO_MAX = 20_000
"""The most characters of a result that are kept."""
LOCK_S = 2.0
"""How long the newest id waits for those who write results, on PostgreSQL."""
AHEAD_US = 60_000_000
"""A newest result that is more than a minute ahead of this host is from a clock that was wrong, and is replaced like an
older one: else it would stand until that time comes."""
WAITED_S = 5.0
"""A database that does not take a group for so long is away; others go at once, as a deadlock or a lost connection."""
THINNED = 5000
"""The most rows that one transaction of ``thin`` removes, so that results do not wait for it."""
_LOCK_NOT_AVAILABLE = "55P03"


class ResultWriter:
    """Writes results for many threads: one writes those of all that wait, so that a busy monitor commits once
    for many results, by one statement for each table, and an idle one at once.

    A thread puts its result on the list and then takes the turn. Whoever has the turn writes its own result
    with others of the list and wakes their threads, which find theirs written when they get the turn. When a group
    cannot be written, the others go back on the list and the thread writes its own alone, so that one bad result fails
    only the stage that has it, and a connection that was lost costs no check. Where the database was waited for in vain
    (``WAITED_S``), all of the group get the error, since each would wait as long for it again."""

    def __init__(self, database: Database, *, most: int = 200, wait_s: float = 0.0) -> None:
        """``most``: how many results one group has at most. ``wait_s``: how long a group waits until it has
        as many, in seconds."""
        self._database, self._most, self._wait_s = database, most, wait_s
        self._waiting: list[tuple[Result, Future[None]]] = []
        self._mutex, self._turn = threading.Condition(), threading.Lock()

    def write(self, result: Result) -> None:
        """Write a result, and return when it is durable. Raises TablesUnusable; then it may or may not have
        been written, and the caller may repeat it."""
        written = Future[None]()
        entry = (result, written)
        with self._mutex:
            self._waiting.append(entry)
            self._mutex.notify()
        with self._turn:
            if written.done():
                written.result()
                return
            with self._mutex:
                self._mutex.wait_for(lambda: len(self._waiting) >= self._most, self._wait_s)
                self._waiting.remove(entry)
                group = [entry, *self._waiting[: self._most - 1]]
                del self._waiting[: self._most - 1]
            began_s = time.monotonic()
            try:
                write(self._database, [waiting for waiting, _ in group])
            except Exception as error:
                if isinstance(error, TablesAway) and time.monotonic() - began_s >= WAITED_S:
                    for _, future in group:
                        future.set_exception(error)
                    raise
                with self._mutex:
                    self._waiting[:0] = group[1:]
                if len(group) == 1:
                    raise
                write(self._database, [result])
                return
            for _, future in group:
                future.set_result(None)


def write(database: Database, results: Sequence[Result]) -> None:
    """Enter results in one transaction: in the history, as the newest ones, and as the time of the services'
    last check.

    Those of one service and task follow one another by their times, as if each had been written alone. A
    repetition of a job's result replaces it, and keeps the status before it that was recorded first. A
    result that is older than the newest one of its service and task is entered in the history alone (``AHEAD_US``).
    Results that ``drops`` of a newest one names are removed from the newest ones, and stay in the history."""
    in_time = sorted(_once(results), key=lambda result: result.at_us)
    newest = {(result.gid, result.task): result for result in in_time}
    end_us = time.time_ns() // 1000 + AHEAD_US
    newest = dict(sorted(newest.items()))  # rows are locked in one order, so that two nodes do not deadlock
    with database.write() as connection:
        present = _present(connection, newest)
        rows = []
        for result in in_time:
            key = (result.gid, result.task)
            before = present.get(key)
            before_status = "" if before is None else before.status
            rows.append(_row(result, before=before_status, job_id=result.job_id))
            if before is None or not result.at_us < before.at_us <= end_us:
                present[key] = _after(result, before)
        insert = database.insert(history).values(rows)
        connection.execute(
            insert.on_conflict_do_update(
                index_elements=["job_id", "task"],
                set_={
                    name: insert.excluded[name] for name in ("status", "code", "info", "at_us", "duration_s")
                },
            )
        )
        current = [
            _row(result, uuid=result.uuid, since_us=present[key].since_us) for key, result in newest.items()
        ]
        insert = database.insert(statuses).values(current)
        connection.execute(
            insert.on_conflict_do_update(
                index_elements=["gid", "task"],
                set_={name: insert.excluded[name] for name in current[0] if name not in ("gid", "task")},
                where=or_(insert.excluded.at_us >= statuses.c.at_us, statuses.c.at_us > end_us),
            )
        )
        dropped = [(result.gid, task) for result in newest.values() for task in result.drops]
        if dropped:
            connection.execute(delete(statuses).where(tuple_(statuses.c.gid, statuses.c.task).in_(dropped)))
        checked = {result.gid: result.at_us for result in newest.values()}
        connection.execute(
            update(services).where(services.c.gid == bindparam("of")).values(checked_us=bindparam("at_us")),
            [{"of": gid, "at_us": at_us} for gid, at_us in checked.items()],
        )


def drop(database: Database, gid: int, task: str, until_us: int) -> None:
    """Remove the newest result of a service and task, unless it is later than a time; it stays in the history.
    Where there is none, which is the usual case, nothing is written."""
    not_later = or_(statuses.c.at_us <= until_us, statuses.c.at_us > time.time_ns() // 1000 + AHEAD_US)
    of_task = (statuses.c.gid == gid, statuses.c.task == task, not_later)
    with database.read() as connection:
        if connection.scalar(select(statuses.c.gid).where(*of_task)) is None:
            return
    with database.write() as connection:
        connection.execute(delete(statuses).where(*of_task))


def current(database: Database, gids: Iterable[int]) -> dict[int, list[CurrentStatus]]:
    """Return the newest results of services, by their number, in the order of the tasks' names. A service
    without results is not a key. ``gids`` are parameters of one query, which databases limit to some tens of
    thousands."""
    query = select(statuses).where(statuses.c.gid.in_(list(gids))).order_by(statuses.c.gid, statuses.c.task)
    of_services: dict[int, list[CurrentStatus]] = {}
    with database.read() as connection:
        for row in connection.execute(query):
            values = row._asdict()
            of_services.setdefault(values.pop("gid"), []).append(CurrentStatus(**values))
    return of_services


def changes(
    database: Database,
    *,
    gid: int | None = None,
    eid: int | None = None,
    after_us: int = 0,
    ids: range | None = None,
    only_changes: bool = False,
    first_ok: bool = True,
    limit: int = 100,
) -> list[Change]:
    """Return up to ``limit`` results of the history, the newest first.

    ``gid``, ``eid``: only those of this service, or of this entity's services that are not retired.
    ``after_us``: only later ones. ``ids``: only those with such an id, which shows what was written since an
    earlier call, whatever time a result has. ``only_changes``: only those whose status differs from the one
    before, which are read from an index of their own. ``first_ok=False``: without first results that are
    well."""
    columns = [history.c[name] for name in Change.__slots__]
    query = select(*columns).where(history.c.at_us > after_us)
    if ids is not None:
        query = query.where(history.c.id >= ids.start, history.c.id < ids.stop)
    if gid is not None:
        query = query.where(history.c.gid == gid)
    if eid is not None:
        query = query.join(services).where(services.c.eid == eid, services.c.retired_us.is_(None))
    if only_changes:
        query = query.where(history.c.before != history.c.status)
    if not first_ok:
        query = query.where(or_(history.c.before != "", history.c.status != "ok"))
    query = query.order_by(history.c.at_us.desc(), history.c.id.desc()).limit(limit)
    with database.read() as connection:
        return [Change(**row._mapping) for row in connection.execute(query)]


def thin(database: Database, before_us: int) -> int:
    """Remove one step of the results before a time that repeat the status before them, and return how many;
    the caller repeats it until none is left. First results and changes stay for ever: most results say what
    the one before said, and only the newer ones are shown one by one."""
    repeated = (
        select(history.c.id)
        .where(history.c.at_us < before_us, history.c.before == history.c.status)
        .order_by(history.c.id)
        .limit(THINNED)
    )
    with database.write() as connection:
        return connection.execute(delete(history).where(history.c.id.in_(repeated))).rowcount


class ResultsKept(TablesAway):
    """Somebody keeps the table of results locked; the message says who."""


def newest_id(database: Database) -> int:
    """Return the id of the result that was written last; 0 without one. No result with a lower id appears
    later, so that a reader that has seen all up to it has missed none.

    Ids alone do not promise that on PostgreSQL, which gives them before the commit: a transaction with a
    lower id may commit after one with a higher. So the table is locked for a moment, which waits for those
    that are writing. SQLite has one writer at a time. Raises ResultsKept where VACUUM, or a transaction that
    does not end, keeps the table for longer than ``LOCK_S``."""
    try:
        with database.write() as connection:
            if database.dialect == "postgresql":
                # All who write wait meanwhile.
                connection.execute(text(f"set local lock_timeout = '{round(LOCK_S * 1000)}ms'"))
                # Ids are given before the commit: this waits for the transactions that have some.
                connection.execute(text(f"lock table {history.name} in share mode"))
            return connection.scalar(select(func.max(history.c.id))) or 0
    except TablesAway as error:
        if getattr(getattr(error.__cause__, "orig", None), "sqlstate", "") != _LOCK_NOT_AVAILABLE:
            raise
        raise ResultsKept(
            f"{_keeper(database)} keeps the table {history.name} of {database.name} for longer than {LOCK_S:g} s; a "
            "VACUUM ends by itself, an idle transaction has to be ended"
        ) from error


def _keeper(database: Database) -> str:
    """Describe the process that has kept the table of results for longest, of those for whose end the lock
    waits. Modes that do not conflict with a share lock are left out (PostgreSQL, 13.3.1)."""
    query = text(
        "select pid, coalesce(usename, ''), coalesce(application_name, ''), mode "
        "from pg_locks join pg_stat_activity using (pid) where granted and pid <> pg_backend_pid() "
        "and relation = to_regclass(:table) and mode not in ('AccessShareLock', 'RowShareLock', 'ShareLock') "
        "order by xact_start limit 1"
    )
    with database.read() as connection:
        row = connection.execute(query, {"table": history.name}).one_or_none()
    if row is None:
        return "a process that has ended now"
    pid, user, application, mode = row
    details = [mode, *([f"user {user}"] if user else []), *([application] if application else [])]
    return f"process {pid} ({', '.join(details)})"


class _Present(NamedTuple):
    """The status of a service and task, since when it is this one, and the time of its newest result."""

    status: str
    since_us: int
    at_us: int


def _present(connection: Connection, keys: Iterable[tuple[int, str]]) -> dict[tuple[int, str], _Present]:
    """Return the present status of each service and task that has one."""
    columns = [statuses.c[name] for name in _Present._fields]
    query = select(statuses.c.gid, statuses.c.task, *columns).where(
        tuple_(statuses.c.gid, statuses.c.task).in_(list(keys))
    )
    return {(gid, task): _Present(*values) for gid, task, *values in connection.execute(query)}


def _after(result: Result, before: _Present | None) -> _Present:
    """Return the status after a result. Since when it is so is kept as long as the status is the same."""
    same = before is not None and before.status == result.status
    since_us = min(before.since_us, result.at_us) if before is not None and same else result.at_us
    return _Present(result.status, since_us, result.at_us)


def _once(results: Sequence[Result]) -> Iterable[Result]:
    """Return the results, the last one of each job and task: one INSERT must not meet the same row twice."""
    return {(result.job_id, result.task): result for result in results}.values()


def _row(result: Result, **more: Any) -> dict[str, Any]:
    """Return the row of a result: the columns that both tables have, and ``more`` that one of them has besides."""
    return {
        "gid": result.gid,
        "task": result.task,
        "status": result.status,
        "code": result.code,
        "info": result.info[:INFO_MAX],
        "at_us": result.at_us,
        "duration_s": result.duration_s,
        **more,
    }
