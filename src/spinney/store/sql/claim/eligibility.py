"""The lanes and slots that a claim may use, as far as that is known before any job is looked at."""

from spinney.model.jobs import ClaimRequest, SlotRequest
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import nodes
from spinney.store.sql.registry.registry import Lane, Registry


def lanes(tx: Tx, registry: Registry, claim_request: ClaimRequest, now_us: int) -> list[Lane]:
    """Return the lanes from which the node may get jobs now: those that it can run, in queues and homes
    that it may serve, that no hold stops and that are not asleep. When a stage was put to sleep, one of its jobs probes
    at a time."""
    closed = registry.closed_to(tx, claim_request.node_id)
    # Looked up once for each stage: it may have thousands of lanes.
    waiting = {
        stage
        for stage, lane in registry.probing.items()
        if stage in claim_request.lanes and _awake(lane, now_us) and _probe_is_out(tx, registry, lane)
    }
    return [
        lane
        for lane in registry.lanes.values()
        if (lane.type, lane.stage) in claim_request.lanes
        and lane.id not in closed
        and lane.id not in registry.stopped_lanes
        and _awake(lane, now_us)
        and (lane.type, lane.stage) not in waiting
    ]


def _awake(lane: Lane, now_us: int) -> bool:
    return lane.asleep_until_us is None or lane.asleep_until_us <= now_us


def _probe_is_out(tx: Tx, registry: Registry, lane: Lane) -> bool:
    """Return whether a job of a stage that was put to sleep is probing; the others wait for it, in all queues. One that
    began before the stage slept is no probe, and may run for hours."""
    sql = (
        "select 1 from leases where lane in (select j.value from json_each(?) j) and claimed_us >= ? limit 1"
    )
    return tx.exists(sql, (registry.beside(lane), lane.asleep_until_us or 0))


def slots(
    tx: Tx, registry: Registry, claim_request: ClaimRequest
) -> tuple[list[SlotRequest], list[SlotRequest]]:
    """Return the free slots and those that may get jobs ahead; no more than the node has, over all its incarnations
    (one that is being replaced shares the slots of its successor). None while more are occupied than that, because
    an operator has reduced their number, and none for a node that drains or is drained."""
    seated = nodes.seated(tx, claim_request.node_id, registry.watermarks.fence)
    if seated is None or not seated[0].claims:
        return [], []
    claimant, occupied = seated
    own: set[int] = set()
    others: set[int] = set()
    for owner, slot in occupied:
        (own if owner == claim_request.node_id else others).add(slot)
    room = claimant.slots - len(own | others)
    if room < 0:
        return [], []
    requests = [s for s in claim_request.slots if s.slot not in others and s.jobs > 0]
    free = [s for s in requests if s.free and s.slot not in own][:room]
    return free, [s for s in requests if s.slot in own]
