"""The state of an open job: one rule for new, returned, woken, released and reopened jobs.

It is determined anew each time, in this order: a cancel request, a future time, needs, open children of
earlier stages, the serial order, a hold; when none of them applies, it is in ``ready``.
``cascades.Cascade.place`` asks these questions; this module has the statements that answer them, and (``Placement``)
those that put a job into ``ready`` or ``inactive_jobs``.

An open job that is not leased has a row in exactly one of these two tables, except while a long submission is
being placed. Locks are not in the list: a claim finds out whether they are free, and lets the job wait."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from spinney.model.errors import SpinneyError
from spinney.model.lineage import ancestors
from spinney.model.states import SETTLED, State
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.ready_order import POSITIONS, position, ready_share, share_sql
from spinney.store.sql.registry.registry import Registry, effective_queue


def cancel_reason(tx: Tx, row: Row) -> str | None:
    """Return the reason of a cancel request on the job or (for its tree) on an ancestor, as a predicate:
    ``cancelled by ann: too many``. None: there is none. Where nobody cancels anything, which is usual,
    this costs one look into an empty table."""
    if not tx.exists("select 1 from cancel_requests limit 1"):
        return None
    return tree_cancel_reason(tx, ancestors(row.lineage)) or _cancel_reason(tx, row.id, (False, True))


def tree_cancel_reason(tx: Tx, job_ids: Iterable[int]) -> str | None:
    """Return the reason of the first cancel request for a tree on one of these jobs; None: there is none."""
    reasons = (_cancel_reason(tx, job_id, (True,)) for job_id in job_ids)
    return next((reason for reason in reasons if reason is not None), None)


def _cancel_reason(tx: Tx, job_id: int, tree: Collection[bool]) -> str | None:
    """Return the reason of the cancel request on this job. ``tree``: whether requests for a whole tree count, or those
    for the job alone."""
    request = tx.one("select by, reason, tree from cancel_requests where job_id = ?", (job_id,))
    if request is None or bool(request[2]) not in tree:
        return None
    return f"cancelled by {request[0]}" + (f": {request[1]}" if request[1] else "")


class Placement:
    """The writes of one transaction that put open jobs into ``ready`` or ``inactive_jobs``, and take them out."""

    def __init__(self, tx: Tx, registry: Registry, now_us: int) -> None:
        self.tx, self.registry, self.now_us = tx, registry, now_us

    def to_ready(self, row: Row, *, leased: bool = False) -> None:
        """Make the job claimable for its stage; one that a hold covers is held instead.

        The hold is checked last, so that ``held`` means that only the hold keeps the job. ``leased``: its lease has
        just been taken away. Raises SpinneyError for a job without a stage to run.
        """
        tx, registry = self.tx, self.registry
        if row.stage is None:
            raise SpinneyError(f"job {row.id} has no stage left to run; 'spinney doctor' explains")
        spec = registry.types.get(row.type)
        queue_name = row.queue_moved or row.queue
        if spec is not None:
            queue_name = effective_queue(spec, row.stage, row.queue_moved, row.queue_named, row.queue_parent)
        queue = registry.queue(queue_name)
        if queue_name != row.queue:
            tx.run("update jobs set queue = ? where id = ?", (queue_name, row.id))
        hold = hold_coverage.first(tx, registry.holds, row, queue_name)
        if hold is not None:
            waits_for = hold_coverage.HELD_BY_HOLD
            self.set_aside(row, State.HELD, waits_for=waits_for, reason=str(hold), leased=leased)
            return
        if row.state is not State.PENDING:
            tx.run("delete from inactive_jobs where job_id = ?", (row.id,))
        if row.state is not State.PENDING or leased:
            job_rows.set_state(tx, row, State.PENDING, leased=leased)
        lane = registry.lane_to_fill(tx, queue_name, row.type, row.stage, registry.homes.of(tx, row.node_id))
        key = (row.priority, ready_share(queue, row.share), position(queue, row.id, row.lineage))
        tx.run(
            "insert into ready (lane, priority, share, position, job_id) values (?, ?, ?, ?, ?)",
            (lane, *key, row.id),
        )
        registry.watermarks.entered(tx, lane, key)

    def leave_ready(self, row: Row) -> bool:
        """Remove a pending job from ``ready``, by its key there, and return whether it was there: a job of a long
        submission that is not placed yet was not."""
        tx, registry = self.tx, self.registry
        queue = registry.queue(row.queue)
        assert row.stage is not None
        tx.run(
            "delete from ready where lane = ? and priority = ? and share = ? and position = ?",
            (
                registry.lane(tx, row.queue, row.type, row.stage, registry.homes.of(tx, row.node_id)),
                row.priority,
                ready_share(queue, row.share),
                position(queue, row.id, row.lineage),
            ),
        )
        return tx.changed() > 0

    def set_aside(
        self,
        row: Row,
        state: State,
        *,
        wake_us: int | None = None,
        waits_for: str | None = None,
        reason: str | None = None,
        fingerprint: str | None = None,
        lock_request: tuple[int, int | None] | None = None,
        leased: bool = False,
        also: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the job inactive in this state. The caller has removed it from ``ready`` or taken its lease away.
        ``lock_request``: amount and named capacity of the lock that it waits for, unless they are 1 and none.
        ``wake_us``: when it becomes due; ``waits_for``: as ``Job.waits_for``, and for a failed job ``children`` or
        ``needs`` if they are the cause; ``reason``: a text for people; ``fingerprint``: that of its failure.
        ``leased``: its lease has just been taken away. ``also``: the values of further columns of its row, where the
        state changes."""
        tx, columns = self.tx, dict(also or {})
        if leased and row.queue_moved not in (None, row.queue):
            # It was moved while it had the lease, which was of the old queue.
            columns["queue"] = row.queue_moved
        if row.state is not state or leased:
            job_rows.set_state(tx, row, state, leased=leased, also=columns)
        tx.run(
            "insert into inactive_jobs (job_id, state, since_us, wake_us, waits_for, priority, reason, fingerprint, "
            "wants_amount, wants_capacity) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "on conflict (job_id) do update set state = excluded.state, since_us = excluded.since_us, "
            "wake_us = excluded.wake_us, waits_for = excluded.waits_for, "
            "priority = excluded.priority, reason = excluded.reason, fingerprint = excluded.fingerprint, "
            "wants_amount = excluded.wants_amount, wants_capacity = excluded.wants_capacity",
            (
                row.id,
                state,
                self.now_us,
                wake_us,
                waits_for,
                row.priority,
                reason,
                fingerprint,
                *(lock_request or (None, None)),
            ),
        )


def enter(tx: Tx, registry: Registry, lane_id: int, ids: Sequence[int]) -> None:
    """Make pending jobs of a lane claimable. The caller has taken their leases away, or is about to."""
    queue = registry.queue(registry.lanes[lane_id].queue)
    jobs, listed = "jobs where jobs.id in (select j.value from json_each(?) j)", list_text(ids)
    tx.run(
        "insert into ready (lane, priority, share, position, job_id) "
        f"select ?, jobs.priority, {share_sql(queue)}, {POSITIONS[queue.order]}, jobs.id from {jobs}",
        (lane_id, listed),
    )
    registry.watermarks.entered_among(tx, lane_id, queue, jobs, (listed,))


def is_serial(tx: Tx, registry: Registry, row: Row) -> bool:
    """Return whether the job is in a tree whose jobs run one at a time, in the order of their lineages."""
    if row.parent_id is None:
        return False
    spec = registry.types.get(tx.value("select type from jobs where id = ?", (row.root_id,)))
    return spec is not None and spec.serial


def another_of_tree_runs(tx: Tx, row: Row) -> bool:
    """Return whether another job of the tree runs, by the leases, of which there are no more than slots and jobs ahead;
    a tree may have any number of jobs."""
    return tx.exists(
        "select 1 from leases l where l.parent_id is not null and l.job_id <> ? "
        "and (select root_id from jobs where id = l.job_id) = ? limit 1",
        (row.id, row.root_id),
    )


def is_strict(registry: Registry, row: Row) -> bool:
    """Return whether the job may only continue when all its children have completed. So is a job whose type is not
    registered any more."""
    spec = registry.types.get(row.type)
    return spec is None or spec.children == "completed"


def open_children(tx: Tx, job_id: int) -> bool:
    """Return whether a child is still open (also when not all accepted children are placed yet)."""
    return tx.exists(
        "select 1 where exists (select 1 from children_left where parent_id = ? and bad = 0) "
        "or exists (select 1 from staging where parent_id = ? and published = 1)",
        (job_id, job_id),
    )


def bad_child(tx: Tx, job_id: int, *, cancelled_too: bool = True) -> int | None:
    """Return a child that has settled without completing, any one; None: there is none. A batch that accepts
    any outcome of its children (``cancelled_too=False``) does not fail because of cancelled ones."""
    sql = "select child_id from children_left where parent_id = ? and bad = 1 limit 1"
    if not cancelled_too:
        sql = (
            "select child_id from children_left join jobs on jobs.id = child_id "
            "where children_left.parent_id = ? and bad = 1 and jobs.state <> 'cancelled' limit 1"
        )
    child_id: int | None = tx.value(sql, (job_id,))
    return child_id


def needs_left(tx: Tx, job_id: int) -> tuple[bool, tuple[int, str] | None]:
    """Return (whether a need is still open, a need that did not complete and its state). Reading ends at the
    first need that did not complete, which decides alone; the other answer may be incomplete then."""
    still_open = False
    for need_id, state in tx.all(
        # A need that retention has removed before it completed counts as deleted.
        "select n.need_id, coalesce(j.state, 'deleted') from needs n left join jobs j on j.id = n.need_id "
        "where n.job_id = ?",
        (job_id,),
    ):
        if state not in SETTLED:
            still_open = True
        elif state != State.COMPLETED:
            return still_open, (need_id, state)
    return still_open, None


# --- children by the stages that spawned them -------------------------------------------------

# A stage waits for the children of the stages before it. Children of the stage itself are no reason to wait: an earlier
# attempt of it spawned them by their keys, and did not pass.

# The children of a job (open or bad ones) that other stages than this one spawned. ``is distinct from``,
# because a job that has passed all stages has none.
_OLDER = (
    "from children_left join jobs on jobs.id = child_id "
    "where children_left.parent_id = ? and bad = ? and jobs.spawn_stage is distinct from ?"
)
_ENDINGS: dict[str, str] = {
    State.FAILED: "failed",
    State.CANCELLED: "was cancelled",
    State.DELETED: "was deleted",
}


def older_open(tx: Tx, row: Row) -> bool:
    """Return whether children of other stages than the current one are open."""
    return open_children(tx, row.id) and tx.exists(f"select 1 {_OLDER} limit 1", (row.id, 0, row.stage))


def older_stages_with_open(tx: Tx, row: Row) -> list[str | None]:
    """Return the stages other than the current one that spawned children which are open."""
    if not older_open(tx, row):
        return []
    return tx.column(f"select distinct jobs.spawn_stage {_OLDER}", (row.id, 0, row.stage))


def older_stages_run_since(tx: Tx, row: Row, fence: int) -> list[str | None]:
    """Return the stages other than the current one that spawned children of which an attempt was claimed after this
    fence, that of an attempt of their parent: they were opened again meanwhile. All children are read."""
    return tx.column(
        "select distinct spawn_stage from jobs where parent_id = ? and superseded is null "
        "and spawn_stage is distinct from ? "
        # Not by the view ``history``, of which SQLite would read all jobs first.
        "and (final_fence > ? or exists (select 1 from attempts a where a.job_id = jobs.id and a.fence > ?))",
        (row.id, row.stage, fence, fence),
    )


def older_bad(tx: Tx, row: Row) -> int | None:
    """Return a failed child of another stage than the current one; None: there is none."""
    if bad_child(tx, row.id) is None:
        return None
    child_id: int | None = tx.value(f"select child_id {_OLDER} limit 1", (row.id, 1, row.stage))
    return child_id


def because_of(tx: Tx, child_id: int) -> str:
    """Return why a job fails because of this child."""
    return f"its subjob {child_id} {ending(tx.value('select state from jobs where id = ?', (child_id,)))}"


def ending(state: str) -> str:
    """Return how a job has ended, as the predicate of a sentence; ``service.visibility`` recognizes these sentences."""
    return _ENDINGS.get(state, f"is {state}")
