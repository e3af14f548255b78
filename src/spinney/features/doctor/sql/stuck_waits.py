"""Rules about what waits: it waits for something that can still come, and that will wake it.

Waiting jobs have a row in ``inactive_jobs`` whose ``waits_for`` is ``needs``, ``children``, ``serial`` or
``lock:NAME``; scheduled ones have ``wake_us``; jobs that a hold keeps have ``waits_for = 'hold'``.
"""

from typing import Any

from spinney.features.doctor.sql.rule import (
    GRACE_US,
    HELD,
    IN_SAME_STATE,
    MAYBE_JOB,
    SCHEDULED,
    SETTLED_STATES,
    WAITING,
    CheckContext,
    Facts,
    Join,
    Paged,
    Repair,
    RepairContext,
    Rule,
    Walk,
)
from spinney.store.sql.recover.sweep_step import RESERVED_US
from spinney.store.sql.registry import hold_coverage
from spinney.store.sql.transitions import locks

_PLACE = Repair("places it afresh", lambda repair, facts: repair.place(facts["job_id"]))

# --- locks --------------------------------------------------------------------------------------


def _could_have_it(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs that are the next for their lock, which has room, with its name. The order of each lock
    is looked up once for a page."""
    named = [row | {"lock": row["waits_for"].removeprefix("lock:")} for row in facts]
    first = {name: locks.next_of(check.tx, check.registry, name) for name in {row["lock"] for row in named}}
    return [
        row for row in named if (job := first[row["lock"]]) is not None and job[0].job_id == row["job_id"]
    ]


def _free_lock(repair: RepairContext, facts: Facts) -> None:
    repair.tx.run("delete from locks where name = ? and job_id = ?", (facts["name"], facts["job_id"]))
    repair.cascade.lock_freed(facts["name"])


# --- the order of serial trees ------------------------------------------------------------------


def _should_go(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs without those of a tree in which a job runs: they rightly wait for that one."""
    running = set(
        check.tx.column(
            "select distinct jobs.root_id from leases l join jobs on jobs.id = l.job_id where l.parent_id is not null"
        )
    )
    return [row for row in facts if row["entered"] is None or row["root_id"] not in running]


def _advance(repair: RepairContext, facts: Facts) -> None:
    """Let the next job of a serial tree go on. A job that is not in the order of its tree is placed, which
    enters it there."""
    if facts["entered"] is None:
        repair.place(facts["job_id"])
    else:
        repair.cascade.line_moved(facts["root_id"])


def _leave_line(repair: RepairContext, facts: Facts) -> None:
    repair.tx.run(
        "delete from serial_order where root_id = ? and lineage = ?", (facts["root_id"], facts["lineage"])
    )
    repair.cascade.line_moved(facts["root_id"])


# --- holds --------------------------------------------------------------------------------------


def _free_of_holds(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs that no hold covers. While the sweep of a released hold goes on, its jobs are about to go on."""
    holds = check.registry.holds
    if holds.lift > holds.lift_swept:
        return []
    covered = hold_coverage.covered(check.tx, holds, [row["job_id"] for row in facts])
    return [row for row in facts if row["job_id"] not in covered]


RULES: tuple[Rule, ...] = (
    Paged(
        name="waits-for-nothing",
        about="A waiting job waits for needs, children, a lock or its turn in a serial tree.",
        walk=WAITING,
        where="page.waits_for is null or (page.waits_for not in ('needs', 'children', 'serial') "
        "and page.waits_for not like 'lock:%')",
        columns=("coalesce(page.waits_for, 'nothing') as waits_for",),
        sentence="job {job_id} waits for {waits_for!r}, so that nothing will ever wake it",
        repair=_PLACE,
    ),
    Paged(
        name="stuck-for-children",
        about="A job that waits for its children has an open child.",
        walk=WAITING,
        # Children of a submission that is accepted, but still being put in place, are not in the list yet.
        where="page.waits_for = 'children' "
        "and not exists (select 1 from children_left c where c.parent_id = page.job_id and c.bad = 0) "
        "and not exists (select 1 from staging s where s.parent_id = page.job_id and s.published = 1)",
        sentence="job {job_id} waits for its children, but none of them is open",
        repair=Repair(
            "lets it go on to its next stage, or to its end",
            lambda repair, facts: repair.cascade.parent_changed(facts["job_id"]),
        ),
    ),
    Paged(
        name="stuck-for-needs",
        about="A job that waits for jobs that it needs has an open one among them.",
        walk=WAITING,
        # Where a settled job has more dependants than one transaction updates, those from next_id on are
        # woken in later steps.
        where="page.waits_for = 'needs' "
        "and not exists (select 1 from needs n join jobs d on d.id = n.need_id "
        f"where n.job_id = page.job_id and d.state not in ({SETTLED_STATES})) "
        "and not exists (select 1 from needs n join met_needs m on m.need_id = n.need_id "
        "where n.job_id = page.job_id and m.next_id <= page.job_id)",
        sentence="job {job_id} waits for jobs that it needs, but none of them is open",
        repair=Repair("places it afresh: it goes on, or fails because of what it needs", _PLACE.run),
    ),
    Paged(
        name="stuck-for-lock",
        about="A job that waits for a lock waits because other jobs have it.",
        walk=WAITING,
        where="page.waits_for like 'lock:%' and page.since_us < ?",
        binds=lambda check: (check.now_us - GRACE_US,),
        columns=("page.waits_for",),
        row_filter=_could_have_it,
        sentence="job {job_id} waits for the lock {lock}, which has room",
        repair=Repair("lets it go on", lambda repair, facts: repair.cascade.lock_freed(facts["lock"])),
    ),
    Paged(
        name="stuck-in-line",
        about="A job that waits for its turn in a serial tree has another before it.",
        walk=WAITING,
        join=Join(
            "cross join jobs left join serial_order o on o.root_id = jobs.root_id and o.lineage = jobs.lineage",
            IN_SAME_STATE.on,
        ),
        where="page.waits_for = 'serial' and (o.job_id is null or not exists "
        "(select 1 from serial_order b where b.root_id = jobs.root_id and b.lineage < jobs.lineage))",
        columns=("jobs.root_id", "o.job_id as entered"),
        row_filter=_should_go,
        sentence="job {job_id} waits for an earlier job of its serial tree, but there is none",
        repair=Repair("lets it go on", _advance),
    ),
    Paged(
        name="line-entry-stale",
        about="A job in the order of a serial tree is one that would run.",
        walk=Walk("serial_order", ("root_id", "lineage")),
        join=Join(
            "left join jobs on jobs.id = page.job_id left join inactive_jobs p on p.job_id = page.job_id"
        ),
        where=f"jobs.id is null or jobs.state in ({SETTLED_STATES}) or jobs.root_id <> page.root_id "
        "or jobs.lineage <> page.lineage or (jobs.state = 'waiting' and p.waits_for in ('needs', 'children'))",
        columns=("page.job_id", "coalesce(jobs.state, 'gone') as state"),
        sentence="job {job_id} is in the order of the serial tree of job {root_id}, but is {state} and will not "
        "run: all jobs behind it wait for ever",
        repair=Repair("takes it out of the order", _leave_line),
    ),
    Paged(
        name="scheduled-without-time",
        about="A scheduled job has a time.",
        walk=SCHEDULED,
        where="page.wake_us is null",
        sentence="job {job_id} is scheduled, but for no time, so that it never becomes due",
        repair=_PLACE,
    ),
    Paged(
        # A repair places the job, as the leader would have done; the sentence asks for a node because none
        # seems to be at work.
        name="overdue",
        about="A scheduled job goes on within a minute of its time.",
        walk=SCHEDULED,
        where="page.wake_us < ?",
        binds=lambda check: (check.now_us, check.now_us - GRACE_US),
        columns=("page.wake_us", "cast((? - page.wake_us) / 1000000 as bigint) as late_s"),
        sentence="job {job_id} has been due for {late_s}; is no node at work?",
        repair=_PLACE,
    ),
    Paged(
        name="held-without-hold",
        about="A job that is held by a hold is covered by one.",
        walk=HELD,
        where="page.waits_for = 'hold'",
        row_filter=_free_of_holds,
        sentence="job {job_id} is held by a hold, but there is none that covers it",
        repair=_PLACE,
    ),
    Paged(
        name="lock-of-nobody",
        about="A lock belongs to an attempt that runs, or to an open job that keeps it.",
        walk=Walk("locks", ("name", "job_id"), subject="lock {name}"),
        join=MAYBE_JOB,
        # A lock without a fence is kept by the job until it settles; one with the fence RESERVED waits for a
        # job that was woken for it; any other belongs to that attempt, as long as it has its lease.
        where=f"jobs.id is null or (page.fence is null and jobs.state in ({SETTLED_STATES})) "
        f"or (page.fence = {locks.RESERVED} and page.since_us < ?) "
        f"or (page.fence is not null and page.fence <> {locks.RESERVED} and not exists "
        "(select 1 from leases l where l.job_id = page.job_id and l.fence = page.fence))",
        binds=lambda check: (check.now_us - RESERVED_US - GRACE_US,),
        columns=(
            "case when jobs.id is null then 'there is no such job' "
            "when page.fence is null then 'that job is ' || jobs.state || ' and keeps nothing any more' "
            f"when page.fence = {locks.RESERVED} then 'it was reserved for that job, which was not claimed' "
            "else 'its attempt ' || page.fence || ', which took it, has ended' end as why",
        ),
        sentence="the lock {name} belongs to job {job_id}, but {why}; jobs that want it wait for ever",
        repair=Repair("frees it; the next job that waits for it goes on", _free_lock),
    ),
)
