"""Writing leases: the right to run what a claim has chosen."""

from collections.abc import Mapping, Sequence

import orjson

from spinney.model.jobs import Lease, Want
from spinney.stores.sql import locks
from spinney.stores.sql.database import Tx
from spinney.stores.sql.registry import Registry


def grant(
    tx: Tx, registry: Registry, want: Want, given: Mapping[tuple[int, int], Sequence[int]], now_us: int
) -> list[Lease]:
    """Write the leases of what was given, (slot, lane) to job ids; in the order in which each slot shall
    run them."""
    if not given:
        return []
    fence = tx.take("fence", sum(map(len, given.values())))
    leases: list[Lease] = []
    for (slot, lane_id), ids in given.items():
        lane = registry.lanes[lane_id]
        needs_locks = bool(want.lanes[(lane.type, lane.stage)].locks)
        shared = registry.queue(lane.queue).shared != "none"
        listed = orjson.dumps(ids).decode()
        tx.run(_INSERT_LEASES, (fence, want.node_id, slot, lane_id, shared, not needs_locks, now_us, listed))
        if needs_locks:
            for n, job_id in enumerate(ids):
                locks.fence_claimed(tx, job_id, fence + n)
        leases += map(Lease._make, tx.all(_SELECT_LEASES, (fence, slot, lane.type, lane.stage, listed)))
        fence += len(ids)
    return leases


_INSERT_LEASES = (
    "insert into leases (job_id, fence, node_id, slot, lane, share, attempt, parent_id, plain, claimed_us) "
    "select jobs.id, ? + j.key, ?, ?, ?, jobs.share * ?, jobs.attempts + 1, jobs.parent_id, "
    "case when ? = 1 and jobs.special is null then 1 else 0 end, ? from json_each(?) j join jobs on jobs.id = j.value"
)
_SELECT_LEASES = (
    "select jobs.id, ? + j.key, ?, ?, ?, jobs.attempts + 1, jobs.params, jobs.parent_id, jobs.root_id "
    "from json_each(?) j join jobs on jobs.id = j.value order by j.key"
)
"""The fields of Lease, in its order."""
