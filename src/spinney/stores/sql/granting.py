"""Writing leases: the right to run what a claim has chosen."""

from collections.abc import Sequence

import orjson

from spinney.model.jobs import Lease, Want
from spinney.stores.sql import locks
from spinney.stores.sql.database import Tx
from spinney.stores.sql.registry import Registry
from spinney.stores.sql.supply import Chosen


def grant(tx: Tx, registry: Registry, want: Want, chosen: Sequence[Chosen], now_us: int) -> list[Lease]:
    """Write the leases of what was chosen; in the order in which each slot shall run them."""
    if not chosen:
        return []
    lanes = registry.lanes
    sql = (
        "select jobs.id, jobs.attempts, jobs.params, jobs.parent_id, jobs.root_id from json_each(?) j "
        "join jobs on jobs.id = j.value"
    )
    found = {r[0]: r for r in tx.all(sql, (orjson.dumps([c.job_id for c in chosen]).decode(),))}
    groups: dict[tuple[int, int], list[int]] = {}
    for c in chosen:
        groups.setdefault((c.slot, c.lane), []).append(c.job_id)
    fence = tx.take("fence", len(chosen))
    leases: list[Lease] = []
    for (slot, lane_id), ids in groups.items():
        lane = lanes[lane_id]
        needs_locks = bool(want.lanes[(lane.type, lane.stage)].locks)
        shared = registry.queue(lane.queue).shared != "none"
        tx.run(
            _INSERT_LEASES,
            (
                fence,
                want.node_id,
                slot,
                lane_id,
                shared,
                not needs_locks,
                now_us,
                orjson.dumps(ids).decode(),
            ),
        )
        if needs_locks:
            for n, job_id in enumerate(ids):
                locks.fence_claimed(tx, job_id, fence + n)
        type_, stage = lane.type, lane.stage
        leases += [
            Lease(i, n, slot, type_, stage, r[1] + 1, r[2], r[3], r[4])
            for n, (i, r) in enumerate(((i, found[i]) for i in ids), fence)
        ]
        fence += len(ids)
    return leases


_INSERT_LEASES = (
    "insert into leases (job_id, fence, node_id, slot, lane, share, attempt, parent_id, plain, claimed_us) "
    "select jobs.id, ? + j.key, ?, ?, ?, jobs.share * ?, jobs.attempts + 1, jobs.parent_id, "
    "? and jobs.special is null, ? from json_each(?) j join jobs on jobs.id = j.value"
)
