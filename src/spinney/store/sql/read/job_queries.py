"""Queries for jobs as people see them, each from one snapshot that is ended at once.

A ``Job`` is put together from its row in ``jobs`` and what other tables have of it: the lease (which makes a
pending job claimed or running), the reason of its state, its progress, and whether a cancel request exists
for it or for a tree that it is in. Damaged JSON becomes ``Unreadable``, so that a list is shown although one
row of it is damaged."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

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

_COMPUTED = frozenset({"message", "cancelling", "subject"})
_FIELDS = tuple(field.name for field in fields(Job) if field.name not in _COMPUTED)
_BESIDE = ("share_name", "running_us", "reason", "last_message")
"""The columns of ``_SELECT``: fields of a job, and what others are computed from."""
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
    f"select {', '.join(_FROM_ELSEWHERE.get(name, f'jobs.{name}') for name in (*_FIELDS, *_BESIDE))} "
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
    return [_job(row, cancel_requests) for row in rows]


def _job(row: Sequence[Any], cancel_requests: Mapping[int, bool]) -> Job:
    values = dict(zip(_FIELDS, row, strict=False))
    share_name, running_us, reason, last_message = row[len(_FIELDS) :]
    state = State(values["state"])
    if values["fence"] is not None:
        state = State.CLAIMED if running_us is None else State.RUNNING
    cancelling = bool(cancel_requests) and (
        values["id"] in cancel_requests or any(map(cancel_requests.get, ancestors(values["lineage"])))
    )
    values["state"] = state
    values["message"] = reason or None
    if state is State.COMPLETED:
        values["stage"], values["message"] = None, reason or last_message
    values["share"] = share_name or str(values["share"])
    values["params"] = json_object(values["params"], of_job(values["id"]))
    values["started_us"] = values["started_us"] or running_us
    if state not in (State.WAITING, State.HELD):
        values["waits_for"] = None
    values["cancelling"] = cancelling and values["settled_us"] is None
    return Job(**values)


def _attempt(row: Sequence[Any]) -> Attempt:
    values = dict(zip((field.name for field in fields(Attempt)), row, strict=True))
    which = f"attempt {values['fence']} of job {values['job_id']}"
    outcome, error, result = values["outcome"], values["error"], values["result"]
    values |= {
        "outcome": Outcome(outcome) if outcome else None,
        "node": values["node"] or "",
        "error": json_object(error, f"the error of {which}") if error else None,
        "result": json_value(result, f"the result of {which}") if result else None,
        "superseded": bool(values["superseded"]),
    }
    return Attempt(**values)
