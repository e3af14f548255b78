"""Keeping a slot: the next stage of a job starts at once where the one before has passed, without a claim.

That spares the job the way through ``ready``. It must not let the job overtake what a claim would have taken first, or
break a rule that a claim would have kept: limits, pins, holds, locks, sleeping lanes, the serial order.
"""

from spinney.model.errors import BadParameters
from spinney.model.jobs import ClaimRequest, Lease
from spinney.model.types import StageSpec
from spinney.store.sql.record.plain_completions import HeldLease
from spinney.store.sql.registry import hold_coverage, nodes
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.nodes import Claimant
from spinney.store.sql.registry.ready_order import ready_share
from spinney.store.sql.registry.registry import effective_queue
from spinney.store.sql.transitions import locks, placement
from spinney.store.sql.transitions.cascades import Cascade


def keep(
    cascade: Cascade,
    row: Row,
    stage: str,
    lease: HeldLease,
    claim_request: ClaimRequest,
    claimant: Claimant | None,
    *,
    checked: bool,
) -> Lease | None:
    """Lease the next stage to the slot of the last one; return None where it has to go through ``ready``.

    The caller has deleted the lease of the last stage and recorded its attempt, and all others of the flush. The job is
    in no serial tree. Apart from a new lane, nothing is written before the rules were checked; the locks of the next
    stage are taken last, all or none. ``claimant``: the node of the lease. ``checked``: the job is plain, so that it
    has no needs, no open or failed children and no cancel request, and its row has the next stage already."""
    spec = cascade.registry.types[row.type]
    before, after = spec.stage(row.stage or ""), spec.stage(stage)
    if (
        (row.type, stage) not in claim_request.lanes
        or before is None
        or after is None
        or before.isolation != after.isolation
        or effective_queue(spec, stage, row.queue_moved, row.queue_named, row.queue_parent) != row.queue
        or hold_coverage.first(cascade.tx, cascade.registry.holds, row, row.queue) is not None
        or (not checked and _must_stop(cascade, row))
    ):
        return None
    lane_id = cascade.registry.lane(
        cascade.tx, row.queue, row.type, stage, cascade.registry.homes.of(cascade.tx, row.node_id)
    )
    if not _may_stay(cascade, row, lane_id, lease, claimant) or not _locked(cascade, row, after):
        return None
    if checked:
        params, trace = cascade.tx.one("select params, trace from jobs where id = ?", (row.id,))
    else:
        ((params, trace),) = cascade.tx.all(
            "update jobs set stage = ? where id = ? returning params, trace", (stage, row.id)
        )
    fence = _lease(cascade, row, after, lane_id, lease)
    return Lease(row.id, fence, lease.slot, row.type, stage, 1, params, row.parent_id, row.root_id, trace)


def _must_stop(cascade: Cascade, row: Row) -> bool:
    """Return whether the job must not go on at all, or has to wait for something."""
    tx, registry = cascade.tx, cascade.registry
    if placement.cancel_reason(tx, row) is not None:
        return True
    if placement.is_strict(registry, row) and placement.bad_child(tx, row.id) is not None:
        return True
    # A needed job may have been opened again since the claim.
    return placement.needs_left(tx, row.id) != (False, None)


def _may_stay(cascade: Cascade, row: Row, lane_id: int, lease: HeldLease, claimant: Claimant | None) -> bool:
    """Return whether a claim could give this lane to the slot, and nothing more urgent is ready: no lane of
    the same home, or of none, has a job of a lower priority number. Whether this node could run that one is
    not considered: to go through ``ready`` costs little, and is always right."""
    tx, registry = cascade.tx, cascade.registry
    lane = registry.lanes[lane_id]
    if (
        lane.asleep_until_us is not None
        or lane_id in registry.closed_to(tx, lease.node_id)
        or not nodes.may_keep(tx, claimant, lease.node_id, lease.slot)
    ):
        return False
    limit = nodes.ServingSlots(tx).limit(registry.queue(row.queue))
    if limit is not None and len(registry.occupied(tx, row.queue) | {(lease.node_id, lease.slot)}) > limit:
        return False
    return not tx.exists(
        "select 1 from lanes l where l.home in (0, ?) "
        "and (select 1 from ready r where r.lane = l.id and r.priority < ? limit 1) is not null limit 1",
        (lane.home, row.priority),
    )


def _locked(cascade: Cascade, row: Row, stage: StageSpec) -> bool:
    """Take the locks of the stage; return whether it has them all."""
    lock_templates = [(lock.template, lock.until) for lock in stage.locks]
    if not lock_templates:
        return True
    tx, registry, freed = cascade.tx, cascade.registry, cascade.freed_locks
    try:
        return locks.take(tx, registry, row.id, lock_templates, cascade.now_us, freed=freed) is None
    except BadParameters:
        return False  # the claim reports it


def _lease(cascade: Cascade, row: Row, stage: StageSpec, lane_id: int, lease: HeldLease) -> int:
    """Write the lease of the next stage, for its first attempt, and return its fence, a new one."""
    tx = cascade.tx
    fence = tx.take("fence")
    tx.run(
        "insert into leases (job_id, fence, node_id, slot, lane, share, attempt, parent_id, plain, claimed_us) "
        "values (?, ?, ?, ?, ?, ?, 1, ?, ?, ?)",
        (
            row.id,
            fence,
            lease.node_id,
            lease.slot,
            lane_id,
            ready_share(cascade.registry.queue(row.queue), row.share),
            row.parent_id,
            lease.plain and not stage.locks,
            cascade.now_us,
        ),
    )
    if stage.locks:
        locks.fence_claimed(tx, [(fence, row.id)])
    return fence
