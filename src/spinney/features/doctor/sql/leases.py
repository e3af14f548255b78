"""Leases, against the jobs and nodes that they name."""

from typing import Any

from spinney.features.doctor.sql.rule import GRACE_US, LEASES, CheckContext, Facts, Paged, RepairContext, Rule
from spinney.model.jobs import Record
from spinney.model.outcomes import Outcome
from spinney.store.sql.record.recorder import Recorder


def _end_lease(mend: RepairContext, facts: Facts) -> None:
    mend.take_lease(facts["job_id"], facts["fence"])
    if mend.tx.value("select 1 from jobs where id = ? and state = 'pending'", (facts["job_id"],)):
        mend.place(facts["job_id"])


def _other_lane(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lanes = look.registry.lanes
    wrong = []
    for facts in found:
        lane = lanes.get(facts["lane"])
        if lane is None or (lane.type, lane.stage) != (facts["type"], facts["stage"]):
            wrong.append(facts)
    return wrong


def _set_parent(mend: RepairContext, facts: Facts) -> None:
    mend.tx.run("update leases set parent_id = ? where job_id = ?", (facts["parent_id"], facts["job_id"]))


def _take_back(mend: RepairContext, facts: Facts) -> None:
    """What the recovery of its node would have recorded."""
    began = facts["running_us"]
    record = Record(
        facts["job_id"],
        facts["fence"],
        Outcome.LOST if began else Outcome.RETURNED,
        began or 0,
        mend.now_us,
        message="its node died under it" if began else None,
    )
    Recorder(mend.tx, mend.registry, mend.cascade, 0.0, mend.now_us).run([record], None)


RULES: tuple[Rule, ...] = (
    Paged(
        name="lease-without-job",
        about="A lease is on a job.",
        walk=LEASES,
        join="left join jobs on jobs.id = page.job_id",
        where="jobs.id is null",
        columns=("page.fence",),
        sentence="attempt {fence} has a lease on job {job_id}, but there is no such job",
        offer="takes the lease away; what the attempt reports will be refused",
        mend=_end_lease,
    ),
    Paged(
        name="lease-of-another-state",
        about="The row of a job that is leased says pending.",
        walk=LEASES,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="jobs.state <> 'pending'",
        columns=("page.fence", "jobs.state"),
        sentence="job {job_id} is {state}, but attempt {fence} still has a lease on it",
        offer="takes the lease away; what the attempt reports will be refused",
        mend=_end_lease,
    ),
    Paged(
        name="lease-of-another-lane",
        about="The lane of a lease is that of its job's type and stage.",
        walk=LEASES,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="jobs.state = 'pending'",
        columns=("page.fence", "page.lane", "jobs.type", "jobs.stage"),
        row_filter=_other_lane,
        sentence="attempt {fence} has a lease on job {job_id} in lane {lane}, which is not one of its stage {stage} "
        "of {type}; what it reports could not be recorded",
        offer="takes the lease away and places the job afresh",
        mend=_end_lease,
    ),
    Paged(
        name="lease-of-another-parent",
        about="A lease names the parent of its job.",
        walk=LEASES,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="coalesce(page.parent_id, 0) <> coalesce(jobs.parent_id, 0)",
        columns=("page.fence", "page.parent_id as named", "jobs.parent_id"),
        sentence="the lease of attempt {fence} on job {job_id} names job {named} as its parent instead of {parent_id}",
        offer="sets the parent",
        mend=_set_parent,
    ),
    Paged(
        name="lease-of-left-node",
        about="A lease belongs to a node that is there.",
        walk=LEASES,
        join="left join nodes on nodes.id = page.node_id",
        where="nodes.id is null or (nodes.state = 'left' and nodes.seen_us < ?)",
        binds=lambda look: (look.now_us - GRACE_US,),
        columns=("page.fence", "page.running_us", "coalesce(nodes.name, cast(page.node_id as text)) as node"),
        sentence="attempt {fence} has a lease on job {job_id} for node {node}, which has left",
        offer="takes the lease back, as the recovery of a node does: the attempt counts as lost if it had begun",
        mend=_take_back,
    ),
)
