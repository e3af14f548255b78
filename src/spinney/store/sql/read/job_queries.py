"""Queries for jobs as people see them, each from one snapshot that is ended at once.

A ``Job`` is put together from its row in ``jobs`` and what other tables have of it: the lease (which makes a
pending job claimed or running), the reason of its state, its progress, and whether a cancel request exists
for it or for a tree that it is in. Damaged JSON becomes ``Unreadable``, so that a list is shown although one
row of it is damaged."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from spinney.model.access import AccessScope
from spinney.model.errors import NoSuchJob
from spinney.model.jobs import Attempt, ChildSummary, Filter, Job
from spinney.model.lineage import ancestors, subtree
from spinney.model.outcomes import Outcome
from spinney.model.values.unreadable import json_object, json_value, of_job
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.read import filter_queries, state_counts
from spinney.store.sql.records import RowMap
from spinney.store.sql.registry.job_rows import VISIBLE

_JOBS = RowMap(
    Job,
    "jobs left join leases l on l.job_id = jobs.id left join inactive_jobs p on p.job_id = jobs.id "
    "left join progress g on g.job_id = jobs.id and g.fence = l.fence",
    columns={
        "stage": "case when jobs.state <> 'completed' then jobs.stage end",
        "state": "case when l.job_id is null then jobs.state when l.running_us is null then 'claimed' "
        "else 'running' end",
        "share": "coalesce((select name from shares where shares.id = -jobs.share), cast(jobs.share as text))",
        "started_us": "coalesce(jobs.started_us, l.running_us)",
        "wake_us": "p.wake_us",
        # That of a completed job is the message of its last attempt, read from the table, because the view would scan
        # all jobs.
        "message": "coalesce(nullif(p.reason, ''), case when jobs.state = 'completed' and jobs.final_fence is null "
        "then (select a.message from attempts a where a.job_id = jobs.id order by a.fence desc limit 1) end)",
        "waits_for": "case when jobs.state in ('waiting', 'held') then p.waits_for end",
        "failed_because": "case when jobs.state = 'failed' then p.waits_for end",
        "node": "(select name from nodes where nodes.id = coalesce(l.node_id, jobs.node_id))",
        "fence": "l.fence",
        "progress": "g.fraction",
        "progress_message": "g.message",
    },
    prefix="jobs.",
    omit=("cancelling", "subject"),
)
"""Jobs with their parameters as JSON text, and without what cancel requests say of them; see ``_jobs``."""


class SqlJobQueries:
    """The methods of ``spinney.store.contract.Kernel`` that read jobs, each on one snapshot."""

    _read: Callable[[], AbstractContextManager[Tx]]
    """Reads one snapshot; see ``Session.read``."""

    def job(self, job_id: int) -> Job:
        with self._read() as tx:
            return _find(tx, job_id)

    def jobs(
        self, job_filter: Filter, *, after: int = 0, limit: int = 100, newest: bool = False
    ) -> list[Job]:
        with self._read() as tx:
            ids = filter_queries.ids(tx.all, job_filter, after=after, limit=limit, newest=newest)
            order = "desc" if newest else "asc"
            rest = f"where jobs.id in (select j.value from json_each(?) j) order by jobs.id {order}"
            return _jobs(tx, rest, (list_text(ids),))

    def tree(self, job_id: int, *, limit: int = 10_000, within: AccessScope | None = None) -> list[Job]:
        """See ``Kernel.tree``. Lineages of a tree are one range of the index ``jobs_by_lineage``, whose order is depth
        first. The job itself is left out when it is not within the limits."""
        conditions, args = filter_queries.conditions(Filter(within=within))
        rest = " and ".join(
            [
                "where jobs.parent_id is not null and jobs.root_id = ? and jobs.lineage > ? and jobs.lineage < ?",
                *conditions,
                f"{VISIBLE} order by jobs.lineage limit ?",
            ]
        )
        with self._read() as tx:
            top = _find(tx, job_id)
            first = [top] if within is None or within.holds(top.collection, top.queue) else []
            start, until = subtree(top.lineage)
            return first + _jobs(tx, rest, (top.root_id, start, until, *args, limit - len(first)))

    def children(self, job_id: int, *, after: int = 0, limit: int = 1000) -> list[Job]:
        rest = (
            "where jobs.parent_id = ? and jobs.parent_id is not null and jobs.id > ? "
            f"and jobs.state <> 'deleted' and jobs.superseded is null and {VISIBLE} order by jobs.id limit ?"
        )
        with self._read() as tx:
            return _jobs(tx, rest, (job_id, after, limit))

    def attempts(self, job_id: int) -> list[Attempt]:
        with self._read() as tx:
            _find(tx, job_id)
            ended = _ENDED.fields(tx, "where job_id = ? order by fence", (job_id,))
            return [*map(_attempt, ended), *_RUNNING.all(tx, "where l.job_id = ?", (job_id,))]

    def results(self, job_id: int) -> Mapping[str, Any]:
        with self._read() as tx:
            rows = tx.all(
                "select stage, result from history where job_id = ? and superseded is distinct from 1 "
                "and result is not null and outcome in ('ok', 'warning', 'finish') order by fence",
                (job_id,),
            )
        return {
            stage: json_value(result, f"the result of stage {stage!r} of job {job_id}")
            for stage, result in rows
        }

    def get_data(self, job_id: int, *, name: str | None = None) -> Mapping[str, Any]:
        only, args = ("", ()) if name is None else ("and name = ?", (name,))
        with self._read() as tx:
            rows = tx.all(
                f"select name, value from data where job_id = ? {only} order by name", (job_id, *args)
            )
        return {name: json_value(value, f"the data entry {name!r} of job {job_id}") for name, value in rows}

    def counts(self, job_filter: Filter) -> Mapping[str, int]:
        with self._read() as tx:
            return state_counts.counts(tx.all, job_filter)

    def below(
        self, job_ids: Sequence[int], *, within: AccessScope | None = None
    ) -> Mapping[int, ChildSummary]:
        with self._read() as tx:
            return state_counts.below(tx.all, job_ids, within)


# --- building ---------------------------------------------------------------------------------


def _find(tx: Tx, job_id: int) -> Job:
    """Return a job. Raises NoSuchJob, also while the submission that creates it is still being written."""
    jobs = _jobs(tx, f"where jobs.id = ? and {VISIBLE}", (job_id,))
    if not jobs:
        raise NoSuchJob(job_id)
    return jobs[0]


def _jobs(tx: Tx, rest: str, args: Sequence[Any]) -> list[Job]:
    """Return the jobs that ``rest`` of the statement selects: its conditions, order and limit. All cancel requests are
    read at once: there are few at any time, and each is to be found for all jobs below it."""
    rows = _JOBS.fields(tx, rest, args)
    cancel_requests = dict(tx.all("select job_id, tree from cancel_requests"))
    return [_job(fields, cancel_requests) for fields in rows]


def _job(fields: dict[str, Any], cancel_requests: Mapping[int, bool]) -> Job:
    job_id = fields["id"]
    fields["params"] = json_object(fields["params"], of_job(job_id))
    fields["cancelling"] = (
        bool(cancel_requests)
        and fields["settled_us"] is None
        and (job_id in cancel_requests or any(map(cancel_requests.get, ancestors(fields["lineage"]))))
    )
    return Job(**fields)


_NODE = "(select name from nodes where nodes.id = node_id)"
_ENDED = RowMap(
    Attempt,
    "history",
    columns={"node": _NODE},
    decode={"outcome": Outcome, "node": lambda name: name or ""},
)
"""The attempts that have ended, with error and result as JSON texts; see ``_attempt``."""
_RUNNING = RowMap(
    Attempt,
    "leases l join lanes on lanes.id = l.lane",
    columns={"stage": "lanes.stage", "node": _NODE, "started_us": "coalesce(l.running_us, l.claimed_us)"}
    | dict.fromkeys(("outcome", "ended_us"), "null"),
    prefix="l.",
    decode={"node": lambda name: name or ""},
    omit=("code", "message", "error", "result", "superseded"),
)


def _attempt(fields: dict[str, Any]) -> Attempt:
    name = f"attempt {fields['fence']} of job {fields['job_id']}"
    error, result = fields["error"], fields["result"]
    fields["error"] = json_object(error, f"the error of {name}") if error else None
    fields["result"] = json_value(result, f"the result of {name}") if result else None
    return Attempt(**fields)
