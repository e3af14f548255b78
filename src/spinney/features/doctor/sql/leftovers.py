"""What is left over of jobs that have settled or gone: keys, needs, cancel requests, history, half-written calls."""

from collections.abc import Callable
from typing import Any

from spinney.features.doctor.sql.rule import (
    GRACE_US,
    JOBS,
    CheckContext,
    Facts,
    Paged,
    Repair,
    RepairContext,
    Rule,
    Walk,
    only_accepted,
)
from spinney.model.errors import Refused
from spinney.model.lineage import subtree
from spinney.model.states import SETTLED
from spinney.store.sql.registry import hold_coverage
from spinney.store.sql.submit import new_jobs, staging
from spinney.store.sql.transitions import hold_rows, removal

LONG_US = 5 * GRACE_US
"""A call that is written in steps shows so often at least that its writer lives."""
_SETTLED = ", ".join(f"'{state}'" for state in sorted(SETTLED))
_NO_JOB = "left join jobs on jobs.id = page.job_id"


def _delete(table: str, *keys: str) -> Repair:
    """Delete the row with these keys, which are literals of this module."""

    def mend(mend: RepairContext, facts: Facts) -> None:
        where = " and ".join(f"{key} = ?" for key in keys)
        mend.tx.run(f"delete from {table} where {where}", [facts[key] for key in keys])

    return mend


def _first_of_each(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({facts["job_id"]: facts for facts in reversed(found)}.values())[::-1]


# --- keys -------------------------------------------------------------------------------------


def _take_key(mend: RepairContext, facts: Facts) -> None:
    owner = mend.tx.value("select job_id from keys where scope = 0 and key = ?", (facts["key"],))
    if owner is not None:
        raise Refused(
            f"the key {facts['key']!r} of job {facts['id']} is taken by job {owner} meanwhile; cancel one of the two"
        )
    mend.tx.run(
        "insert into keys (scope, key, job_id, forever) values (0, ?, ?, ?)",
        (facts["key"], facts["id"], False),
    )


# --- calls that are written in steps ----------------------------------------------------------


def _go_on_with(mend: RepairContext, facts: Facts) -> None:
    """One step of what a sweep would do."""
    first_id, last_id = facts["first_id"], facts["last_id"]
    if facts["published"] == 1:
        parent_id = staging.step(mend.tx, mend.registry, mend.now_us, new_jobs.STEP)
        if parent_id is not None and parent_id > 0:
            mend.cascade.parent_changed(parent_id)
        return
    mend.tx.run("update staging set published = -1, fence = null where first_id = ?", (first_id,))
    staging.drop(mend.tx, first_id, last_id)


def _call(facts: Facts) -> str:
    which = f"the jobs {facts['first_id']} to {facts['last_id']}"
    if facts["published"] == 1:
        return f"{which} are accepted, but nobody goes on putting them in their places; is no node at work?"
    if facts["published"] in (staging.CHILDREN, staging.OWN) and facts["fence"] is not None:
        how = "spawned" if facts["published"] == staging.CHILDREN else "submitted"
        return f"{which} were {how} by attempt {facts['fence']} of job {facts['parent_id']}, which has ended"
    return f"{which} were written by a call that was never finished, and are still there"


# --- cancel requests -----------------------------------------------------------------------------------


def _at_rest(look: CheckContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A wish over a tree stays until nothing of it is open, and then until housekeeping has been through."""
    over = []
    for facts in found:
        if facts["tree"]:
            start, until = subtree(facts["lineage"])
            lately_us = look.now_us - GRACE_US
            moved = look.tx.value(
                "select 1 from jobs where parent_id is not null and root_id = ? and lineage > ? and lineage < ? "
                f"and (state not in ({_SETTLED}) or settled_us > ?) limit 1",
                (facts["root_id"], start, until, lately_us),
            )
            if moved or max(facts["at_us"], facts["settled_us"] or 0) > lately_us:
                continue
        over.append(facts)
    return over


# --- holds ------------------------------------------------------------------------------------


def _end_hold(mend: RepairContext, facts: Facts) -> None:
    row = mend.tx.one(f"select {hold_coverage.COLUMNS} from holds where id = ?", (facts["id"],))
    hold_rows.end(mend.tx, mend.registry, [hold_coverage.hold(row)], mend.now_us)


def _of_no_job(table: str, key: str, what: str, offer: Callable[[RepairContext, Facts], None]) -> Paged:
    """Rows that hang on a job which is not there; told once for each job."""
    return Paged(
        name=f"{table}-of-no-job",
        about=f"The job that {what} belong to is there.",
        walk=Walk(table, ("job_id", key) if key else ("job_id",)),
        join=_NO_JOB,
        where="jobs.id is null",
        row_filter=_first_of_each,
        sentence=f"there are {what} of job {{job_id}}, but there is no such job",
        offer="removes them",
        mend=offer,
    )


def _clear(mend: RepairContext, facts: Facts) -> None:
    removal.clear(mend.tx, [facts["job_id"]])


RULES: tuple[Rule, ...] = (
    _of_no_job("attempts", "fence", "attempts", _clear),
    _of_no_job("data", "name", "data", _clear),
    _of_no_job("needs", "need_id", "needs", _clear),
    _of_no_job("progress", "", "notes of progress", _delete("progress", "job_id")),
    Paged(
        name="met-needs-of-no-job",
        about="The job whose needers are still to be told is there.",
        walk=Walk("met_needs", ("need_id",)),
        join="left join jobs on jobs.id = page.need_id",
        where="jobs.id is null",
        subject="job {need_id}",
        sentence="those who need job {need_id} are still to be told that it settled, but there is no such job",
        offer="removes the entry",
        mend=_delete("met_needs", "need_id"),
    ),
    Paged(
        name="key-of-settled-job",
        about="A key is free again when its job has settled, unless it was taken for ever.",
        walk=Walk("keys", ("scope", "key")),
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where=f"page.forever = 0 and jobs.state in ({_SETTLED})",
        columns=("page.job_id", "jobs.state"),
        sentence="job {job_id} is {state}, but its key {key!r} is still taken, so that nobody can submit another "
        "with it",
        offer="frees the key",
        mend=_delete("keys", "scope", "key"),
    ),
    Paged(
        name="key-of-no-job",
        about="A key belongs to a job, unless it was taken for ever by one that retention has removed.",
        walk=Walk("keys", ("scope", "key")),
        join=_NO_JOB,
        where="jobs.id is null and not (page.scope = 0 and page.forever = 1)",
        columns=("page.job_id",),
        sentence="the key {key!r} is taken by job {job_id}, but there is no such job",
        offer="frees the key",
        mend=_delete("keys", "scope", "key"),
    ),
    Paged(
        name="key-not-taken",
        about="An open job with a key has it.",
        walk=JOBS,
        where=f"page.key is not null and page.parent_id is null and page.state not in ({_SETTLED}) "
        "and not exists (select 1 from keys k where k.job_id = page.id)",
        columns=("page.key", "page.state"),
        row_filter=only_accepted,
        subject="job {id}",
        sentence="job {id} is {state}, but does not have its key {key!r}, so that a second job could be submitted "
        "with it",
        offer="takes the key, if nobody else has it",
        mend=_take_key,
    ),
    Paged(
        name="call-abandoned",
        about="A call that is written in steps has a writer; what is accepted is put in place.",
        walk=Walk("staging", ("first_id",)),
        where="(page.published = 0 and page.fence is null and page.beat_us < ?) "
        "or (page.published in (0, 2) and page.fence is not null and not exists "
        "(select 1 from leases l where l.job_id = page.parent_id and l.fence = page.fence)) "
        "or (page.published not in (0, 2) and page.beat_us < ? and not exists "
        "(select 1 from nodes where nodes.state = 'active' and nodes.seen_us >= ? "
        "and nodes.id not in (select node_id from external_workers)))",
        binds=lambda look: (look.now_us - LONG_US, look.now_us - LONG_US, look.now_us - GRACE_US),
        columns=("page.last_id", "page.published", "page.parent_id", "page.fence"),
        subject="jobs {first_id} to {last_id}",
        sentence=_call,
        offer="goes on as housekeeping would: puts accepted jobs in their places, removes what never was accepted",
        mend=_go_on_with,
        stepwise=True,
    ),
    Paged(
        name="cancel-request-of-no-job",
        about="Who is to be cancelled is a job.",
        walk=Walk("cancel_requests", ("job_id",)),
        join=_NO_JOB,
        where="jobs.id is null",
        sentence="job {job_id} is to be cancelled, but there is no such job; what is open below it "
        "is cancelled only when somebody comes by it",
        offer="forgets the wish",
        mend=_delete("cancel_requests", "job_id"),
    ),
    Paged(
        name="cancel-request-of-settled-job",
        about="Who is to be cancelled is open, or has something open below.",
        walk=Walk("cancel_requests", ("job_id",)),
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where=f"jobs.state in ({_SETTLED})",
        columns=("jobs.state", "jobs.root_id", "jobs.settled_us", "page.lineage", "page.tree", "page.at_us"),
        row_filter=_at_rest,
        sentence="job {job_id} is to be cancelled, but is {state} and at rest; it cannot be opened again so long",
        offer="forgets the wish",
        mend=_delete("cancel_requests", "job_id"),
    ),
    Paged(
        name="folder-of-living-job-to-go",
        about="Only folders of deleted and removed jobs are to be removed.",
        walk=Walk("deleted_folders", ("job_id",)),
        join="cross join jobs",
        on="jobs.id = page.job_id",
        where="jobs.state <> 'deleted'",
        columns=("jobs.state",),
        sentence="the folder of job {job_id} is to be removed, but the job is {state}: its files would be lost",
        offer="keeps the folder",
        mend=_delete("deleted_folders", "job_id"),
    ),
    Paged(
        name="removal-of-no-tree",
        about="A tree that is marked to be removed has its top.",
        walk=Walk("removals", ("root_id",)),
        join="left join jobs on jobs.id = page.root_id and jobs.parent_id is null",
        where="jobs.id is null",
        subject="job {root_id}",
        sentence="the tree of job {root_id} is marked to be removed, but there is no such job at the top of a tree",
        offer="removes the mark",
        mend=_delete("removals", "root_id"),
    ),
    Paged(
        name="hold-on-no-job",
        about="What a hold on a job or a tree lies on is there.",
        walk=Walk("holds", ("id",)),
        join="left join jobs on jobs.id = case when page.scope in ('job', 'tree') then cast(page.name as bigint) end",
        where="page.scope in ('job', 'tree') and (jobs.id is null or jobs.state = 'deleted')",
        columns=("page.scope", "page.name"),
        subject="hold {id}",
        sentence="hold {id} lies on {scope} {name}, but there is no such job any more",
        offer="ends the hold",
        mend=_end_hold,
    ),
)
