"""Rules about what is claimed: rows of ``ready``, from which nodes claim, and the leases on what they have claimed.

A pending job that has no row in ``ready`` is never claimed, and a row of a job that is not pending would be claimed
wrongly. A repair places the job anew by its own row, or takes the lease away, as the engine does.
"""

from typing import Any

from spinney.features.doctor.sql.rule import (
    GRACE_US,
    JOBS,
    LEASES,
    MAYBE_JOB,
    READY,
    CheckContext,
    Facts,
    Join,
    Paged,
    Repair,
    RepairContext,
    Rule,
    in_place,
    only_accepted,
)
from spinney.model.jobs import Record
from spinney.model.outcomes import Outcome
from spinney.store.sql.connection.database import list_text
from spinney.store.sql.record.recorder import Recorder
from spinney.store.sql.registry import hold_coverage
from spinney.store.sql.transitions import ready_moves

# --- ready --------------------------------------------------------------------------------------


def _key(facts: Facts) -> ready_moves.Key:
    return facts["lane"], facts["priority"], facts["share"], facts["position"]


def _places(check: CheckContext, job_ids: list[int]) -> dict[int, ready_moves.Key | None]:
    """Return the place in ``ready`` that each pending job's row asks for; None: it has none."""
    places: dict[int, ready_moves.Key | None] = {}
    for row in ready_moves.some(check.tx, check.registry, job_ids):
        keys = ready_moves.keys(check.registry, [row])
        places[row.id] = keys[0] if keys else None
    return places


def _missing(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pending jobs that are not in their place.

    It looks by key, which is cheap. Daily work puts no job anywhere else, so this is enough for a repair,
    which need not search all of ``ready`` again while it holds up the writers.
    """
    places = _places(check, [row["id"] for row in facts])
    sql = "select job_id from ready where lane = ? and priority = ? and share = ? and position = ?"
    missing = []
    for row in facts:
        place = places[row["id"]]
        if place is None or check.tx.value(sql, place) != row["id"]:
            missing.append(row)
    return in_place(check, missing)


def _nowhere(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pending jobs that are not in ``ready`` at all. ``ready`` has no index by job, so all of it
    is read, but only for a page on which a job is not in its place."""
    missing = _missing(check, facts)
    if not missing:
        return []
    sql = "select job_id from ready where job_id in (select j.value from json_each(?) j)"
    elsewhere = set(check.tx.column(sql, (list_text([row["id"] for row in missing]),)))
    return [row for row in missing if row["id"] not in elsewhere]


def _misplaced(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of ``ready`` that are not where the row of their job asks to be."""
    places = _places(check, [row["job_id"] for row in facts])
    return [row for row in facts if places[row["job_id"]] != _key(row)]


def _not_accepted(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows whose job belongs to a submission that is not accepted yet."""
    accepted = {row["job_id"] for row in only_accepted(check, facts)}
    return [row for row in facts if row["job_id"] not in accepted]


def _under_hold(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs under a hold whose sweep is over, each with the hold. While a sweep goes on, jobs under
    its hold may still be in ``ready``; claims skip them."""
    holds = check.registry.holds
    if not holds.any:
        return []
    ids = [row["job_id"] for row in facts]
    over = hold_coverage.among(check.tx, holds, [wide for wide in holds.wide if wide.swept], ids)
    over |= hold_coverage.among_single(check.tx, ids) if holds.jobs else {}
    return [row | {"hold": str(over[row["job_id"]])} for row in facts if row["job_id"] in over]


def _leave(repair: RepairContext, facts: Facts) -> None:
    ready_moves.out_of_ready(repair.tx, [_key(facts)])


def _leave_and_place(repair: RepairContext, facts: Facts) -> None:
    _leave(repair, facts)
    repair.place(facts["job_id"])


def _lower_mark(repair: RepairContext, facts: Facts) -> None:
    """Let the claims of a lane begin at this row again."""
    lane, priority, share, position = _key(facts)
    repair.registry.watermarks.entered(repair.tx, lane, (priority, share, position))


_LEAVE = Repair("takes it out of ready", _leave)

# --- leases -------------------------------------------------------------------------------------


def _other_lane(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the leases whose lane does not exist, or is of another type or stage than their job."""
    lanes = check.registry.lanes
    wrong = []
    for row in facts:
        lane = lanes.get(row["lane"])
        if lane is None or (lane.type, lane.stage) != (row["type"], row["stage"]):
            wrong.append(row)
    return wrong


def _end_lease(repair: RepairContext, facts: Facts) -> None:
    """Take a lease away. A job that is pending is then placed, since nothing else would put it into
    ``ready``."""
    repair.take_lease(facts["job_id"], facts["fence"])
    if repair.tx.exists("select 1 from jobs where id = ? and state = 'pending'", (facts["job_id"],)):
        repair.place(facts["job_id"])


def _set_parent(repair: RepairContext, facts: Facts) -> None:
    repair.tx.run("update leases set parent_id = ? where job_id = ?", (facts["parent_id"], facts["job_id"]))


def _recover(repair: RepairContext, facts: Facts) -> None:
    """Record what the recovery of the node would have recorded."""
    began_us = facts["running_us"]
    record = Record(
        facts["job_id"],
        facts["fence"],
        Outcome.LOST if began_us else Outcome.RETURNED,
        began_us or 0,
        repair.now_us,
        message="its node died under it" if began_us else None,
    )
    Recorder(repair.cascade, 0.0).run([record], None)


_END_LEASE = Repair("takes the lease away; what the attempt reports will be refused", _end_lease)

# Leases come before ready: taking a lease away may put its job into ready, which the rules behind then see.
RULES: tuple[Rule, ...] = (
    Paged(
        name="lease-without-job",
        about="A lease is on a job.",
        walk=LEASES,
        join=MAYBE_JOB,
        where="jobs.id is null",
        columns=("page.fence",),
        sentence="attempt {fence} has a lease on job {job_id}, but there is no such job",
        repair=_END_LEASE,
    ),
    Paged(
        name="lease-of-another-state",
        about="The row of a job that is leased says pending.",
        walk=LEASES,
        where="jobs.state <> 'pending'",
        columns=("page.fence", "jobs.state"),
        sentence="job {job_id} is {state}, but attempt {fence} still has a lease on it",
        repair=_END_LEASE,
    ),
    Paged(
        # Other states are reported by the rule before this one, whose repair also ends the lease.
        name="lease-of-another-lane",
        about="The lane of a lease is that of its job's type and stage.",
        walk=LEASES,
        where="jobs.state = 'pending'",
        columns=("page.fence", "page.lane", "jobs.type", "jobs.stage"),
        row_filter=_other_lane,
        sentence="attempt {fence} has a lease on job {job_id} in lane {lane}, which is not one of its stage {stage} "
        "of {type}; what it reports could not be recorded",
        repair=Repair("takes the lease away and places the job afresh", _end_lease),
    ),
    Paged(
        name="lease-of-another-parent",
        about="A lease names the parent of its job.",
        walk=LEASES,
        where="coalesce(page.parent_id, 0) <> coalesce(jobs.parent_id, 0)",
        columns=("page.fence", "page.parent_id as named", "jobs.parent_id"),
        sentence="the lease of attempt {fence} on job {job_id} names job {named} as its parent instead of {parent_id}",
        repair=Repair("sets the parent", _set_parent),
    ),
    Paged(
        name="lease-of-left-node",
        about="A lease belongs to a node that has not left.",
        walk=LEASES,
        join=Join("left join nodes on nodes.id = page.node_id"),
        # When a node leaves or is declared dead, its leases are taken back at once. What is left after a
        # minute was cut off.
        where="nodes.id is null or (nodes.state = 'left' and nodes.seen_us < ?)",
        binds=lambda check: (check.now_us - GRACE_US,),
        columns=("page.fence", "page.running_us", "coalesce(nodes.name, cast(page.node_id as text)) as node"),
        sentence="attempt {fence} has a lease on job {job_id} for node {node}, which has left",
        repair=Repair(
            "takes the lease back, as the recovery of a node does: the attempt counts as lost if it had begun",
            _recover,
        ),
    ),
    Paged(
        name="ready-but-not-pending",
        about="A job in ready is pending.",
        walk=READY,
        where="jobs.state <> 'pending'",
        columns=("page.job_id", "jobs.state"),
        sentence="job {job_id} is ready to be claimed, but is {state}; it would run although it should not",
        repair=_LEAVE,
    ),
    Paged(
        name="ready-but-hidden",
        about="A job in ready has been accepted.",
        walk=READY,
        # Without a submission that is being written, which is nearly always, no row comes as far as the
        # filter.
        where="jobs.state = 'pending' and exists (select 1 from staging where published <> 1)",
        columns=("page.job_id",),
        row_filter=_not_accepted,
        sentence="job {job_id} is ready to be claimed, but the call that submits it has not been accepted yet",
        repair=_LEAVE,
    ),
    Paged(
        name="ready-and-leased",
        about="A job that is leased is not in ready.",
        walk=READY,
        join=Join("cross join leases l", "l.job_id = page.job_id"),
        # Jobs in another state are reported by ready-but-not-pending.
        where="exists (select 1 from jobs where jobs.id = page.job_id and jobs.state = 'pending')",
        columns=("page.job_id", "l.fence"),
        sentence="job {job_id} is leased (attempt {fence}), but still ready: it would be claimed twice",
        repair=_LEAVE,
    ),
    Paged(
        # Leased jobs and jobs without a stage are other rules': their place cannot be said.
        name="ready-elsewhere",
        about="A job is in ready in the lane of its queue, type and stage, at its priority, share and position.",
        walk=READY,
        where="jobs.state = 'pending' and jobs.stage is not null "
        "and not exists (select 1 from leases l where l.job_id = jobs.id)",
        columns=("page.job_id", "jobs.queue", "jobs.type", "jobs.stage"),
        row_filter=_misplaced,
        sentence="job {job_id} is ready at lane {lane}, priority {priority}, share {share}, position {position}, "
        "which is not its place in queue {queue} for stage {stage} of {type}",
        repair=Repair("places it afresh", _leave_and_place),
    ),
    Paged(
        name="ready-under-hold",
        about="A job that a hold covers is not in ready, once the hold was swept.",
        walk=READY,
        where="jobs.state = 'pending' and not exists (select 1 from leases l where l.job_id = jobs.id)",
        columns=("page.job_id",),
        row_filter=_under_hold,
        sentence="job {job_id} is ready to be claimed under {hold}",
        repair=Repair("holds it", _leave_and_place),
    ),
    Paged(
        name="ready-below-watermark",
        about="No job is in ready below its lane's low watermark, from which claims begin to look.",
        walk=READY,
        join=Join("cross join low_watermarks m", "m.lane = page.lane"),
        # The row comparison has the order of the key of ready, in which claims read it.
        where="(page.priority, page.share, page.position) < (m.priority, m.share, m.position)",
        columns=("page.job_id",),
        sentence="job {job_id} is ready below the low watermark of its lane, so that no claim finds it",
        repair=Repair("lowers the watermark", _lower_mark),
    ),
    Paged(
        name="pending-nowhere",
        about="A pending job is in ready, or is leased.",
        walk=JOBS,
        # A job without a stage is reported by stage-missing.
        where="page.state = 'pending' and page.stage is not null "
        "and not exists (select 1 from leases l where l.job_id = page.id)",
        row_filter=_nowhere,
        row_filter_again=_missing,
        sentence="job {id} is pending, but is neither in ready nor leased, so that nobody can claim it",
        repair=Repair("places it afresh", lambda repair, facts: repair.place(facts["id"])),
    ),
)
