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
    total = sum(map(len, given.values()))
    tx.passed_on(total)
    registry.marks.granted(total)
    # On a server the numbers come with the leases where one statement writes all of these.
    fence = None if tx.postgresql and len(given) == 1 else tx.take("fence", total)
    leases: list[Lease] = []
    for (slot, lane_id), ids in given.items():
        lane = registry.lanes[lane_id]
        needs_locks = bool(want.lanes[(lane.type, lane.stage)].locks)
        shared = registry.queue(lane.queue).shared != "none"
        listed = orjson.dumps(ids).decode()
        values = (want.node_id, slot, lane_id, shared, not needs_locks, now_us)
        if fence is None:
            found = tx.all(_NUMBER_AND_GRANT, (total, total, listed, *values, slot, lane.type, lane.stage))
        elif tx.postgresql:
            found = tx.all(_GRANT, (fence, listed, *values, slot, lane.type, lane.stage))
        else:
            tx.run(_INSERT_LEASES, (fence, *values, listed))
            found = [
                (job_id, fence + at, slot, lane.type, lane.stage, attempt, params, parent_id, root_id)
                for job_id, at, attempt, params, parent_id, root_id in tx.all_at_once(*_LEASED, (listed,))
            ]
        granted = list(map(Lease._make, found))
        if needs_locks:
            for lease in granted:
                locks.fence_claimed(tx, lease.job_id, lease.fence)
        leases += granted
        fence = None if fence is None else fence + len(ids)
    return leases


_INSERT_LEASES = (
    "insert into leases (job_id, fence, node_id, slot, lane, share, attempt, parent_id, plain, claimed_us) "
    "select jobs.id, ? + j.key, ?, ?, ?, jobs.share * ?, jobs.attempts + 1, jobs.parent_id, "
    "case when ? = 1 and jobs.special is null then 1 else 0 end, ? from json_each(?) j join jobs on jobs.id = j.value"
)
_LEASED = (
    "jobs.id, j.key, jobs.attempts + 1, jobs.params, jobs.parent_id, jobs.root_id",
    "from json_each(?) j cross join jobs where jobs.id = j.value",
)
"""What a Lease says of its job, in the order of the list."""

# Both in one, so that each job's row is looked up once.
_GRANTING = (
    "given as materialized ("
    "select jobs.id, n.first + j.key as fence, j.key, jobs.share, jobs.attempts + 1 as attempt, jobs.params, "
    "jobs.parent_id, jobs.root_id, jobs.special from n cross join json_each(?) j join jobs on jobs.id = j.value), "
    "written as (insert into leases "
    "(job_id, fence, node_id, slot, lane, share, attempt, parent_id, plain, claimed_us) "
    "select id, fence, ?, ?, ?, share * ?, attempt, parent_id, case when ? = 1 and special is null then 1 else 0 end, "
    "? from given) "
    "select id, fence, cast(? as integer), cast(? as text), cast(? as text), attempt, params, parent_id, root_id "
    "from given order by key"
)
_GRANT = f"with n as (select cast(? as bigint) as first), {_GRANTING}"
_NUMBER_AND_GRANT = (
    "with n as (update counters set value = value + ? where name = 'fence' returning value - ? + 1 as first), "
    f"{_GRANTING}"
)
