"""Writing the leases of a claim, with one statement for each lane, for any number of slots.

Each job is passed as one number, ``job * places + place``. A place is a slot and a turn, ``slot * turns + turn``: the
jobs of one lane in a slot have one turn, those of its next lane the next. Fences grow from turn to turn, because they
determine the order within a slot. (A job's id has 40 bits, which leaves 23 for places.)"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import orjson

from spinney.model.jobs import ClaimRequest, Lease
from spinney.model.values.named_tuples import named
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.connection.postgres_dialect import each_row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import locks


def grant(
    tx: Tx,
    registry: Registry,
    claim_request: ClaimRequest,
    assigned: Mapping[tuple[int, int], Sequence[int]],
    now_us: int,
) -> list[Lease]:
    """Write the leases of ``assigned``, (slot, lane) to job ids; return them in the order in which each slot is to run
    them. The caller has removed the jobs from ``ready``.

    The row of a job in ``jobs`` is not written: that a job is claimed is read from its lease."""
    if not assigned:
        return []
    total = sum(map(len, assigned.values()))
    tx.passed_on(total)
    registry.watermarks.granted(total)
    turns = max(Counter(slot for slot, _ in assigned).values())
    places = (max(slot for slot, _ in assigned) + 1) * turns
    by_lane: dict[int, list[int]] = {}
    begun: Counter[int] = Counter()
    for (slot, lane_id), ids in assigned.items():
        place = slot * turns + begun[slot]
        begun[slot] += 1
        by_lane.setdefault(lane_id, []).extend([job_id * places + place for job_id in ids])
    # On a server one statement may both number and write the leases.
    fence = None if tx.postgresql and len(by_lane) == 1 else tx.take("fence", total * turns)
    leases: list[Lease] = []
    for lane_id, packed in by_lane.items():
        lane = registry.lanes[lane_id]
        needs_locks = bool(claim_request.lanes[(lane.type, lane.stage)].locks)
        shared = registry.queue(lane.queue).shared != "none"
        listed = (places, turns, total, orjson.dumps(packed).decode())
        values = (claim_request.node_id, lane_id, shared, not needs_locks, now_us)
        if fence is None:
            lease_rows = tx.all(_NUMBER_AND_GRANT, (total, total, *listed, *values, lane.type, lane.stage))
        elif tx.postgresql:
            lease_rows = tx.all(_GRANT, (fence, *listed, *values, lane.type, lane.stage))
        else:
            tx.run(_INSERT_LEASES, (fence, *listed, *values))
            rows = tx.all_at_once(*_LEASED, listed)
            lease_rows = [
                (job_id, fence + at, slot, lane.type, lane.stage, attempt, params, parent_id, root_id, trace)
                for job_id, at, slot, attempt, params, parent_id, root_id, trace in rows
            ]
        granted = list(named(Lease, lease_rows))
        if needs_locks:
            for lease in granted:
                locks.fence_claimed(tx, lease.job_id, lease.fence)
        leases += granted
        fence = None if fence is None else fence + len(packed)
    return leases if len(by_lane) == 1 else _in_order(leases, assigned)


def _in_order(leases: Iterable[Lease], assigned: Mapping[tuple[int, int], Sequence[int]]) -> list[Lease]:
    """Return the leases in the order of their assignment; the statements returned them lane by lane."""
    by_job = {lease.job_id: lease for lease in leases}
    return [by_job[job_id] for ids in assigned.values() for job_id in ids if job_id in by_job]


# Unpacked from each number: the job is value / places, the slot value % places / turns, the turn value %
# turns (places is a multiple of turns). The fence is first + index + turn * total: unique, and growing from
# turn to turn. ?1 first fence, ?2 places, ?3 turns, ?4 total, ?5 list, ?6 node, ?7 lane, ?8 whether the queue
# has shares, ?9 whether the stage takes no locks, ?10 now.
_INSERT_LEASES = (
    "insert into leases (job_id, fence, node_id, slot, lane, share, attempt, parent_id, plain, claimed_us) "
    "select jobs.id, ?1 + j.key + j.value % ?3 * ?4, ?6, j.value % ?2 / ?3, ?7, jobs.share * ?8, jobs.attempts + 1, "
    "jobs.parent_id, case when ?9 = 1 and jobs.special is null then 1 else 0 end, ?10 "
    "from json_each(?5) j cross join jobs where jobs.id = j.value / ?2"
)
_LEASED = (
    "jobs.id, j.key + j.value % ?2 * ?3, j.value % ?1 / ?2, jobs.attempts + 1, jobs.params, jobs.parent_id, "
    "jobs.root_id, jobs.trace",
    "from json_each(?4) j cross join jobs where jobs.id = j.value / ?1",
)
"""The columns of a Lease, in the order of the list."""

# Both in one, so that each job's row is looked up once.
_GRANTING = (
    "s as (select cast(? as bigint) as places, cast(? as bigint) as turns, cast(? as bigint) as total), "
    "given as materialized ("
    "select jobs.id, n.first + j.key + j.value % s.turns * s.total as fence, j.key, "
    "cast(j.value % s.places / s.turns as integer) as slot, jobs.share, "
    "jobs.attempts + 1 as attempt, jobs.params, jobs.parent_id, jobs.root_id, jobs.special, jobs.trace "
    f"from n cross join s cross join json_each(?) j cross join {each_row('jobs', 'jobs.id = j.value / s.places')}), "
    "written as (insert into leases "
    "(job_id, fence, node_id, slot, lane, share, attempt, parent_id, plain, claimed_us) "
    "select id, fence, ?, slot, ?, share * ?, attempt, parent_id, "
    "case when ? = 1 and special is null then 1 else 0 end, ? from given) "
    "select id, fence, slot, cast(? as text), cast(? as text), attempt, params, parent_id, root_id, trace "
    "from given order by key"
)
_GRANT = f"with n as (select cast(? as bigint) as first), {_GRANTING}"
_NUMBER_AND_GRANT = (
    "with n as (update counters set value = value + ? where name = 'fence' returning value - ? + 1 as first), "
    f"{_GRANTING}"
)
