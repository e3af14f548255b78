"""Cancellation of many pending jobs at once, by set statements.

Most jobs of a tree that is cancelled are pending, and concern only their parent. One by one, each takes some twenty
statements: on a server that was a minute for 15,000 jobs, in which nodes began thousands of them. The written rows are
those of ``cascades.Cascade.settle`` (``tests/contract/test_cancel_moves.py`` compares the two ways), and the transition
is checked here, too: once, because all jobs make the same one."""

from collections.abc import Sequence

from spinney.model import states
from spinney.model.states import State
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.webhook_events import SettledJob, tell
from spinney.store.sql.transitions import ready_moves
from spinney.store.sql.transitions.cascades import Cascade
from spinney.store.sql.transitions.ready_moves import PlacedJob

_LISTED = "in (select j.value from json_each(?1) j)"
_CONCERNED = (
    f"select job_id from leases where job_id {_LISTED} union select job_id from locks where job_id {_LISTED} "
    f"union select need_id from needs where need_id {_LISTED} "
    f"union select parent_id from staging where parent_id {_LISTED} "
    "union select j.value from json_each(?1) j join staging s on j.value between s.first_id and s.last_id "
    "where s.published <> 1 "
    "union select j.value from json_each(?1) j "
    "where (select 1 from children_left c where c.parent_id = j.value limit 1) is not null"
)
"""Jobs of a list that are claimed, that have subjobs or locks, that others need, or whose submission is still being
written."""


def plain(tx: Tx, rows: Sequence[Row]) -> list[Row]:
    """Return the jobs of one tree among these that are pending, and whose cancellation concerns only their parents."""
    pending = [row for row in rows if row.state is State.PENDING and row.parent_id is not None]
    if not pending or tx.exists(
        "select 1 from serial_order where root_id = ? limit 1", (pending[0].root_id,)
    ):
        return []
    concerned = set(tx.column(_CONCERNED, (list_text([row.id for row in pending]),)))
    return [row for row in pending if row.id not in concerned]


def cancel(cascade: Cascade, rows: Sequence[Row], reason: str) -> None:
    """Cancel jobs that are ``plain``. The caller drains the cascade, which goes on with their parents."""
    if not rows:
        return
    tx, registry, now_us = cascade.tx, cascade.registry, cascade.now_us
    states.require(rows[0].id, State.PENDING, State.CANCELLED)
    listed = list_text([row.id for row in rows])
    ready_moves.out_of_ready(tx, ready_moves.keys(registry, [_placed(cascade, row) for row in rows]))
    tx.run(
        "update jobs set state = 'cancelled', settled_us = ? where id in (select j.value from json_each(?) j)",
        (now_us, listed),
    )
    tx.run(
        "insert into inactive_jobs (job_id, state, since_us, priority, reason) "
        "select jobs.id, 'cancelled', ?, jobs.priority, ? from jobs "
        "where jobs.id in (select j.value from json_each(?) j) on conflict (job_id) do update set "
        "state = excluded.state, since_us = excluded.since_us, wake_us = null, waits_for = null, "
        "priority = excluded.priority, reason = excluded.reason, fingerprint = null, wants_amount = null, "
        "wants_capacity = null",
        (now_us, reason, listed),
    )
    tx.run(
        "delete from children_left where (parent_id, bad, child_id) in (select parent_id, ?, id from jobs "
        "where id in (select j.value from json_each(?) j) and parent_id is not null)",
        (False, listed),
    )
    tx.run(
        "insert into children_left (parent_id, bad, child_id) select jobs.parent_id, ?, jobs.id from jobs "
        "where jobs.id in (select j.value from json_each(?) j) and jobs.superseded is null",
        (True, listed),
    )
    tx.run(
        "delete from keys where job_id in (select j.value from json_each(?) j) and forever = ?",
        (listed, False),
    )
    tx.run(
        "delete from cancel_requests where job_id in (select j.value from json_each(?) j) and tree = ?",
        (listed, False),
    )
    if registry.subscriptions:
        settled = [SettledJob(row.id, row.type, row.queue, top=False) for row in rows]
        tell(tx, registry.subscriptions, settled, State.CANCELLED, now_us)
    for parent_id in dict.fromkeys(row.parent_id for row in rows):
        assert parent_id is not None
        cascade.parent_changed(parent_id)


def _placed(cascade: Cascade, row: Row) -> PlacedJob:
    """Return the columns that determine the key of a job in ``ready``."""
    home = cascade.registry.homes.of(cascade.tx, row.node_id)
    return PlacedJob(row.id, row.queue, row.type, row.stage, row.priority, row.share, row.lineage, home)
