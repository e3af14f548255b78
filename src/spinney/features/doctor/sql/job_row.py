"""What a job's own row says of it."""

from typing import Any

from spinney.features.doctor.sql.rule import JOBS, CheckContext, Facts, Paged, RepairContext, Rule, in_place
from spinney.model.attempts.progress import next_stage
from spinney.model.states import LEASED, SETTLED, State
from spinney.store.sql.connection import rows
from spinney.store.sql.transitions import locks, placement

_STATES = ", ".join(f"'{state}'" for state in sorted(set(State) - LEASED))
_OPEN = ", ".join(f"'{state}'" for state in sorted(set(State) - LEASED - SETTLED))
_LEASED = "exists (select 1 from leases l where l.job_id = page.id)"


def _proceed(mend: RepairContext, facts: Facts) -> None:
    """To the stage that its history says is next, or to its end."""
    tx, row = mend.tx, rows.find(mend.tx, facts["id"])
    spec = mend.registry.types.get(row.type)
    if spec is None:
        return
    stage = next_stage(spec, rows.passed_stages(tx, row.id, [s.name for s in spec.stages]))
    tx.run("update jobs set stage = ? where id = ?", (stage, row.id))
    row = row._replace(stage=stage)
    if stage is None:
        mend.cascade.proceed(rows.set_state(tx, row, State.WAITING))
    elif row.state is State.PENDING:
        mend.place(row.id)


def _unknown(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [facts for facts in found if facts["type"] not in look.registry.types]


def _vanished(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    types = look.registry.types
    gone = [f for f in found if f["type"] in types and types[f["type"]].stage(f["stage"]) is None]
    return in_place(look, gone)


def _hold_for_its_stage(mend: RepairContext, facts: Facts) -> None:
    row = rows.find(mend.tx, facts["id"])
    if row.state is State.PENDING:
        placement.leave_ready(mend.tx, mend.registry, row)
    mend.cascade.free_locks(row.id, locks.RESERVED)
    placement.set_aside(
        mend.tx,
        row,
        State.HELD,
        now_us=mend.now_us,
        reason=f"its next stage {row.stage!r} has vanished from job type {row.type!r}",
    )


def _say_when_settled(mend: RepairContext, facts: Facts) -> None:
    mend.tx.run(
        "update jobs set settled_us = coalesce(final_ended_us, (select max(a.ended_us) from attempts a where "
        "a.job_id = jobs.id), (select p.since_us from inactive_jobs p where p.job_id = jobs.id), "
        "created_us) where id = ?",
        (facts["id"],),
    )


RULES: tuple[Rule, ...] = (
    Paged(
        name="state-unknown",
        about="The state of a job is one of those in the table of transitions.",
        walk=JOBS,
        where=f"page.state not in ({_STATES})",
        columns=("page.state",),
        subject="job {id}",
        sentence="job {id} is in the state {state!r}, which there is not; somebody wrote into the database: restore it "
        "from a backup",
    ),
    Paged(
        name="type-unknown",
        about="The type of an open job is known to the store.",
        walk=JOBS,
        where=f"page.state in ({_OPEN})",
        columns=("page.type",),
        row_filter=_unknown,
        subject="job {id}",
        sentence="job {id} is of the type {type!r}, which this store does not know; start a node whose application "
        "has it",
    ),
    Paged(
        name="stage-missing",
        about="An open job that does not wait for its children has a stage to run.",
        walk=JOBS,
        join="left join inactive_jobs p on p.job_id = page.id",
        where=f"page.stage is null and page.state in ({_OPEN}) "
        "and not (page.state = 'waiting' and coalesce(p.waits_for, 'children') = 'children')",
        columns=("page.state",),
        row_filter=in_place,
        subject="job {id}",
        sentence="job {id} is {state}, but no stage is named that it would run, so that it can never be claimed",
        offer="sets it to the stage that its history says is next",
        mend=_proceed,
    ),
    Paged(
        name="stage-vanished",
        about="The next stage of a job that is to run is one of its type's.",
        walk=JOBS,
        join="left join inactive_jobs p on p.job_id = page.id",
        where="page.state in ('pending', 'scheduled', 'waiting') and page.stage is not null "
        "and coalesce(p.waits_for, '') <> 'children' "
        f"and not {_LEASED}",
        columns=("page.type", "page.stage"),
        row_filter=_vanished,
        subject="job {id}",
        sentence="the next stage of job {id} is {stage!r}, which the type {type!r} does not have any more",
        offer="holds it, until the stage is there again or somebody cancels it",
        mend=_hold_for_its_stage,
    ),
    Paged(
        name="settled-without-time",
        about="It is known when a job settled.",
        walk=JOBS,
        where="page.settled_us is null and page.state in ('completed', 'failed', 'cancelled', 'orphaned')",
        columns=("page.state",),
        subject="job {id}",
        sentence="job {id} is {state}, but not since when, so that retention would keep it for ever",
        offer="sets the end of its last attempt",
        mend=_say_when_settled,
    ),
    Paged(
        name="final-attempt-of-open-job",
        about="Only a completed job has the attempt with which it completed in its own row.",
        walk=JOBS,
        where=f"page.final_fence is not null and page.state <> 'completed' and page.state in ({_STATES})",
        columns=("page.state", "page.final_fence as fence"),
        subject="job {id}",
        sentence="job {id} is {state}, but still bears attempt {fence} as the one that completed it",
        offer="moves that attempt to the others of its history",
        mend=lambda mend, facts: rows.move_final(mend.tx, facts["id"]),
    ),
)
