"""What is set aside, against the states of jobs: who is not there is never woken and in no list."""

from spinney.features.doctor.sql.rule import INACTIVE, JOBS, Facts, Paged, RepairContext, Rule, in_place
from spinney.model.states import State
from spinney.store.sql.connection import rows
from spinney.store.sql.transitions import placement

_ASIDE = "'scheduled', 'held', 'waiting', 'failed', 'cancelled', 'orphaned', 'deleted'"


def _remove_inactive(mend: RepairContext, facts: Facts) -> None:
    mend.tx.run("delete from inactive_jobs where job_id = ?", (facts["job_id"],))


def _set_aside_anew(mend: RepairContext, facts: Facts) -> None:
    """As its job's row says. Open jobs that are held stay so: somebody, or their own stage, wanted it."""
    tx, job_id = mend.tx, facts.get("id") or facts["job_id"]
    row = rows.find(tx, job_id)
    if row.state in (State.WAITING, State.SCHEDULED):
        mend.place(job_id)
        return
    since_us = tx.value("select settled_us from jobs where id = ?", (job_id,)) or mend.now_us
    placement.set_aside(
        tx,
        row,
        row.state,
        now_us=since_us,
        reason="why is not known any more; 'spinney doctor' put it back" if row.state is State.HELD else None,
    )


RULES: tuple[Rule, ...] = (
    Paged(
        name="inactive-without-job",
        about="What is set aside is a job.",
        walk=INACTIVE,
        join="left join jobs on jobs.id = page.job_id",
        where="jobs.id is null",
        columns=("page.state",),
        sentence="job {job_id} is set aside as {state}, but there is no such job",
        offer="removes the entry",
        mend=_remove_inactive,
    ),
    Paged(
        name="inactive-but-not-aside",
        about="A pending or completed job is not set aside.",
        walk=INACTIVE,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="jobs.state in ('pending', 'completed')",
        columns=("page.state as set_aside_as", "jobs.state"),
        sentence="job {job_id} is {state}, but is set aside as {set_aside_as}, too",
        offer="removes the entry",
        mend=_remove_inactive,
    ),
    Paged(
        name="inactive-otherwise",
        about="A job is set aside in its own state.",
        walk=INACTIVE,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where=f"jobs.state <> page.state and jobs.state in ({_ASIDE})",
        columns=("page.state as set_aside_as", "jobs.state"),
        sentence="job {job_id} is {state}, but is set aside as {set_aside_as}",
        offer="sets it aside as what it is, or places it afresh if it waits or is scheduled",
        mend=_set_aside_anew,
    ),
    Paged(
        name="not-inactive",
        about="A job that is neither pending nor completed is set aside, with the reason.",
        walk=JOBS,
        join="left join inactive_jobs p on p.job_id = page.id",
        where=f"page.state in ({_ASIDE}) and p.job_id is null",
        columns=("page.state",),
        row_filter=in_place,
        subject="job {id}",
        sentence="job {id} is {state}, but is not set aside, so that nothing would wake it and no list shows it",
        offer="sets it aside as what it is, or places it afresh if it waits or is scheduled",
        mend=_set_aside_anew,
    ),
)
