"""What is set aside, against the states of jobs: who is not there is never woken and in no list."""

from spinney.model.states import State
from spinney.stores.sql import placing, rows
from spinney.stores.sql.doctoring.rule import JOBS, PARKED, Facts, Mend, Paged, Rule, in_place

_ASIDE = "'scheduled', 'held', 'waiting', 'failed', 'cancelled', 'orphaned', 'deleted'"


def _unpark(mend: Mend, facts: Facts) -> None:
    mend.tx.run("delete from parked where job_id = ?", (facts["job_id"],))


def _park_anew(mend: Mend, facts: Facts) -> None:
    """As its job's row says. Open jobs that are held stay so: somebody, or their own stage, wanted it."""
    tx, job_id = mend.tx, facts.get("id") or facts["job_id"]
    row = rows.find(tx, job_id)
    if row.state in (State.WAITING, State.SCHEDULED):
        mend.place(job_id)
        return
    since_us = tx.value("select settled_us from jobs where id = ?", (job_id,)) or mend.now_us
    placing.park(
        tx,
        row,
        row.state,
        now_us=since_us,
        reason="why is not known any more; 'spinney doctor' put it back" if row.state is State.HELD else None,
    )


RULES: tuple[Rule, ...] = (
    Paged(
        name="parked-without-job",
        about="What is set aside is a job.",
        walk=PARKED,
        join="left join jobs on jobs.id = page.job_id",
        where="jobs.id is null",
        tells=("page.state",),
        sentence="job {job_id} is set aside as {state}, but there is no such job",
        offer="removes the entry",
        mend=_unpark,
    ),
    Paged(
        name="parked-but-not-aside",
        about="A pending or completed job is not set aside.",
        walk=PARKED,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="jobs.state in ('pending', 'completed')",
        tells=("page.state as parked", "jobs.state"),
        sentence="job {job_id} is {state}, but is set aside as {parked}, too",
        offer="removes the entry",
        mend=_unpark,
    ),
    Paged(
        name="parked-otherwise",
        about="A job is set aside in its own state.",
        walk=PARKED,
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where=f"jobs.state <> page.state and jobs.state in ({_ASIDE})",
        tells=("page.state as parked", "jobs.state"),
        sentence="job {job_id} is {state}, but is set aside as {parked}",
        offer="sets it aside as what it is, or places it afresh if it waits or is scheduled",
        mend=_park_anew,
    ),
    Paged(
        name="not-parked",
        about="A job that is neither pending nor completed is set aside, with the reason.",
        walk=JOBS,
        join="left join parked p on p.job_id = page.id",
        where=f"page.state in ({_ASIDE}) and p.job_id is null",
        tells=("page.state",),
        judge=in_place,
        subject="job {id}",
        sentence="job {id} is {state}, but is not set aside, so that nothing would wake it and no list shows it",
        offer="sets it aside as what it is, or places it afresh if it waits or is scheduled",
        mend=_park_anew,
    ),
)
