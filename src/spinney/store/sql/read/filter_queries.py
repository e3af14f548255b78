"""Queries for the jobs that match a filter, in the order of their ids.

A filter becomes one ``UnionPart`` or several disjoint ones. Jobs that are not completed are read from the narrow
tables; completed ones from the index with the fewest rows (``access_paths``). All other conditions are on the row of
``jobs``, written so that no index matches them, and look up other tables by the job's id, so that they are valid for
every access path.

How a condition is kept from an index: a text column is compared as ``column || ''``, a number as ``column +
0``, neither of which is the indexed expression. SQLite would otherwise use any index that matches, however
many rows it has.

The same filter serves lists, counts and bulk verbs, so all of them mean the same jobs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from spinney.model.access import AccessScope
from spinney.model.jobs import Filter
from spinney.model.lineage import subtree
from spinney.model.states import LEASED, State
from spinney.store.sql.connection.database import list_text
from spinney.store.sql.read import access_paths
from spinney.store.sql.read.access_paths import ASIDE, Conditions, RunQuery, UnionPart, union_part
from spinney.store.sql.registry.job_rows import VISIBLE

_NEARLY_ALL = frozenset(State) - {State.DELETED}


def union_parts(run_query: RunQuery, job_filter: Filter) -> list[UnionPart]:
    """Return the parts of all matching jobs; they are disjoint."""
    job_filter = narrowed(job_filter)
    states = _states(job_filter)
    if states == [] or _nobody(run_query, job_filter):
        return []
    if job_filter.fingerprint is not None:
        where, args = conditions(job_filter)
        say = ["jobs.id = p.job_id", *where, "p.fingerprint = ?", *_one_of(states)]
        return [
            union_part("inactive_jobs p cross join jobs", "p.job_id", (say, [*args, job_filter.fingerprint]))
        ]
    lead = access_paths.cheapest(run_query, job_filter)
    if states is None or set(states) >= _NEARLY_ALL:  # then nearly every row of the access path matches
        return _led(lead, job_filter, states)
    apart = [state for state in states if state is not State.COMPLETED]
    if lead.size < access_paths.ENOUGH and lead.size <= access_paths.narrow_size(
        run_query, job_filter, apart
    ):
        return _led(lead, job_filter, states)
    completed = _led(lead, job_filter, [State.COMPLETED]) if State.COMPLETED in states else []
    return completed + access_paths.narrow_parts(run_query, job_filter, apart, conditions)


def _led(
    lead: access_paths.AccessPath, job_filter: Filter, states: Sequence[State] | None
) -> list[UnionPart]:
    """Return the parts that read an index of ``jobs``, one for each of its ranges, and check everything on
    the rows, but for ids by which the index is entered: PostgreSQL would enter it for each pair of two lists."""
    by_ids = [entry for entry, _ in lead.parts] == [access_paths.LISTED]
    where, args = conditions(replace(job_filter, ids=None) if by_ids else job_filter)
    return [
        union_part("jobs", "jobs.id", ([entry, VISIBLE, *where, *_one_of(states)], [*first, *args]))
        for entry, first in lead.parts
    ]


def _states(job_filter: Filter) -> list[State] | None:
    """Return the states that can match; None: any.

    Completed jobs have no next stage, and are not searched for a message. The message that one with a warning shows is
    that of its last attempt; to search these would read every completed job, about a second for each million.
    """
    if job_filter.states is None and job_filter.stage is None and job_filter.message is None:
        return None
    states = list(State) if job_filter.states is None else list(dict.fromkeys(job_filter.states))
    if job_filter.stage is not None:
        states = [state for state in states if state is not State.COMPLETED]
    return states if job_filter.message is None else [state for state in states if state in ASIDE]


def _nobody(run_query: RunQuery, job_filter: Filter) -> bool:
    """Return whether the filter names a node that does not exist."""
    return job_filter.node is not None and not run_query(
        "select 1 from nodes where name = ? limit 1", (job_filter.node,)
    )


def _one_of(states: Sequence[State] | None) -> list[str]:
    """Return the condition that a job is in one of these states, in a list; an empty one when any will do."""
    if states is not None and set(states) >= _NEARLY_ALL:
        return [] if State.DELETED in states else ["jobs.state <> 'deleted'"]
    return [] if states is None else [f"({' or '.join(map(_state_is, states)) or '1 = 0'})"]


def ids(
    run_query: RunQuery,
    job_filter: Filter,
    *,
    after: int = 0,
    until: int | None = None,
    limit: int,
    newest: bool = False,
) -> list[int]:
    """Return up to ``limit`` matching ids, ascending after ``after`` up to ``until`` (``newest``: descending,
    with both reversed; ``after`` 0 means from the last).

    Each part is read up to the limit, in order, and the parts are merged: so the cost depends on the limit
    and the number of parts, and not on how many jobs match."""
    beyond, within = ("<", ">=") if newest else (">", "<=")
    matches: list[int] = []
    for part in union_parts(run_query, job_filter):
        where, args = [part.where], list(part.args)
        if after or not newest:
            where.append(f"{part.key} {beyond} ?")
            args.append(after)
        if until is not None:
            where.append(f"{part.key} {within} ?")
            args.append(until)
        sql = (
            f"select {part.key} from {part.source} where {' and '.join(where)} "
            f"order by {part.key} {'desc' if newest else 'asc'} limit ?"
        )
        matches += [row[0] for row in run_query(sql, [*args, limit])]
    return list(islice(sorted(matches, reverse=newest), limit))


def count(run_query: RunQuery, job_filter: Filter, *, most: int) -> int:
    """Return how many jobs match, counted up to ``most``."""
    parts = union_parts(run_query, job_filter)
    sources = ((f"{part.source} where {part.where}", part.args) for part in parts)
    return access_paths.bounded_count(run_query, sources, most)


def still(run_query: RunQuery, job_filter: Filter, job_ids: Sequence[int]) -> set[int]:
    """Return which of these jobs, which matched a moment ago, still match. Only conditions that can change are
    checked."""
    return matching(
        run_query, replace(job_filter, ids=None, root_id=None, parent_id=None, below=None), job_ids
    )


def matching(run_query: RunQuery, job_filter: Filter, job_ids: Sequence[int]) -> set[int]:
    """Return which of these jobs match, by a look at each."""
    where, args = conditions(job_filter)
    where += [VISIBLE, *_one_of(_states(job_filter)), access_paths.LISTED]
    rows = run_query(f"select jobs.id from jobs where {' and '.join(where)}", [*args, list_text(job_ids)])
    return {row[0] for row in rows}


# --- building ---------------------------------------------------------------------------------


def narrowed(job_filter: Filter) -> Filter:
    """Return an equivalent simpler filter: limits that leave one collection or queue become that one. With a message
    there remain limits, if only of nothing, because they decide what is searched for it (``message_condition``)."""
    if job_filter.within is None:
        return job_filter
    collection, collections = _single(job_filter.collection, job_filter.within.collections)
    queue, queues = _single(job_filter.queue, job_filter.within.queues)
    if () in (collections, queues):
        return replace(job_filter, states=(), within=None)
    within: AccessScope | None = AccessScope(collections=collections, queues=queues)
    if job_filter.message is None and collections is queues is None:
        within = None
    return replace(job_filter, collection=collection, queue=queue, within=within)


def _single(named: str | None, names: tuple[str, ...] | None) -> tuple[str | None, tuple[str, ...] | None]:
    """Return a filter's name, and the remaining limits; limits that exclude the name are empty."""
    if names is None:
        return named, None
    if named is not None:
        return named, None if named in names else ()
    return (names[0], None) if len(names) == 1 else (None, tuple(dict.fromkeys(names)))


def conditions(job_filter: Filter) -> Conditions:
    """Return the conditions on a row of ``jobs``, without its state, and their values. They are complete: a
    path that has entered an index by one of them may check it once more."""
    where: list[str] = []
    args: list[Any] = []

    def say(condition: str, *values: Any) -> None:
        where.append(condition)
        args.extend(values)

    for column in ("type", "queue", "stage", "collection", "submitter"):
        if (value := getattr(job_filter, column)) is not None:
            say(f"jobs.{column} || '' = ?", value)
    for condition, value in (
        ("jobs.parent_id + 0 = ?", job_filter.parent_id),
        ("jobs.root_id + 0 = ?", job_filter.root_id),
        ("jobs.created_us < ?", job_filter.created_before_us),
        ("jobs.created_us >= ?", job_filter.created_after_us),
        ("jobs.settled_us > ?", job_filter.settled_after_us),
        ("jobs.settled_us < ?", job_filter.settled_before_us),
        (
            "exists (select 1 from inactive_jobs f where f.job_id = jobs.id and f.fingerprint = ?)",
            job_filter.fingerprint,
        ),
    ):
        if value is not None:
            say(condition, value)
    if job_filter.roots_only:
        say("jobs.parent_id is null")
    if job_filter.below is not None:
        say(
            "jobs.root_id + 0 = ? and jobs.lineage > ? and jobs.lineage < ?",
            int(job_filter.below.split(".")[0]),
            *subtree(job_filter.below),
        )
    if job_filter.ids is not None:
        say(access_paths.LISTED, list_text(job_filter.ids))
    if job_filter.superseded is not None:
        say(f"jobs.superseded is {'not ' if job_filter.superseded else ''}null")
    _say_limits(job_filter, say)
    _say_other_rows(job_filter, say)
    return where, args


def _say_limits(job_filter: Filter, say: Callable[..., None]) -> None:
    """Add the conditions that a job is within limits, and outside others."""
    if job_filter.within is not None:
        for column, names in (
            ("collection", job_filter.within.collections),
            ("queue", job_filter.within.queues),
        ):
            if names is not None:
                say(
                    f"jobs.{column} || '' in (select j.value from json_each(?) /* text */ j)",
                    list_text(names),
                )
    if job_filter.beyond is not None:
        say(*_outside(job_filter.beyond))


def _outside(limits: AccessScope) -> tuple[str, *tuple[str, ...]]:
    """Return the condition that a job is outside these limits."""
    named = {"collection": limits.collections, "queue": limits.queues}
    lists = {column: list_text(names) for column, names in named.items() if names is not None}
    terms = [
        f"(jobs.{column} is null or jobs.{column} not in (select j.value from json_each(?) /* text */ j))"
        for column in lists
    ]
    return f"({' or '.join(terms) or '1 = 0'})", *lists.values()


def _say_other_rows(job_filter: Filter, say: Callable[..., None]) -> None:
    """Add the conditions on other rows that belong to the job: of its root and parent, and in other tables."""
    if job_filter.tree_at_rest:
        say(
            "not exists (select 1 from jobs up where up.id in (jobs.root_id, jobs.parent_id) and up.id <> jobs.id "
            "and up.state in ('scheduled', 'pending', 'held', 'waiting'))"
        )
    if job_filter.node is not None:
        # In this order, because the first condition decides most rows.
        named = "(select id from nodes where name = ?)"
        say(
            f"(jobs.node_id in {named} and not exists (select 1 from leases w where w.job_id = jobs.id) "
            f"or jobs.id in (select job_id from leases where node_id in {named}))",
            job_filter.node,
            job_filter.node,
        )
    if job_filter.message is not None:
        message_condition, pattern = access_paths.message_condition(job_filter, job_filter.message, "m")
        say(
            f"exists (select 1 from inactive_jobs m where m.job_id = jobs.id and {message_condition})",
            pattern,
        )
    if job_filter.has_own_hold:
        say(
            "(jobs.state = 'held' or exists (select 1 from holds h where h.scope = 'job' "
            "and h.name = cast(jobs.id as text)))"
        )
    if job_filter.key is not None:
        condition, values = access_paths.key_condition(job_filter)
        say(condition, *values)


def _state_is(state: State) -> str:
    """Return the condition for one state. A leased job is pending in its row, and its lease says claimed or
    running."""
    if state is State.PENDING:
        return "(jobs.state = 'pending' and not exists (select 1 from leases w where w.job_id = jobs.id))"
    if state in LEASED:
        started = "is null" if state is State.CLAIMED else "is not null"
        return f"exists (select 1 from leases w where w.job_id = jobs.id and w.running_us {started})"
    return f"jobs.state = '{state.value}'"
