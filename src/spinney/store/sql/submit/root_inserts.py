"""Inserts of root jobs, the usual case. With a server, common columns are sent once, beside the list of parameters, so
that one job costs one exchange and many jobs cost one with a long list.

With SQLite that has no advantage: a statement for each row costs a microsecond.
"""

from collections.abc import Sequence

from spinney.model.lineage import lineage
from spinney.model.types import QueueSpec
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.connection.postgres_dialect import array
from spinney.store.sql.registry.ready_order import POSITIONS, share_sql

Head = tuple[str, str, str, str, int]
"""(type, state, stage, queue, priority)."""
Tail = tuple[int, str | None, str | None, str | None, int | None, str | None]
"""(created_us, collection, submitter, queue named, at_us, trace)."""

_UNTRACED = (
    "id, type, state, stage, queue, priority, share, lineage, root_id, params, created_us, collection, submitter, "
    "queue_named, at_us"
)
_COLUMNS = f"{_UNTRACED}, trace"
# Rows of ``jobs`` from an array of parameters, with ids from n.first on (``ordinality`` counts from 1). The
# lineage of a root is its id with leading zeros; a share of null stands for the first id of the call.
_MADE = (
    f"insert into jobs ({_COLUMNS}) "
    "select n.first + k.key - 1, cast(? as text), cast(? as text), cast(? as text), "
    "cast(? as text), cast(? as integer), coalesce(cast(? as bigint), n.first), "
    "lpad(cast(n.first + k.key - 1 as text), 12, '0'), n.first + k.key - 1, k.params, cast(? as bigint), "
    "cast(? as text), cast(? as text), cast(? as text), cast(? as bigint), cast(? as text) "
    "from n cross join unnest(cast(? as text[])) with ordinality as k(params, key)"
)
_WITH_IDS = f"with n as (select cast(? as bigint) as first) {_MADE}"
# The same, with ids from the counter, and the rows of ``ready``: all in one statement, so in one exchange.
_NEW = (
    "with n as (update counters set value = value + ? where name = 'job' returning value - ? + 1 as first), "
    f"made as ({_MADE} returning id, priority, share, lineage), "
    "placed as (insert into ready (lane, priority, share, position, job_id) "
    "select cast(? as bigint), jobs.priority, {share}, {position}, jobs.id from made jobs) select first from n"
)


_PLACED = (
    "insert into ready (lane, priority, share, position, job_id) "
    "select ?, jobs.priority, {share}, {position}, jobs.id from jobs where jobs.id between ? and ?"
)


def write(tx: Tx, head: Head, share: int, first_id: int, params: Sequence[str], tail: Tail) -> None:
    """Write the rows in ``jobs``, one for each text of ``params``, with ids from ``first_id`` on that were
    assigned before. They are not made claimable."""
    if tx.postgresql:
        tx.run(_WITH_IDS, (first_id, *head, share, *tail, array(params)))
        return
    # One value less in each row is 4 % of a large submission, and most have no trace.
    columns, common = (_UNTRACED, tail[:-1]) if tail[-1] is None else (_COLUMNS, tail)
    rows = [(i, *head, share, lineage(i), i, text, *common) for i, text in enumerate(params, first_id)]
    tx.insert("jobs", columns, rows)


def accept(
    tx: Tx, queue: QueueSpec, lane: int, head: Head, share: int | None, params: Sequence[str], tail: Tail
) -> int:
    """Assign ids, write the rows and make the jobs claimable, all at once; return the first id. ``share``: None for a
    share of this call alone."""
    if not tx.postgresql:
        return _accept_in_file(tx, queue, lane, head, share, params, tail)
    sql = _NEW.format(share=share_sql(queue), position=POSITIONS[queue.order])
    first: int = tx.value(sql, (len(params), len(params), *head, share, *tail, array(params), lane))
    return first


def _accept_in_file(
    tx: Tx, queue: QueueSpec, lane: int, head: Head, share: int | None, params: Sequence[str], tail: Tail
) -> int:
    first = tx.take("job", len(params))
    write(tx, head, first if share is None else share, first, params, tail)
    placed = _PLACED.format(share=share_sql(queue), position=POSITIONS[queue.order])
    tx.run(placed, (lane, first, first + len(params) - 1))
    return first
