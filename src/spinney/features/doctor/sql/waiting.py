"""What waits: for something that can still come, and is told when it does."""

from typing import Any

from spinney.features.doctor.sql.rule import (
    GRACE_US,
    HELD,
    SCHEDULED,
    WAITING,
    CheckContext,
    Facts,
    Paged,
    RepairContext,
    Rule,
    Walk,
)
from spinney.model.states import SETTLED
from spinney.store.sql.recover.sweep_step import RESERVED_US
from spinney.store.sql.registry import hold_coverage
from spinney.store.sql.transitions import locks

_SETTLED = ", ".join(f"'{state}'" for state in sorted(SETTLED))
_JOB = "jobs.id = page.job_id and jobs.state = page.state"
"""Where the two states differ, that is what has to be mended first."""


def _place(mend: RepairContext, facts: Facts) -> None:
    mend.place(facts["job_id"])


# --- children, needs --------------------------------------------------------------------------


def _go_on(mend: RepairContext, facts: Facts) -> None:
    mend.cascade.parent_changed(facts["job_id"])


# --- locks ------------------------------------------------------------------------------------


def _could_have_it(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that are the first that may have their lock, which has room."""
    first = {name: _next(look, name) for name in {_lock(facts) for facts in found}}
    return [facts | {"lock": _lock(facts)} for facts in found if first[_lock(facts)] == facts["job_id"]]


def _next(look: CheckContext, name: str) -> int | None:
    found = locks.next_of(look.tx, look.registry, name)
    return None if found is None else found[0].job_id


def _lock(facts: Facts) -> str:
    return str(facts["waits_for"]).removeprefix("lock:")


def _wake_first(mend: RepairContext, facts: Facts) -> None:
    mend.cascade.lock_freed(_lock(facts))


def _give_back(mend: RepairContext, facts: Facts) -> None:
    mend.tx.run("delete from locks where name = ? and job_id = ?", (facts["name"], facts["job_id"]))
    mend.cascade.lock_freed(facts["name"])


def _who_has_it(facts: Facts) -> str:
    name, job_id, fence = facts["name"], facts["job_id"], facts["fence"]
    if facts["state"] is None:
        why = "there is no such job"
    elif fence is None:
        why = f"that job is {facts['state']}, and keeps nothing any more"
    elif fence == locks.RESERVED:
        why = "it was only kept for that job until it is claimed, which has not come to pass"
    else:
        why = f"attempt {fence}, for which it was taken, has ended"
    return f"the lock {name} belongs to job {job_id}, but {why}; whoever wants it waits for ever"


# --- serial lines -----------------------------------------------------------------------------


def _should_go(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Not those whose tree somebody runs in: he is waited for."""
    running = {
        root_id
        for (root_id,) in look.tx.all(
            "select distinct jobs.root_id from leases l join jobs on jobs.id = l.job_id where l.parent_id is not null"
        )
    }
    return [facts for facts in found if facts["entered"] is None or facts["root_id"] not in running]


def _advance(mend: RepairContext, facts: Facts) -> None:
    if facts["entered"] is None:
        mend.place(facts["job_id"])
    else:
        mend.cascade.line_moved(facts["root_id"])


def _leave_line(mend: RepairContext, facts: Facts) -> None:
    mend.tx.run(
        "delete from serial_order where root_id = ? and lineage = ?", (facts["root_id"], facts["lineage"])
    )
    mend.cascade.line_moved(facts["root_id"])


# --- holds ------------------------------------------------------------------------------------


def _free(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that no hold covers. While a lifted hold is still swept, its jobs are about to go on."""
    holds = look.registry.holds
    if holds.lift > holds.lift_swept:
        return []
    covered = hold_coverage.covered(look.tx, holds, [facts["job_id"] for facts in found])
    return [facts for facts in found if facts["job_id"] not in covered]


RULES: tuple[Rule, ...] = (
    Paged(
        name="waits-for-nothing",
        about="A waiting job waits for needs, children, a lock or its turn in a serial tree.",
        walk=WAITING,
        join="cross join jobs",
        on=_JOB,
        where="page.waits_for is null or (page.waits_for not in ('needs', 'children', 'serial') "
        "and page.waits_for not like 'lock:%')",
        columns=("page.waits_for",),
        sentence=lambda facts: (
            f"job {facts['job_id']} waits for "
            f"{'nothing' if facts['waits_for'] is None else repr(facts['waits_for'])}, which nobody will ever tell it"
        ),
        offer="places it afresh",
        mend=_place,
    ),
    Paged(
        name="stuck-for-children",
        about="A job that waits for its children has one that is open.",
        walk=WAITING,
        join="cross join jobs",
        on=_JOB,
        where="page.waits_for = 'children' "
        "and not exists (select 1 from children_left c where c.parent_id = page.job_id and c.bad = 0) "
        "and not exists (select 1 from staging s where s.parent_id = page.job_id and s.published = 1)",
        sentence="job {job_id} waits for its children, but none of them is open",
        offer="lets it go on to its next stage, or to its end",
        mend=_go_on,
    ),
    Paged(
        name="stuck-for-needs",
        about="A job that waits for others has one that is open.",
        walk=WAITING,
        join="cross join jobs",
        on=_JOB,
        where="page.waits_for = 'needs' "
        "and not exists (select 1 from needs n join jobs d on d.id = n.need_id "
        f"where n.job_id = page.job_id and d.state not in ({_SETTLED})) "
        "and not exists (select 1 from needs n join met_needs m on m.need_id = n.need_id "
        "where n.job_id = page.job_id and m.next_id <= page.job_id)",
        sentence="job {job_id} waits for jobs that it needs, but none of them is open",
        offer="places it afresh: it goes on, or fails because of what it needs",
        mend=_place,
    ),
    Paged(
        name="stuck-for-lock",
        about="Whoever waits for a lock waits because somebody has it.",
        walk=WAITING,
        join="cross join jobs",
        on=_JOB,
        where="page.waits_for like 'lock:%' and page.since_us < ?",
        binds=lambda look: (look.now_us - GRACE_US,),
        columns=("page.waits_for",),
        row_filter=_could_have_it,
        sentence="job {job_id} waits for the lock {lock}, which has room",
        offer="lets it go on",
        mend=_wake_first,
    ),
    Paged(
        name="stuck-in-line",
        about="Whoever waits for his turn in a serial tree has somebody before him.",
        walk=WAITING,
        join="cross join jobs left join serial_order s on s.root_id = jobs.root_id and s.lineage = jobs.lineage",
        on=_JOB,
        where="page.waits_for = 'serial' and (s.job_id is null or not exists "
        "(select 1 from serial_order b where b.root_id = jobs.root_id and b.lineage < jobs.lineage))",
        columns=("jobs.root_id", "s.job_id as entered"),
        row_filter=_should_go,
        sentence="job {job_id} waits for an earlier job of its serial tree, but is not behind any",
        offer="lets it go on",
        mend=_advance,
    ),
    Paged(
        name="line-entry-stale",
        about="Who stands in the line of a serial tree would run.",
        walk=Walk("serial_order", ("root_id", "lineage")),
        join="left join jobs on jobs.id = page.job_id left join inactive_jobs p on p.job_id = page.job_id",
        where=f"jobs.id is null or jobs.state in ({_SETTLED}) or jobs.root_id <> page.root_id "
        "or jobs.lineage <> page.lineage or (jobs.state = 'waiting' and p.waits_for in ('needs', 'children'))",
        columns=("page.job_id", "coalesce(jobs.state, 'gone') as state"),
        sentence="job {job_id} stands in the line of the serial tree of job {root_id}, but is {state} and will not "
        "run: all behind it wait for ever",
        offer="takes it out of the line",
        mend=_leave_line,
    ),
    Paged(
        name="scheduled-without-time",
        about="A scheduled job has a time.",
        walk=SCHEDULED,
        join="cross join jobs",
        on=_JOB,
        where="page.wake_us is null",
        sentence="job {job_id} is scheduled, but for no time, so that it never becomes due",
        offer="places it afresh",
        mend=_place,
    ),
    Paged(
        name="overdue",
        about="A scheduled job goes on within a minute of its time.",
        walk=SCHEDULED,
        join="cross join jobs",
        on=_JOB,
        where="page.wake_us < ?",
        binds=lambda look: (look.now_us, look.now_us - GRACE_US),
        columns=("page.wake_us", "cast((? - page.wake_us) / 1000000 as bigint) as late_s"),
        sentence="job {job_id} has been due for {late_s} seconds; is no node at work?",
        offer="places it afresh",
        mend=_place,
    ),
    Paged(
        name="held-without-hold",
        about="A job that is held by a hold is covered by one.",
        walk=HELD,
        join="cross join jobs",
        on=_JOB,
        where="page.waits_for = 'hold'",
        row_filter=_free,
        sentence="job {job_id} is held by a hold, but there is none that covers it",
        offer="places it afresh",
        mend=_place,
    ),
    Paged(
        name="lock-of-nobody",
        about="A lock belongs to an attempt that runs, or to an open job that keeps it.",
        walk=Walk("locks", ("name", "job_id")),
        join="left join jobs on jobs.id = page.job_id",
        where=f"jobs.id is null or (page.fence is null and jobs.state in ({_SETTLED})) "
        f"or (page.fence = {locks.RESERVED} and page.since_us < ?) "
        f"or (page.fence is not null and page.fence <> {locks.RESERVED} and not exists "
        "(select 1 from leases l where l.job_id = page.job_id and l.fence = page.fence))",
        binds=lambda look: (look.now_us - RESERVED_US - GRACE_US,),
        columns=("page.fence", "jobs.state"),
        subject="lock {name}",
        sentence=_who_has_it,
        offer="gives it back; whoever waits for it goes on",
        mend=_give_back,
    ),
)
