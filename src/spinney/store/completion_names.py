"""The names that a store knows, read without opening it as a store: for a shell that completes a word.

Opening a store takes a quarter of a second, most of it loading what only transactions need. Here the file is
read as it lies: nothing is made, changed or locked, nobody is waited for, and of whatever cannot be read nothing
is said.

However many jobs there are, a look is short: names come from small tables, or are sought in an index one by one.
In a store that has not these indexes, or is so damaged that they lead nowhere, it is broken off.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from spinney.model.values.paths import beside, database_file
from spinney.store.skip_scan import distinct

MOST = 100
"""Names that are given at once; who wants others writes a letter more."""
LATEST = 1_000
"""Of what is kept for long (nodes, holds on single jobs), so many rows are looked at, the latest first."""
_STRIDE, _STRIDES = 1_000, 200
"""A look is broken off after so many times so many steps of SQLite's machine: some ms."""
_LAST = "\U0010ffff"
"""Behind every other letter."""


def _listed(table: str, column: str, also: str = "true") -> str:
    where = f"{column} >= :low and {column} < :high and {also}"
    return f"select distinct {column} from {table} where {where} order by 1 limit {MOST}"


def _sought(table: str, column: str) -> str:
    return distinct(table, column, f"{column} is not null and {column} < :high", begin=":low", most=MOST)


def _latest(table: str, column: str, also: str = "true") -> str:
    rows = (
        f"(select cast({column} as text) as found from {table} where {also} order by id desc limit {LATEST})"
    )
    return _listed(rows, "found")


_STAGES = "types cross join json_each(types.spec, '$.stages') stage"
_QUEUES = (
    "select name as queue from queues union select queue from lanes union select json_extract(spec, '$.queue') "
    f"from types union select json_extract(stage.value, '$.queue') from {_STAGES} "
    "union select :default"
)
SQL: Mapping[str, str] = {
    "type": _listed("types", "name"),
    "queue": _listed(f"({_QUEUES})", "queue"),
    "stage": _listed(
        f"(select json_extract(stage.value, '$.name') as stage from {_STAGES} "
        "where :type is null or types.name = :type)",
        "stage",
    ),
    "collection": _sought("jobs", "collection"),
    "submitter": _sought("jobs", "submitter"),
    "node": _latest("nodes", "name"),
    "node that has not left": _latest("nodes", "name", "state <> 'left'"),
    "host with folders": _listed("homes", "host", "gone = 0"),
    "schedule": _listed("schedules", "name"),
    "schedule that goes on": _listed("schedules", "name", "not paused"),
    "schedule that rests": _listed("schedules", "name", "paused"),
    "lock": _sought("locks", "name"),
    "lock's owner": _listed(
        f"(select cast(job_id as text) as owner from locks where name = :lock order by job_id limit {LATEST})",
        "owner",
    ),
    "hold": _latest("holds", "id"),
    "user": _listed("users", "name"),
    "webhook": _listed("webhooks", "name"),
    "failure": _sought("inactive_jobs", "fingerprint"),
}
"""What can be asked for."""


def names(url: str, kind: str, begins: str = "", **given: str | None) -> list[str]:
    """Up to ``MOST`` of this kind in the store of a URL, in their order; none of what cannot be read.

    ``given``: of which ``type`` the stages are asked for, of which ``lock`` the owners; the ``default`` queue.
    """
    path = database_file(url)
    if path is None or not path.is_file():  # a pipe would be waited for
        return []
    values = {"low": begins, "high": begins + _LAST, **given}
    try:
        found = _read(path, SQL[kind], values)
    except (sqlite3.Error, ValueError, OSError):
        return []  # No store, another schema, or not ours to read: nothing can be completed.
    return [name for (name,) in found if isinstance(name, str)]


def _read(path: Path, sql: str, values: Mapping[str, str | None]) -> list[tuple[object]]:
    # Whoever closes the last writing connection of a file has its turn to take. Where nobody has it open there is
    # no log beside it, and it is taken as it lies: else SQLite would make the log's files. Where there is one its
    # index is only read, too.
    log = beside(path, "-wal").exists()
    how = "mode=ro&readonly_shm=1" if log else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{how}", uri=True, timeout=0)
    strides = iter(range(_STRIDES))
    connection.set_progress_handler(lambda: next(strides, None) is None, _STRIDE)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()
