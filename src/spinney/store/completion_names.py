"""The names in a store for completion in a shell, read without opening it as a store.

Opening a store takes a quarter of a second, most of it imports that only transactions need. This module reads the file
directly: it creates, changes and locks nothing, waits for nothing, and returns no names when the file cannot be read.

A query is short however many jobs there are: names come from small tables, or are searched in an index one by one. In a
store without these indexes, or with damaged ones, it is aborted."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from spinney.model.values.paths import beside
from spinney.model.values.store_urls import database_file
from spinney.store.skip_scan import distinct

MOST = 100
"""The most names of one answer; for others the user types another letter."""
LATEST = 1_000
"""How many rows of tables that grow (nodes, holds on single jobs) are read, the newest first."""
_STRIDE, _STRIDES = 1_000, 200
"""A query is aborted after so many times so many steps of SQLite's virtual machine: some ms."""
_LAST = "\U0010ffff"
"""Sorts after every other character."""


def _listed(table: str, column: str, also: str = "true") -> str:
    where = f"{column} >= :low and {column} < :high and {also}"
    return f"select distinct {column} from {table} where {where} order by 1 limit {MOST}"


def _sought(table: str, column: str) -> str:
    return distinct(table, column, f"{column} is not null and {column} < :high", begin=":low", most=MOST)


def _latest(table: str, column: str, also: str = "true") -> str:
    rows = (
        f"(select cast({column} as text) as name from {table} where {also} order by id desc limit {LATEST})"
    )
    return _listed(rows, "name")


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
    "inbox": _listed("inboxes", "name"),
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
"""The statements by kind of name."""


def names(url: str, kind: str, begins: str = "", **values: str | None) -> list[str]:
    """Return up to ``MOST`` names of this kind in the store of a URL, in order; none when it cannot be read.

    ``values``: the ``type`` of the stages, the ``lock`` of the owners, the ``default`` queue.
    """
    path = database_file(url)
    if path is None or not path.is_file():  # a pipe would be waited for
        return []
    bounds = {"low": begins, "high": begins + _LAST}
    try:
        rows = _read(path, SQL[kind], {**bounds, **values})
    except (sqlite3.Error, ValueError, OSError):
        return []  # No store, another schema, or not ours to read: nothing can be completed.
    return [name for (name,) in rows if isinstance(name, str)]


def _read(path: Path, sql: str, values: Mapping[str, str | None]) -> list[tuple[object]]:
    # When no process has the file open there is no log beside it, and it is opened as immutable: otherwise SQLite would
    # create the log's files. Where there is a log, its index is only read, too.
    log = beside(path, "-wal").exists()
    how = "mode=ro&readonly_shm=1" if log else "mode=ro&immutable=1"
    file = f"file:{quote(str(path.absolute()))}?{how}"
    strides = iter(range(_STRIDES))
    with closing(sqlite3.connect(file, uri=True, timeout=0)) as connection:
        connection.set_progress_handler(lambda: next(strides, None) is None, _STRIDE)
        return connection.execute(sql, values).fetchall()
