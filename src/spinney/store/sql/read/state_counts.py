"""Exact counts of jobs by state, without reading completed ones.

There are no counters. Jobs that are not completed are in a narrow table (``inactive_jobs``, ``ready``, ``leases``) and
are counted there; completed ones are all others, and an index has the number of all jobs without their rows being read.

So the completed are counted as the difference (``_by_subtraction``), where a filter can be answered by one
index alone and matches many jobs. Otherwise the matching jobs are read, grouped by state (``_summed``). Both
give the same numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from spinney.model.access import AccessScope
from spinney.model.jobs import ChildSummary, Filter
from spinney.model.states import State
from spinney.store.sql.connection.database import list_text
from spinney.store.sql.read import access_paths, filter_queries
from spinney.store.sql.read.access_paths import RunQuery, UnionPart
from spinney.store.sql.registry.job_rows import VISIBLE

_INDEXED = ("collection", "submitter", "parent_id", "below", "root_id")
"""Fields that one index answers alone; type and queue have another one."""
_SHOWN = (
    "case when jobs.state <> 'pending' then jobs.state else coalesce((select case when w.running_us is null "
    "then 'claimed' else 'running' end from leases w where w.job_id = jobs.id), 'pending') end"
)
_APART = tuple(state for state in State if state is not State.COMPLETED)


def counts(run_query: RunQuery, job_filter: Filter) -> Mapping[str, int]:
    """Return how many matching jobs are in each state; states without jobs are left out."""
    job_filter = _without_superseded(run_query, filter_queries.narrowed(job_filter))
    if (job_filter.states is None or State.COMPLETED in job_filter.states) and _by_index_alone(job_filter):
        lead = access_paths.cheapest(run_query, job_filter)
        if lead.size >= access_paths.ENOUGH:
            return _by_subtraction(run_query, job_filter, lead)
    return _summed(run_query, filter_queries.union_parts(run_query, job_filter))


def below(
    run_query: RunQuery, job_ids: Sequence[int], within: AccessScope | None
) -> Mapping[int, ChildSummary]:
    """Summarize the children of each job, by one query on the index of parents."""
    where, args = filter_queries.conditions(Filter(superseded=False, within=within))
    sql = (
        f"select jobs.parent_id, {_SHOWN} as shown, count(*), sum(jobs.warnings) from jobs "
        f"where jobs.parent_id in (select j.value from json_each(?) j) and jobs.parent_id is not null "
        f"and jobs.state <> 'deleted' and {' and '.join([VISIBLE, *where])} group by jobs.parent_id, shown"
    )
    states: dict[int, dict[str, int]] = {}
    warnings: dict[int, int] = {}
    for parent, state, jobs, warned in run_query(sql, (list_text(job_ids), *args)):
        states.setdefault(parent, {})[state] = jobs
        warnings[parent] = warnings.get(parent, 0) + int(warned or 0)
    return {
        parent: ChildSummary(states=by_state, warnings=warnings[parent])
        for parent, by_state in states.items()
    }


def _without_superseded(run_query: RunQuery, job_filter: Filter) -> Filter:
    """Return the filter without the check for superseded rows, where there can be none: children are superseded
    together with the attempt that spawned them."""
    if job_filter.superseded is not False or job_filter.parent_id is None:
        return job_filter
    ran_again = "select 1 from attempts where job_id = ? and superseded is not null limit 1"
    return (
        job_filter if run_query(ran_again, (job_filter.parent_id,)) else replace(job_filter, superseded=None)
    )


def _by_index_alone(job_filter: Filter) -> bool:
    """Return whether the entries of one index suffice to count the matches."""
    used = {f.name for f in fields(Filter) if getattr(job_filter, f.name) != f.default} - {"states"}
    if job_filter.within is not None:
        by_queue = job_filter.within.collections is None
        return (
            used <= {"within", "type"}
            if by_queue
            else used == {"within"} and job_filter.within.queues is None
        )
    return used <= {"type", "queue"} or used == {"roots_only"} or (len(used) == 1 and used <= {*_INDEXED})


def _by_subtraction(
    run_query: RunQuery, job_filter: Filter, lead: access_paths.AccessPath
) -> Mapping[str, int]:
    """Count all matching jobs by the index and those of each other state in the narrow tables; the rest is
    completed. All of it is read from one snapshot, or the difference would be wrong."""
    whole, span = _whole(run_query, job_filter, lead)
    apart = access_paths.narrow_parts(run_query, job_filter, _APART, filter_queries.conditions)
    if span is not None and job_filter.below is None and job_filter.root_id is None:
        apart = [entry for part in apart for entry in _by_entry(part, lead, span)]
    else:
        apart = [_within(part, span) for part in apart]
    totals = dict(_summed(run_query, apart))
    totals[State.COMPLETED] = whole - sum(totals.values())
    states = list(State) if job_filter.states is None else job_filter.states
    return {state: n for state, n in totals.items() if n and state in states}


Span = tuple[int, int]
"""(lowest, highest) id."""


def _whole(run_query: RunQuery, job_filter: Filter, lead: access_paths.AccessPath) -> tuple[int, Span | None]:
    """Return how many jobs match in all states, and the range of their ids: rows outside of it need not be read."""
    if job_filter.roots_only:
        children = _entries(run_query, "jobs.parent_id is not null", ())
        return _entries(run_query, "", ()) - children, None
    if lead is access_paths.EVERYTHING:
        return _entries(run_query, "", ()), None
    top = job_filter.root_id or (
        int(job_filter.below.split(".")[-1]) if job_filter.below is not None else None
    )
    if top is not None:
        return _tree(run_query, top, lead)
    return sum(_entries(run_query, *part) for part in lead.parts), _span(run_query, job_filter, lead)


def _tree(run_query: RunQuery, top: int, lead: access_paths.AccessPath) -> tuple[int, Span]:
    """Return count and id range of a tree: jobs below a job were created after it. The index is by lineage, so that all
    its entries are read for the last id; they are counted on the way."""
    whole, last = 0, top
    for condition, args in lead.parts:
        n, highest = run_query(f"select count(*), max(jobs.id + 0) from jobs where {condition}", args)[0]
        whole += n - _hidden(run_query, condition, args)
        last = max(last, highest or 0)
    return whole, (top, last)


def _entries(run_query: RunQuery, condition: str, args: Sequence[Any]) -> int:
    """Return how many jobs match a condition that an index answers, without those that are not published."""
    # Without any condition SQLite counts the index by its pages.
    n: int = run_query(f"select count(*) from jobs {f'where {condition}' if condition else ''}", args)[0][0]
    return n - _hidden(run_query, condition, args)


def _hidden(run_query: RunQuery, condition: str, args: Sequence[Any]) -> int:
    """Count the jobs of calls that are still being written, which are in the index, too."""
    # A subquery, which no planner turns into a join: PostgreSQL would begin that one with all jobs.
    hidden = run_query(
        "select sum((select count(*) from jobs where jobs.id between s.first_id and s.last_id "
        f"{f'and {condition}' if condition else ''})) from staging s where s.published <> 1",
        args,
    )[0][0]
    return int(hidden or 0)


def _span(run_query: RunQuery, job_filter: Filter, lead: access_paths.AccessPath) -> Span | None:
    """Return the range of ids of an index's entries: those of a collection or a parent are mostly close
    together. None: they may lie anywhere, or there are none."""
    if (
        job_filter.type is not None
        or job_filter.queue is not None
        or (job_filter.within and job_filter.within.queues is not None)
    ):
        return None  # They may lie anywhere.
    ends = [
        row[0]
        for condition, args in lead.parts
        for order in ("asc", "desc")
        for row in run_query(
            f"select jobs.id from jobs where {condition} order by jobs.id {order} limit 1", args
        )
    ]
    return (min(ends), max(ends)) if ends else None


def _by_entry(part: UnionPart, lead: access_paths.AccessPath, span: Span) -> list[UnionPart]:
    """Use the access path's index for inactive jobs, which are scattered among all jobs: its entries are close
    together, unlike the wide rows."""
    if part.state not in access_paths.ASIDE or not part.source.startswith("inactive_jobs "):
        return [_within(part, span)]
    aside = "select narrow.job_id from inactive_jobs narrow where narrow.state = ? and narrow.job_id between ? and ?"
    return [
        part._replace(
            source="jobs",
            key="jobs.id",
            where=f"{condition} and jobs.id in ({aside})",
            args=(*args, part.state, *span),
        )
        for condition, args in lead.parts
    ]


def _within(part: UnionPart, span: Span | None) -> UnionPart:
    if span is None:
        return part
    return part._replace(where=f"{part.where} and {part.key} between ? and ?", args=(*part.args, *span))


def _summed(run_query: RunQuery, union_parts: Sequence[UnionPart]) -> Mapping[str, int]:
    """Return the sum over these parts by state."""
    totals: dict[str, int] = {}
    for part in union_parts:
        # Grouping sorts: where the state is known in advance, counting suffices.
        shown, grouped = (f"'{part.state}'", "") if part.state else (_SHOWN, "group by shown")
        sql = f"select {shown} as shown, count(*) from {part.source} where {part.where} {grouped}"
        for state, n in run_query(sql, part.args):
            totals[state] = totals.get(state, 0) + n
    return {state: n for state, n in totals.items() if n}
