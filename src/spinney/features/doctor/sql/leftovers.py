"""Rules about rows that have outlived their job: of jobs that are gone, and of jobs that have settled."""

from typing import Any

from spinney.features.doctor.sql.rule import (
    IN_JOBS,
    INACTIVE,
    JOBS,
    MAYBE_JOB,
    READY,
    SETTLED_STATES,
    CheckContext,
    Facts,
    Join,
    Paged,
    Repair,
    RepairContext,
    Rule,
    Walk,
    deletion,
    only_accepted,
)
from spinney.model.errors import Refused
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.transitions import hold_rows, removal

_KEYS = Walk("keys", ("scope", "key"))


def _one_of_each(check: CheckContext, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each job, so that a job is reported once."""
    return list({row["job_id"]: row for row in facts}.values())


def _clear(repair: RepairContext, facts: Facts) -> None:
    """Delete the attempts, data and needs of a job that does not exist, a bounded number in one transaction.
    What is left after that is found by the next round."""
    removal.clear(repair.tx, [facts["job_id"]])


def _without_job(name: str, walk: Walk, row: str, *, many: bool = False) -> Paged:
    """Return the rule that the job named by each row of a table exists.

    ``row`` names such a row in the messages. ``many``: a job may have several rows there; it is reported once
    for each page, and the repair removes everything of the job.
    """
    return Paged(
        name=name,
        about=f"The job of {row} exists.",
        walk=walk,
        join=MAYBE_JOB,
        where="jobs.id is null",
        columns=() if "job_id" in walk.keys else ("page.job_id",),
        row_filter=_one_of_each if many else None,
        sentence=f"there is {row} of job {{job_id}}, but there is no such job",
        repair=Repair("removes it, and whatever else is left of that job", _clear)
        if many
        else deletion(walk, "removes it"),
    )


def _take_key(repair: RepairContext, facts: Facts) -> None:
    """Give a job the row of its unique key again. Raises Refused when another job has taken the key meanwhile."""
    scope = repair.registry.key_scope(facts["type"])
    if (holder := job_rows.key_holder(repair.tx, scope, facts["key"])) is not None:
        owner, *_ = holder
        raise Refused(
            f"the key {facts['key']!r} of job {facts['id']} is taken by job {owner} meanwhile; cancel one of the two"
        )
    repair.tx.run(
        "insert into keys (scope, key, job_id, forever) values (?, ?, ?, ?)",
        (scope, facts["key"], facts["id"], False),
    )


def _end_hold(repair: RepairContext, facts: Facts) -> None:
    """End a hold whose job is gone, as when it is released; the end of a hold on a tree is noted in the
    audit."""
    holds = hold_coverage.HOLDS.all(repair.tx, "where id = ?", (facts["id"],))
    hold_rows.end_of_gone(repair.tx, repair.registry, holds, repair.now_us)


RULES: tuple[Rule, ...] = (
    _without_job("ready-without-job", READY, "a row of ready"),
    _without_job("inactive-without-job", INACTIVE, "a row of inactive_jobs"),
    _without_job("attempts-of-no-job", Walk("attempts", ("job_id", "fence")), "an attempt", many=True),
    _without_job("data-of-no-job", Walk("data", ("job_id", "name")), "a data entry", many=True),
    _without_job("needs-of-no-job", Walk("needs", ("job_id", "need_id")), "a need", many=True),
    _without_job("progress-of-no-job", Walk("progress", ("job_id",)), "a progress report"),
    _without_job("cancel-request-of-no-job", Walk("cancel_requests", ("job_id",)), "a cancel request"),
    Paged(
        name="met-needs-of-no-job",
        about="The job whose dependents are still to be woken exists.",
        walk=(met_needs := Walk("met_needs", ("need_id",), subject="job {need_id}")),
        join=Join("left join jobs on jobs.id = page.need_id"),
        where="jobs.id is null",
        sentence="the jobs that need job {need_id} still wait for news that it settled, but there is no such job",
        repair=deletion(met_needs, "removes the entry"),
    ),
    Paged(
        name="key-of-settled-job",
        about="A key is free again when its job has settled, unless it was taken for ever.",
        walk=_KEYS,
        join=IN_JOBS,
        where=f"page.forever = 0 and jobs.state in ({SETTLED_STATES})",
        columns=("page.job_id", "jobs.state"),
        sentence="job {job_id} is {state}, but its key {key!r} is still taken, so that nobody can submit another "
        "with it",
        repair=deletion(_KEYS, "frees the key"),
    ),
    Paged(
        name="key-of-no-job",
        about="A key belongs to a job, unless it was taken for ever by one that retention has removed.",
        walk=_KEYS,
        join=MAYBE_JOB,
        # Only a key of a job without a parent may outlive its job; another scope is the parent below which the key is
        # unique.
        where="jobs.id is null and not (page.scope <= 0 and page.forever = 1)",
        columns=("page.job_id",),
        sentence="the key {key!r} is taken by job {job_id}, but there is no such job",
        repair=deletion(_KEYS, "frees the key"),
    ),
    Paged(
        name="key-not-taken",
        about="An open job with a key has taken it.",
        walk=JOBS,
        # Keys of subjobs have their parent as the scope; the repair restores only those of jobs without one.
        where=f"page.key is not null and page.parent_id is null and page.state not in ({SETTLED_STATES}) "
        "and not exists (select 1 from keys k where k.job_id = page.id)",
        columns=("page.key", "page.state", "page.type"),
        row_filter=only_accepted,
        sentence="job {id} is {state}, but does not have its key {key!r}, so that a second job could be submitted "
        "with it",
        repair=Repair("takes the key, if no other job has it", _take_key),
    ),
    Paged(
        name="folder-of-living-job-to-go",
        about="Only folders of deleted and removed jobs are to be removed.",
        walk=(deleted := Walk("deleted_folders", ("job_id",))),
        join=IN_JOBS,
        where="jobs.state <> 'deleted'",
        columns=("jobs.state",),
        sentence="the folder of job {job_id} is to be removed, but the job is {state}: its files would be lost",
        repair=deletion(deleted, "keeps the folder"),
    ),
    Paged(
        name="removal-of-no-tree",
        about="A tree that is marked to be removed has its top.",
        walk=(removals := Walk("removals", ("root_id",), subject="job {root_id}")),
        join=Join("left join jobs on jobs.id = page.root_id and jobs.parent_id is null"),
        where="jobs.id is null",
        sentence="the tree of job {root_id} is marked to be removed, but there is no such job at the top of a tree",
        repair=deletion(removals, "removes the mark"),
    ),
    Paged(
        name="hold-on-no-job",
        about="The job of a hold on a job or a tree exists.",
        walk=Walk("holds", ("id",), subject="hold {id}"),
        join=Join(
            # The name is a job's id in these two scopes only, so it may not be cast in others.
            "left join jobs on jobs.id = "
            "case when page.scope in ('job', 'tree') then cast(page.name as bigint) end"
        ),
        where="page.scope in ('job', 'tree') and (jobs.id is null or jobs.state = 'deleted')",
        columns=("page.scope", "page.name"),
        sentence="hold {id} covers {scope} {name}, but there is no such job any more",
        repair=Repair("ends the hold", _end_hold),
    ),
)
