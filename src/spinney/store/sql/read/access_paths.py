"""The access path of a search for jobs: the index or the narrow table with the fewest rows to read.

SQLite does not know how often a value occurs, and would use any matching index. So the candidates are counted first, up
to ``ENOUGH``, and the shortest is used; all other conditions are written so that no index matches them
(``filter_queries``).

There are two kinds of paths. One enters an index of ``jobs``: ids, a key, a parent, a collection, a
submitter, a pair of type and queue, a tree. The other reads a narrow table by state, for every state but
completed. To count the candidates costs little; a wrong path would read millions of rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from spinney.model.access import AccessScope
from spinney.model.attempts.failures import DEADLOCK
from spinney.model.jobs import Filter
from spinney.model.lineage import subtree
from spinney.model.states import LEASED, State
from spinney.model.types import INTERNAL_KEYS
from spinney.store import skip_scan
from spinney.store.sql.connection.database import list_text

ENOUGH = 20_000
"""An access path with more rows counts as long."""
ASIDE = frozenset(State) - LEASED - {State.COMPLETED, State.PENDING}
"""States whose jobs have a row in ``inactive_jobs``."""

RunQuery = Callable[[str, Sequence[Any]], Sequence[Any]]
"""Runs a statement with its values and returns its rows, within one snapshot."""
Conditions = tuple[list[str], list[Any]]
"""Conditions that must all hold, and their values."""


class UnionPart(NamedTuple):
    """A part of the matching jobs, read in the order of ``key``: one select of a union."""

    source: str
    """The tables, as after ``from``."""
    key: str
    """The column with the job's id."""
    where: str
    args: tuple[Any, ...]
    """The values of ``where``, in order."""
    state: State | None = None
    """The state of all its jobs; None: it depends on each row."""


def union_part(source: str, key: str, conditions: Conditions, state: State | None = None) -> UnionPart:
    """Return a part that reads ``source`` under these conditions, in the order of ``key``."""
    where, args = conditions
    return UnionPart(source, key, " and ".join(where) or "1 = 1", tuple(args), state)


class AccessPath(NamedTuple):
    """An index: the conditions by which it is entered, one part for each range."""

    parts: Sequence[tuple[str, Sequence[Any]]]
    size: int
    """How many rows it has; ``ENOUGH`` when there are more."""


LISTED = "jobs.id in (select j.value from json_each(?) j)"
"""The condition that a job is one of a list."""
# All jobs by id: the path when no index is shorter than ``ENOUGH``.
EVERYTHING = AccessPath([("1 = 1", ())], ENOUGH)


def cheapest(run_query: RunQuery, job_filter: Filter) -> AccessPath:
    """Return the index with the fewest rows to read; among long ones the one that keeps the order of ids."""
    paths = []
    for parts in _indexes(run_query, job_filter):
        sources = [(f"jobs where {condition}", args) for condition, args in parts]
        paths.append(AccessPath(parts, bounded_count(run_query, sources, ENOUGH)))
    return min([*paths, EVERYTHING], key=lambda path: path.size)


def bounded_count(run_query: RunQuery, sources: Iterable[tuple[str, Sequence[Any]]], most: int) -> int:
    """Return how many rows these tables with conditions have together, counted up to ``most``."""
    total = 0
    for source, args in sources:
        sql = f"select count(*) from (select 1 from {source} limit ?) found"
        total += run_query(sql, [*args, most - total])[0][0]
        if total >= most:
            break
    return total


def key_condition(job_filter: Filter) -> tuple[str, list[Any]]:
    """Return the condition on the key of a filter with its values: a key among the children of a parent, or one of jobs
    without a parent, where an internal type and another one may both have it."""
    scopes = [0, INTERNAL_KEYS] if job_filter.parent_id is None else [job_filter.parent_id] * 2
    condition = "jobs.id in (select k.job_id from keys k where k.scope in (?, ?) and k.key = ?)"
    return condition, [*scopes, job_filter.key]


def _indexes(run_query: RunQuery, job_filter: Filter) -> list[Sequence[tuple[str, Sequence[Any]]]]:
    """Return the indexes that the filter allows, each as its ranges (condition, values). A partial index is
    matched only by a condition that repeats its own, such as ``collection is not null``."""
    indexes: list[Sequence[tuple[str, Sequence[Any]]]] = []
    if job_filter.ids is not None:
        indexes.append([(LISTED, [list_text(job_filter.ids)])])
    if job_filter.key is not None:
        indexes.append([key_condition(job_filter)])
    for column in ("parent_id", "collection", "submitter"):
        if (value := getattr(job_filter, column)) is not None:
            indexes.append([(f"jobs.{column} is not null and jobs.{column} = ?", [value])])
    collections, queues = (
        (None, None)
        if job_filter.within is None
        else (job_filter.within.collections, job_filter.within.queues)
    )
    if collections is not None:
        indexes.append(
            [("jobs.collection is not null and jobs.collection = ?", [name]) for name in collections]
        )
    if job_filter.type is not None or job_filter.queue is not None or queues is not None:
        pairs = [
            pair
            for queue in queues or (job_filter.queue,)
            for pair in kinds(run_query, job_filter.type, queue)
        ]
        indexes.append([("jobs.type = ? and jobs.queue = ?", pair) for pair in pairs])
    # Last, because these return ids in no order: all of them are sorted before the first is returned.
    if job_filter.below is not None:
        inside = [int(job_filter.below.split(".")[0]), *subtree(job_filter.below)]
        indexes.append([(f"{_TREE} and jobs.lineage > ? and jobs.lineage < ?", inside)])
    if job_filter.root_id is not None:
        top = "jobs.id = ? and jobs.parent_id is null"
        indexes.append([(top, [job_filter.root_id]), (_TREE, [job_filter.root_id])])
    return indexes


_TREE = "jobs.parent_id is not null and jobs.root_id = ?"


def kinds(run_query: RunQuery, type_: str | None, queue: str | None) -> list[tuple[str, str]]:
    """Return the existing pairs of type and queue, of these where they are named; within each, ids are in
    order. They are found by a seek for each in the index on both columns, however many jobs there are."""
    types = [type_] if type_ is not None else distinct(run_query, "type", "1 = 1", [])
    return [
        (t, q)
        for t in types
        for q in ([queue] if queue is not None else distinct(run_query, "queue", "type = ?", [t]))
    ]


def distinct(run_query: RunQuery, column: str, where: str, args: Sequence[Any]) -> list[str]:
    """Return the values of an indexed column, by a seek for each."""
    sql = skip_scan.distinct("jobs", column, where)
    return [row[0] for row in run_query(sql, [*args, *args])]


# --- jobs that are not completed -------------------------------------------------------------------------------


def narrow_parts(
    run_query: RunQuery,
    job_filter: Filter,
    states: Sequence[State],
    conditions: Callable[[Filter], Conditions],
) -> list[UnionPart]:
    """Return the jobs in these states (none of them completed) from the narrow tables, one part for each state.

    ``conditions``: the other conditions on a row of ``jobs``.
    """
    base = conditions(job_filter)
    parts = []
    for state in states:
        if state in ASIDE and job_filter.message is not None:
            # Checked on the narrow row, before any wide one is read.
            holds_it, pattern = message_condition(job_filter, job_filter.message, "narrow")
            rest = conditions(replace(job_filter, message=None))
            parts.append(
                _narrow("inactive_jobs", rest, f"narrow.state = ? and {holds_it}", [state, pattern], state)
            )
        elif state in ASIDE:
            parts.append(_narrow("inactive_jobs", base, "narrow.state = ?", [state], state))
        elif state in LEASED:
            begun = f"narrow.running_us is {'null' if state is State.CLAIMED else 'not null'}"
            parts.append(_narrow("leases", base, begun, [], state))
        elif state is State.PENDING:
            # Their type, queue and stage are those of their lane.
            rest = conditions(
                replace(job_filter, type=None, queue=None, stage=None, within=_collections(job_filter.within))
            )
            parts.append(_narrow("ready", rest, *_lanes(job_filter), state))
    unplaced = run_query("select 1 from staging where published = 1 limit 1", ())
    return [*map(_placed, parts), *_unplaced(states, base)] if unplaced else parts


_ALL_LETTERS = ' collate "default"'
"""So that ``lower`` knows all letters: on PostgreSQL the schema's own collation knows those of ASCII alone."""


def message_condition(job_filter: Filter, message: str, alias: str) -> tuple[str, str]:
    """Return the condition that the reason of a row of ``inactive_jobs`` contains this text, ignoring case, and its
    value. Within limits only what is shown there is searched (``spinney.service.visibility``): neither the reason of a
    hold, nor the number of another job."""
    literal = message
    for mark in "\\%_":
        literal = literal.replace(mark, f"\\{mark}")
    condition = f"lower({alias}.reason{_ALL_LETTERS}) like lower(cast(? as text){_ALL_LETTERS}) escape '\\'"
    if job_filter.within is not None:
        condition += f" and coalesce({alias}.waits_for, '') <> 'hold'"
        if any(character.isdigit() for character in message):
            # The reasons that name other jobs: of failures because of subjobs or needs, and of deadlocks.
            condition += (
                f" and coalesce({alias}.waits_for, '') not in ('children', 'needs') and not exists (select 1 "
                f"from failures f where f.fingerprint = {alias}.fingerprint and f.exception = '{DEADLOCK}')"
            )
    return condition, f"%{literal}%"


def narrow_size(run_query: RunQuery, job_filter: Filter, states: Sequence[State]) -> int:
    """Return how many rows of the narrow tables would be read, counted up to ``ENOUGH``."""
    parts: list[tuple[str, Sequence[Any]]] = [
        ("inactive_jobs where state = ?", [state]) for state in states if state in ASIDE
    ]
    if LEASED & set(states):
        parts.append(("leases", ()))
    if State.PENDING in states:
        lanes, args = _lanes(job_filter)
        parts.append((f"ready narrow where {lanes}", args))
    return bounded_count(run_query, parts, ENOUGH)


def _lanes(job_filter: Filter) -> tuple[str, Sequence[Any]]:
    """Return the condition on a row of ``ready`` for type, queue and stage, by its lane, so that the wide
    rows need not be read for them."""
    kind = {"type": job_filter.type, "queue": job_filter.queue, "stage": job_filter.stage}
    lane_conditions = {f"{column} = ?": value for column, value in kind.items() if value is not None}
    if job_filter.within is not None and job_filter.within.queues is not None:
        listed = list_text(job_filter.within.queues)
        lane_conditions["queue in (select q.value from json_each(?) /* text */ q)"] = listed
    if not lane_conditions:
        return "1 = 1", ()
    return f"narrow.lane in (select id from lanes where {' and '.join(lane_conditions)})", [
        *lane_conditions.values()
    ]


def _collections(within: AccessScope | None) -> AccessScope | None:
    """Return the limits without those of queues, which ``_lanes`` checks; None when nothing is left."""
    return None if within is None or within.collections is None else replace(within, queues=None)


def _narrow(table: str, conditions: Conditions, entry: str, args: Sequence[Any], state: State) -> UnionPart:
    """Return a part of a narrow table, joined with ``jobs`` only if there are conditions on its rows."""
    where, values = conditions
    if not where:
        return union_part(f"{table} narrow", "narrow.job_id", ([entry], [*args]), state)
    # With a cross join SQLite reads the tables in this order; otherwise it would scan all jobs to find a few leases.
    joined = [entry, "jobs.id = narrow.job_id", *where]
    return union_part(f"{table} narrow cross join jobs", "narrow.job_id", (joined, [*args, *values]), state)


# --- accepted jobs that are not in their table yet ------------------------------------------


def _placed(part: UnionPart) -> UnionPart:
    """Exclude jobs of accepted calls that are still being placed: those are read by ``_unplaced``."""
    if part.state is not State.PENDING:
        return part
    between = "narrow.job_id between s.next_id and s.last_id"
    return part._replace(
        where=f"{part.where} and not exists (select 1 from staging s where s.published = 1 and {between})"
    )


def _unplaced(states: Sequence[State], conditions: Conditions) -> list[UnionPart]:
    """Return the jobs of accepted calls that have no row in a narrow table yet; their state is that of their
    row in ``jobs``, pending or waiting."""
    state_conditions = {
        State.PENDING: "jobs.state = 'pending' and not exists (select 1 from leases w where w.job_id = jobs.id)",
        State.WAITING: "jobs.state = 'waiting' and not exists (select 1 from inactive_jobs p where p.job_id = jobs.id)",
    }
    where, args = conditions
    place = ["s.published = 1", "jobs.id between s.next_id and s.last_id"]
    return [
        union_part("staging s cross join jobs", "jobs.id", ([*place, condition, *where], args), state)
        for state, condition in state_conditions.items()
        if state in states
    ]
