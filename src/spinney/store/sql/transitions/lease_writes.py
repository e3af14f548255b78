"""Writing the leases of a claim, lane by lane, with one statement for any number of slots.

Each job is passed as one number, ``job * places + place``. A place is a slot and a turn, ``slot * turns + turn``: the
jobs of one lane in a slot have one turn, those of its next lane the next. Fences grow from turn to turn, because they
determine the order within a slot. (A job's id has 40 bits, which leaves 23 for places.)"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import orjson

from spinney.model.jobs import ClaimRequest, Lease
from spinney.model.values.named_tuples import named
from spinney.store.sql.connection.database import Tx, transposed
from spinney.store.sql.connection.postgres_dialect import each_row
from spinney.store.sql.registry.registry import Lane, Registry
from spinney.store.sql.transitions import locks

AT_ONCE = 400
"""The jobs of one statement on SQLite, where ``Tx.columns`` returns all values as one JSON text: with parameters of
1 MiB each, all of which has to be escaped, it is still shorter than a text may be. SQLite rolls the transaction back
where its buffer would exceed two gigabytes."""


class _LaneJobs(NamedTuple):
    """The jobs of a lane that are assigned, in order."""

    ids: list[int]
    slots: list[int]
    packed: list[int]

    def parts(self) -> list["_LaneJobs"]:
        """Return the jobs in parts of ``AT_ONCE``."""
        starts = range(0, len(self.ids), AT_ONCE)
        return [_LaneJobs(*(column[start : start + AT_ONCE] for column in self)) for start in starts]


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
    by_lane: dict[int, _LaneJobs] = {}
    begun: Counter[int] = Counter()
    for (slot, lane_id), ids in assigned.items():
        place = slot * turns + begun[slot]
        begun[slot] += 1
        jobs = by_lane.setdefault(lane_id, _LaneJobs([], [], []))
        jobs.ids.extend(ids)
        jobs.slots.extend([slot] * len(ids))
        jobs.packed.extend([job_id * places + place for job_id in ids])
    # On a server one statement may both number and write the leases.
    fence = None if tx.postgresql and len(by_lane) == 1 else tx.take("fence", total * turns)
    leases: list[Lease] = []
    parts = [
        (lane_id, part)
        for lane_id, jobs in by_lane.items()
        for part in ([jobs] if tx.postgresql else jobs.parts())
    ]
    for lane_id, jobs in parts:
        lane = registry.lanes[lane_id]
        needs_locks = bool(claim_request.lanes[(lane.type, lane.stage)].locks)
        shared = registry.queue(lane.queue).shared != "none"
        listed = (places, turns, total, orjson.dumps(jobs.packed).decode())
        values = (claim_request.node_id, lane_id, shared, not needs_locks, now_us)
        if fence is None:
            columns = transposed(tx.all(_NUMBER_AND_GRANT, (total, total, *listed, *values)), len(_LEASED))
        elif tx.postgresql:
            columns = transposed(tx.all(_GRANT, (fence, *listed, *values)), len(_LEASED))
        else:
            tx.run(_INSERT_LEASES, (fence, *listed, *values))
            columns = tx.columns(_LEASED, _OF_LISTED, (fence, *listed))
        granted = list(named(Lease, _lease_rows(lane, jobs, columns)))
        if needs_locks:
            locks.fence_claimed(tx, [(lease.fence, lease.job_id) for lease in granted])
        leases += granted
        fence = None if fence is None else fence + len(jobs.ids)
    return leases if len(by_lane) == 1 else _in_order(leases, assigned)


def _lease_rows(lane: Lane, jobs: _LaneJobs, columns: Sequence[Sequence[Any]]) -> Iterable[tuple[Any, ...]]:
    """Return the values of a Lease for each row of ``columns`` (``_LEASED``). A row names its job by the index in
    ``jobs``: the database need not send what is known here."""
    indexes, fences, *others = columns
    ids, slots = map(jobs.ids.__getitem__, indexes), map(jobs.slots.__getitem__, indexes)
    # The first three end with the indexes.
    return zip(ids, fences, slots, repeat(lane.type), repeat(lane.stage), *others, strict=False)


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
    "j.key",
    "?1 + j.key + j.value % ?3 * ?4",
    "jobs.attempts + 1",
    "jobs.params",
    "jobs.parent_id",
    "jobs.root_id",
    "jobs.trace",
)
"""The index in the list, the fence, and what a Lease takes from the job's row."""
_OF_LISTED = "from json_each(?5) j cross join jobs where jobs.id = j.value / ?2"

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
    "select key, fence, attempt, params, parent_id, root_id, trace from given order by key"
)
_GRANT = f"with n as (select cast(? as bigint) as first), {_GRANTING}"
_NUMBER_AND_GRANT = (
    "with n as (update counters set value = value + ? where name = 'fence' returning value - ? + 1 as first), "
    f"{_GRANTING}"
)
