"""Queries for jobs as people see them, each from one snapshot that is ended at once.

A ``Job`` is put together from its row in ``jobs`` and what other tables have of it: the lease (which makes a
pending job claimed or running), the reason of its state, its progress, and whether a cancel request exists
for it or for a tree that it is in. Damaged JSON becomes ``Unreadable``, so that a list is shown although one
row of it is damaged."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spinney.model.access import AccessScope
from spinney.model.errors import NoSuchJob
from spinney.model.jobs import Attempt, Filter, Job
from spinney.model.lineage import ancestors, subtree
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.model.values.unreadable import json_object, json_value, of_job
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.read import filter_queries
from spinney.store.sql.registry.job_rows import VISIBLE


class _Row(NamedTuple):
    """The columns of ``_SELECT``, in its order."""

    id: int
    type: str
    stage: str
    state: str
    queue: str
    priority: int
    share: int
    share_name: str | None
    collection: str | None
    submitter: str | None
    key: str | None
    parent_id: int | None
    root_id: int
    lineage: str
    params: str
    created_us: int
    started_us: int | None
    settled_us: int | None
    attempts: int
    interruptions: int
    warnings: int
    code: int | None
    trace: str | None
    fence: int | None
    running_us: int | None
    node: str | None
    waits_for: str | None
    wake_us: int | None
    reason: str | None
    progress: float | None
    progress_message: str | None
    last_message: str | None


_FROM_ELSEWHERE = {
    "share_name": "(select name from shares where shares.id = -jobs.share)",
    "fence": "l.fence",
    "running_us": "l.running_us",
    "node": "(select name from nodes where nodes.id = coalesce(l.node_id, jobs.node_id))",
    "waits_for": "p.waits_for",
    "wake_us": "p.wake_us",
    "reason": "p.reason",
    "progress": "g.fraction",
    "progress_message": "g.message",
    # The message of the last attempt, read from the table, because the view would scan all jobs.
    "last_message": "case when jobs.final_fence is null then "
    "(select a.message from attempts a where a.job_id = jobs.id order by a.fence desc limit 1) end",
}
"""The columns that are not of the table ``jobs``."""
_SELECT = (
    f"select {', '.join(_FROM_ELSEWHERE.get(name, f'jobs.{name}') for name in _Row._fields)} "
    "from jobs left join leases l on l.job_id = jobs.id left join inactive_jobs p on p.job_id = jobs.id "
    "left join progress g on g.job_id = jobs.id "
)


def job(tx: Tx, job_id: int) -> Job:
    """Return a job. Raises NoSuchJob, also while the submission that creates it is still being written."""
    rows = tx.all(f"{_SELECT} where jobs.id = ? and {VISIBLE}", (job_id,))
    if not rows:
        raise NoSuchJob(job_id)
    return _jobs(tx, rows)[0]


def jobs(tx: Tx, job_filter: Filter, after: int, limit: int, newest: bool) -> list[Job]:
    """Return up to ``limit`` matching jobs by ascending id, from behind ``after``; with ``newest`` by descending id,
    from before it (0: from the last)."""
    ids = filter_queries.ids(tx.all, job_filter, after=after, limit=limit, newest=newest)
    sql = f"{_SELECT} where jobs.id in (select j.value from json_each(?) j) order by jobs.id {'desc' if newest else ''}"
    return _jobs(tx, tx.all(sql, (list_text(ids),)))


def tree(tx: Tx, job_id: int, limit: int, within: AccessScope | None) -> list[Job]:
    """Return a job and those below it within these limits, depth first, ``limit`` in all (1 or more). The job
    itself is left out when it is not within them. Raises NoSuchJob.

    Lineages of a tree are one range of the index ``jobs_by_lineage``, whose order is depth first."""
    top = job(tx, job_id)
    first = [top] if within is None or within.holds(top.collection, top.queue) else []
    start, until = subtree(top.lineage)
    limits, args = filter_queries.conditions(Filter(within=within))
    where = " and ".join(
        ["jobs.parent_id is not null and jobs.root_id = ? and jobs.lineage > ? and jobs.lineage < ?", *limits]
    )
    sql = f"{_SELECT} where {where} and {VISIBLE} order by jobs.lineage limit ?"
    below = tx.all(sql, (top.root_id, start, until, *args, limit - len(first)))
    return [*first, *_jobs(tx, below)]


def children(tx: Tx, job_id: int, after: int, limit: int) -> list[Job]:
    """Return the direct children of a job by id, from behind ``after``, without deleted and superseded ones."""
    sql = (
        f"{_SELECT} where jobs.parent_id = ? and jobs.parent_id is not null and jobs.id > ? "
        f"and jobs.state <> 'deleted' and jobs.superseded is null and {VISIBLE} order by jobs.id limit ?"
    )
    return _jobs(tx, tx.all(sql, (job_id, after, limit)))


def attempts(tx: Tx, job_id: int) -> list[Attempt]:
    """Return the attempts of a job by fence: those that have ended, then its lease if it has one. Raises NoSuchJob."""
    job(tx, job_id)
    past = tx.all(
        "select job_id, fence, stage, attempt, outcome, (select name from nodes n where n.id = node_id), started_us, "
        "ended_us, code, message, error, result, superseded from history where job_id = ? order by fence",
        (job_id,),
    )
    now = tx.all(
        "select l.job_id, l.fence, lanes.stage, l.attempt, null, (select name from nodes n where n.id = l.node_id), "
        "coalesce(l.running_us, l.claimed_us), null, null, null, null, null, null "
        "from leases l join lanes on lanes.id = l.lane where l.job_id = ?",
        (job_id,),
    )
    return [_attempt(row) for row in [*past, *now]]


def results(tx: Tx, job_id: int) -> Mapping[str, Any]:
    """Return the values of the stages that have passed, by stage. Stages without a value are left out."""
    rows = tx.all(
        "select stage, result from history where job_id = ? and superseded is distinct from 1 and result is not null "
        "and outcome in ('ok', 'warning', 'finish') order by fence",
        (job_id,),
    )
    return {
        stage: json_value(result, f"the result of stage {stage!r} of job {job_id}") for stage, result in rows
    }


def data(tx: Tx, job_id: int, name: str | None = None) -> Mapping[str, Any]:
    """Return the entries of a job's data, by name; with ``name`` that entry alone, if there is one."""
    if name is None:
        rows = tx.all("select name, value from data where job_id = ? order by name", (job_id,))
    else:
        rows = tx.all("select name, value from data where job_id = ? and name = ?", (job_id, name))
    return {name: json_value(value, f"the data entry {name!r} of job {job_id}") for name, value in rows}


# --- building ---------------------------------------------------------------------------------


def _jobs(tx: Tx, rows: Sequence[Any]) -> list[Job]:
    """Return the jobs of rows of ``_SELECT``. All cancel requests are read at once: there are few at any
    time, and each is to be found for all jobs below it."""
    cancel_requests = {job_id: tree for job_id, tree in tx.all("select job_id, tree from cancel_requests")}  # noqa: C416
    return [_job(_Row._make(row), cancel_requests) for row in rows]


def _job(row: _Row, cancel_requests: Mapping[int, bool]) -> Job:
    state = State(row.state)
    if row.fence is not None:
        state = State.CLAIMED if row.running_us is None else State.RUNNING
    cancelling = bool(cancel_requests) and (
        row.id in cancel_requests or any(map(cancel_requests.get, ancestors(row.lineage)))
    )
    return Job(
        id=row.id,
        type=row.type,
        stage=None if state is State.COMPLETED else row.stage,
        state=state,
        queue=row.queue,
        priority=row.priority,
        share=row.share_name or str(row.share),
        collection=row.collection,
        submitter=row.submitter,
        key=row.key,
        parent_id=row.parent_id,
        root_id=row.root_id,
        lineage=row.lineage,
        params=json_object(row.params, of_job(row.id)),
        created_us=row.created_us,
        started_us=row.started_us or row.running_us,
        settled_us=row.settled_us,
        wake_us=row.wake_us,
        attempts=row.attempts,
        interruptions=row.interruptions,
        warnings=row.warnings,
        code=row.code,
        message=row.reason or (row.last_message if state is State.COMPLETED else None),
        waits_for=row.waits_for if state in (State.WAITING, State.HELD) else None,
        failed_because=row.waits_for if state is State.FAILED else None,
        cancelling=cancelling and row.settled_us is None,
        node=row.node,
        fence=row.fence,
        progress=row.progress,
        progress_message=row.progress_message,
        trace=row.trace,
    )


def _attempt(row: Any) -> Attempt:
    (
        job_id,
        fence,
        stage,
        attempt,
        outcome,
        node,
        started_us,
        ended_us,
        code,
        message,
        error,
        result,
        superseded,
    ) = row
    return Attempt(
        job_id=job_id,
        fence=fence,
        stage=stage,
        attempt=attempt,
        outcome=Outcome(outcome) if outcome else None,
        node=node or "",
        started_us=started_us,
        ended_us=ended_us,
        code=code,
        message=message,
        error=json_object(error, f"the error of attempt {fence} of job {job_id}") if error else None,
        result=json_value(result, f"the result of attempt {fence} of job {job_id}") if result else None,
        superseded=bool(superseded),
    )
