"""Inserts of jobs whose rows differ in id and parameters alone: the usual case, by one statement for all rows.

The columns that the rows have in common are sent once, beside the list of parameters. With a server one job costs one
exchange then, and many jobs cost one with a long list. With SQLite it is a statement for each row that would be slow:
the driver binds all values of each, which takes three times as long as the insertion itself.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from spinney.model.settings.queues import QueueSpec
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.connection.postgres_dialect import array
from spinney.store.sql.registry.ready_order import POSITIONS, padded, share_sql

Common = Mapping[str, Any]
"""The columns that are the same in all rows, by their names; those of null are left out of the statement. Roots lack
``root_id``, which is their own id."""

LIST_CHARS = 2**24
"""How long the parameters of one statement are at most: a database file takes no text of more than a billion bytes."""

_KINDS = dict.fromkeys(("share", "root_id", "parent_id", "created_us", "at_us"), "bigint") | {
    "priority": "integer",
    "special": "smallint",
}
"""The PostgreSQL types of columns that are not text."""


def write(tx: Tx, common: Common, first_id: int, parent_path: str | None, params: Sequence[str]) -> None:
    """Write the rows in ``jobs``, one for each text of ``params``, with ids from ``first_id`` on that were assigned
    before. They are not made claimable. ``parent_path``: the lineage of their parent; None: they are roots."""
    names, values = _not_null(common)
    prefix = "" if parent_path is None else f"{parent_path}."
    if tx.postgresql:
        tx.run(
            f"with n as (select cast(? as bigint) as first) {_made(names)}",
            (first_id, *values, prefix, array(params)),
        )
        return
    step = max(1, LIST_CHARS // max(map(len, params)))
    for start in range(0, len(params), step):
        part = params[start : start + step]
        tx.run(_listed(names), (first_id + start, prefix, list_text(part), *values))


def accept(tx: Tx, queue: QueueSpec, lane: int, common: Common, params: Sequence[str]) -> int:
    """Assign ids to roots, write the rows and make the jobs claimable, all at once; return the first id. A ``share`` of
    None stands for a share of this call alone, which is the first id."""
    ready = share_sql(queue), POSITIONS[queue.order]
    if tx.postgresql:
        names, values = _not_null(common)
        total = len(params)
        first: int = tx.value(_new(names, *ready), (total, total, *values, "", array(params), lane))
        return first
    first = tx.take("job", len(params))
    share = first if common["share"] is None else common["share"]
    write(tx, {**common, "share": share}, first, None, params)
    tx.run(_placed(*ready), (lane, first, first + len(params) - 1))
    return first


def _not_null(common: Common) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the names and values of the columns that are not null."""
    columns = {name: value for name, value in common.items() if value is not None}
    return tuple(columns), tuple(columns.values())


@lru_cache(maxsize=256)
def _listed(names: tuple[str, ...]) -> str:
    """Return the statement for SQLite: ?1 first id, ?2 beginning of the lineages, ?3 list of parameters, and the values
    of ``names``."""
    expressions = {name: f"?{number}" for number, name in enumerate(names, 4)}
    return f"{_insert(expressions, '?1 + j.key', '?2', 'j.value')} from json_each(?3) j"


@lru_cache(maxsize=256)
def _made(names: tuple[str, ...]) -> str:
    """Return the statement for PostgreSQL, with ids from n.first on (``ordinality`` counts from 1): the values of
    ``names``, the beginning of the lineages, the array of parameters."""
    expressions = {name: f"cast(? as {_KINDS.get(name, 'text')})" for name in names}
    expressions.setdefault("share", "n.first")
    return (
        f"{_insert(expressions, 'n.first + k.key - 1', 'cast(? as text)', 'k.params')} "
        "from n cross join unnest(cast(? as text[])) with ordinality as k(params, key)"
    )


def _insert(common: Mapping[str, str], job_id: str, prefix: str, params: str) -> str:
    """Return the insertion of rows that a list is made into, up to the list: the expression of each column. ``common``:
    those of the common columns; ``prefix``: that of the beginning of the lineages."""
    columns = dict(common)
    columns.setdefault("root_id", job_id)
    columns |= {"id": job_id, "lineage": f"{prefix} || {padded(job_id)}", "params": params}
    return f"insert into jobs ({', '.join(columns)}) select {', '.join(columns.values())}"


@lru_cache(maxsize=256)
def _new(names: tuple[str, ...], share: str, position: str) -> str:
    """Return the statement for PostgreSQL that also takes ids from the counter and writes the rows of ``ready``: it is
    one exchange."""
    return (
        "with n as (update counters set value = value + ? where name = 'job' returning value - ? + 1 as first), "
        f"made as ({_made(names)} returning id, priority, share, lineage), "
        "placed as (insert into ready (lane, priority, share, position, job_id) "
        f"select cast(? as bigint), jobs.priority, {share}, {position}, jobs.id from made jobs) select first from n"
    )


def _placed(share: str, position: str) -> str:
    return (
        "insert into ready (lane, priority, share, position, job_id) "
        f"select ?, jobs.priority, {share}, {position}, jobs.id from jobs where jobs.id between ? and ?"
    )
