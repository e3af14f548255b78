"""Rules about a job's own row, and about its row in ``inactive_jobs``.

Every open job that is not pending, and every settled job that is not completed, has a row in ``inactive_jobs``: a job
without it is never woken and in no list.
"""

from typing import Any

from spinney.features.doctor.sql.rule import (
    INACTIVE,
    JOBS,
    OPEN_STATES,
    CheckContext,
    Facts,
    Join,
    Paged,
    Repair,
    RepairContext,
    Rule,
    in_place,
    states,
)
from spinney.model.states import State
from spinney.store.sql.registry import job_rows
from spinney.store.sql.transitions import locks
from spinney.store.sql.transitions.placement import Placement

_ACTIVE = {State.PENDING, State.COMPLETED}
"""The states of jobs without a row in ``inactive_jobs``."""
_STATES = states(set(State))
_INACTIVE = states(set(State) - _ACTIVE)
_ITS_WAIT = Join("left join inactive_jobs p on p.job_id = page.id")
"""The row of a job in ``inactive_jobs`` (``p``), or nulls."""

# --- a job's stage and history ------------------------------------------------------------------


def _unknown_types(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs whose type the store does not know: its declaration is not among those that nodes have
    registered."""
    return [row for row in facts if row["type"] not in check.registry.types]


def _vanished_stages(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs whose type is known, but has lost their next stage. Those of submissions that are still
    being put in place are left out."""
    types = check.registry.types
    vanished = [
        row for row in facts if row["type"] in types and types[row["type"]].stage(row["stage"]) is None
    ]
    return in_place(check, vanished)


def _proceed(repair: RepairContext, facts: Facts) -> None:
    """Send a job to the stage that its history says is next, or to its end."""
    tx, row = repair.tx, job_rows.find(repair.tx, facts["id"])
    spec = repair.registry.types.get(row.type)
    if spec is None:
        return
    stage = job_rows.next_stage(tx, row.id, spec)
    tx.run("update jobs set stage = ? where id = ?", (stage, row.id))
    row = row._replace(stage=stage)
    if stage is None:
        repair.cascade.proceed(job_rows.set_state(tx, row, State.WAITING))
    elif row.state is State.PENDING:
        repair.place(row.id)


def _hold_for_its_stage(repair: RepairContext, facts: Facts) -> None:
    """Hold a job whose stage has vanished. It leaves ``ready`` first, and gives up a lock that was reserved
    for it, so that nothing waits for a job that does not run."""
    row = job_rows.find(repair.tx, facts["id"])
    if row.state is State.PENDING:
        repair.cascade.leave_ready(row)
    repair.cascade.free_locks(row.id, locks.RESERVED)
    reason = f"its next stage {row.stage!r} has vanished from job type {row.type!r}"
    repair.cascade.set_aside(row, State.HELD, reason=reason)


def _set_settled_us(repair: RepairContext, facts: Facts) -> None:
    """Set the time at which the job settled to the best that is known: the end of its last attempt, else
    since when it is inactive, else its submission."""
    repair.tx.run(
        "update jobs set settled_us = coalesce(final_ended_us, (select max(a.ended_us) from attempts a where "
        "a.job_id = jobs.id), (select p.since_us from inactive_jobs p where p.job_id = jobs.id), "
        "created_us) where id = ?",
        (facts["id"],),
    )


# --- its row in inactive_jobs -------------------------------------------------------------------


def _set_aside_anew(repair: RepairContext, facts: Facts) -> None:
    """Write the row in ``inactive_jobs`` that the job's state asks for. A held job stays held: an operator or its own
    stage wanted it."""
    tx, job_id = repair.tx, facts.get("id") or facts["job_id"]
    row = job_rows.find(tx, job_id)
    if row.state in _ACTIVE:
        tx.run("delete from inactive_jobs where job_id = ?", (job_id,))
    elif row.state in (State.WAITING, State.SCHEDULED):
        repair.place(job_id)
    else:
        since_us = tx.value("select settled_us from jobs where id = ?", (job_id,)) or repair.now_us
        reason = (
            "the reason is no longer known; 'spinney doctor' put the job back"
            if row.state is State.HELD
            else None
        )
        Placement(tx, repair.registry, since_us).set_aside(row, row.state, reason=reason)


_SET_ASIDE_ANEW = Repair("rewrites the entry to match the state of the job", _set_aside_anew)

RULES: tuple[Rule, ...] = (
    Paged(
        name="state-unknown",
        about="The state of a job is one of those in the table of transitions.",
        walk=JOBS,
        where=f"page.state not in ({_STATES})",
        columns=("page.state",),
        sentence="job {id} is in the state {state!r}, which does not exist; something else wrote into the database: "
        "restore it from a backup",
    ),
    Paged(
        name="type-unknown",
        about="The type of an open job is known to the store.",
        walk=JOBS,
        where=f"page.state in ({OPEN_STATES})",
        columns=("page.type",),
        row_filter=_unknown_types,
        sentence="job {id} is of the type {type!r}, which this store does not know; start a node whose application "
        "has it",
    ),
    Paged(
        # A job that waits for its children after its last stage has none left to run, and completes when they
        # have settled. One that waits without a row in inactive_jobs counts as such here, and is reported by
        # not-inactive.
        name="stage-missing",
        about="An open job that does not wait for its children has a stage to run.",
        walk=JOBS,
        join=_ITS_WAIT,
        where=f"page.stage is null and page.state in ({OPEN_STATES}) "
        "and not (page.state = 'waiting' and coalesce(p.waits_for, 'children') = 'children')",
        columns=("page.state",),
        row_filter=in_place,
        sentence="job {id} is {state}, but has no stage to run, so that it can never be claimed",
        repair=Repair("sets it to the stage that its history says is next", _proceed),
    ),
    Paged(
        # A leased job is left alone: what becomes of it is decided when its attempt ends.
        name="stage-vanished",
        about="The next stage of a job that is to run is one of its type's.",
        walk=JOBS,
        join=_ITS_WAIT,
        where="page.state in ('pending', 'scheduled', 'waiting') and page.stage is not null "
        "and coalesce(p.waits_for, '') <> 'children' "
        "and not exists (select 1 from leases l where l.job_id = page.id)",
        columns=("page.type", "page.stage"),
        row_filter=_vanished_stages,
        sentence="the next stage of job {id} is {stage!r}, which the type {type!r} does not have any more",
        repair=Repair("holds it, until the stage exists again or somebody cancels it", _hold_for_its_stage),
    ),
    Paged(
        name="settled-without-time",
        about="A settled job has the time at which it settled.",
        walk=JOBS,
        where="page.settled_us is null and page.state in ('completed', 'failed', 'cancelled', 'orphaned')",
        columns=("page.state",),
        sentence="job {id} is {state}, but has no time at which it settled, so that retention would keep it for ever",
        repair=Repair("sets the end of its last attempt", _set_settled_us),
    ),
    Paged(
        name="final-attempt-of-open-job",
        about="Only a completed job has the attempt with which it completed in its own row.",
        walk=JOBS,
        where=f"page.final_fence is not null and page.state <> 'completed' and page.state in ({_STATES})",
        columns=("page.state", "page.final_fence as fence"),
        sentence="job {id} is {state}, but its row names attempt {fence} as the one that completed it",
        repair=Repair(
            "moves that attempt to the others of its history",
            lambda repair, facts: job_rows.move_final(repair.tx, facts["id"]),
        ),
    ),
    Paged(
        name="inactive-otherwise",
        about="A job in inactive_jobs has the same state there; a pending or completed job is not there.",
        walk=INACTIVE,
        where=f"jobs.state <> page.state and jobs.state in ({_STATES})",
        columns=("page.state as listed_as", "jobs.state"),
        sentence="job {job_id} is {state}, but is listed among the inactive jobs as {listed_as}",
        repair=_SET_ASIDE_ANEW,
    ),
    Paged(
        name="not-inactive",
        about="A job that is neither pending nor completed is in inactive_jobs, with the reason.",
        walk=JOBS,
        join=_ITS_WAIT,
        where=f"page.state in ({_INACTIVE}) and p.job_id is null",
        columns=("page.state",),
        row_filter=in_place,
        sentence="job {id} is {state}, but is not listed among the inactive jobs, so that nothing would wake it and no "
        "list shows it",
        repair=_SET_ASIDE_ANEW,
    ),
)
