"""What leads the search for jobs: the index, or the narrow table, in which fewest rows have to be looked at.

SQLite has no picture of how often a value occurs, and would take any index that fits. So the likely ones
are counted first, no further than ``ENOUGH``, and the shortest leads; all other conditions are written so
that no index fits them (``filter_queries``).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from spinney.model.access import AccessScope
from spinney.model.jobs import Filter
from spinney.model.lineage import subtree
from spinney.model.states import LEASED, State
from spinney.store import skip_scan

ENOUGH = 20_000
"""What has more rows than this is long, however long."""
ASIDE = frozenset(State) - LEASED - {State.COMPLETED, State.PENDING}
"""States whose jobs have a row in ``inactive_jobs``."""

RunQuery = Callable[[str, Sequence[Any]], Sequence[Any]]
"""Runs a statement with its values and gives its rows, within one snapshot."""
Conditions = tuple[list[str], list[Any]]
"""Conditions that must all hold, and their values."""


class UnionPart(NamedTuple):
    """A part of what fits, read in the order of ``key``."""

    source: str
    key: str
    where: str
    args: tuple[Any, ...]
    state: State | None = None
    """In which all of it stands; None: told from each row."""


def union_part(source: str, key: str, said: Conditions, state: State | None = None) -> UnionPart:
    where, args = said
    return UnionPart(source, key, " and ".join(where) or "1 = 1", tuple(args), state)


class AccessPath(NamedTuple):
    """An index: the conditions by which it is entered, one part for each place."""

    parts: Sequence[tuple[str, Sequence[Any]]]
    size: int
    """How many rows it leads to; ``ENOUGH`` when there are more."""


EVERYTHING = AccessPath([("1 = 1", ())], ENOUGH)


def cheapest(run_query: RunQuery, which: Filter) -> AccessPath:
    """The index with the fewest rows to look at; among long ones that which keeps the order of ids."""
    found = [AccessPath(parts, _size(run_query, parts)) for parts in _indexes(run_query, which)]
    return min([*found, EVERYTHING], key=lambda lead: lead.size)


def _size(run_query: RunQuery, parts: Sequence[tuple[str, Sequence[Any]]]) -> int:
    total = 0
    for condition, args in parts:
        sql = f"select count(*) from (select 1 from jobs where {condition} limit ?) found"
        total += run_query(sql, [*args, ENOUGH - total])[0][0]
        if total >= ENOUGH:
            break
    return total


def _indexes(run_query: RunQuery, which: Filter) -> list[Sequence[tuple[str, Sequence[Any]]]]:
    found: list[Sequence[tuple[str, Sequence[Any]]]] = []
    if which.ids is not None:
        found.append(
            [("jobs.id in (select j.value from json_each(?) j)", [orjson.dumps(which.ids).decode()])]
        )
    if which.key is not None:
        has_it = "jobs.id in (select k.job_id from keys k where k.scope = ? and k.key = ?)"
        found.append([(has_it, [which.parent_id or 0, which.key])])
    for column in ("parent_id", "collection", "submitter"):
        if (value := getattr(which, column)) is not None:
            found.append([(f"jobs.{column} is not null and jobs.{column} = ?", [value])])
    collections, queues = (
        (None, None) if which.within is None else (which.within.collections, which.within.queues)
    )
    if collections is not None:
        found.append(
            [("jobs.collection is not null and jobs.collection = ?", [name]) for name in collections]
        )
    if which.type is not None or which.queue is not None or queues is not None:
        pairs = [pair for queue in queues or (which.queue,) for pair in kinds(run_query, which.type, queue)]
        found.append([("jobs.type = ? and jobs.queue = ?", pair) for pair in pairs])
    # Last, because these give ids in no order: all of them are sorted before the first is seen.
    if which.below is not None:
        inside = [int(which.below.split(".")[0]), *subtree(which.below)]
        found.append([(f"{_TREE} and jobs.lineage > ? and jobs.lineage < ?", inside)])
    if which.root_id is not None:
        top = "jobs.id = ? and jobs.parent_id is null"
        found.append([(top, [which.root_id]), (_TREE, [which.root_id])])
    return found


_TREE = "jobs.parent_id is not null and jobs.root_id = ?"


def kinds(run_query: RunQuery, type_: str | None, queue: str | None) -> list[tuple[str, str]]:
    """The pairs of type and queue that there are; within each, ids are in order."""
    types = [type_] if type_ is not None else distinct(run_query, "type", "1 = 1", [])
    return [
        (t, q)
        for t in types
        for q in ([queue] if queue is not None else distinct(run_query, "queue", "type = ?", [t]))
    ]


def distinct(run_query: RunQuery, column: str, where: str, args: Sequence[Any]) -> list[str]:
    """The values of an indexed column, by a seek for each."""
    sql = skip_scan.distinct("jobs", column, where)
    return [row[0] for row in run_query(sql, [*args, *args])]


# --- what stands -------------------------------------------------------------------------------


def narrow_parts(
    run_query: RunQuery, which: Filter, states: Sequence[State], conditions: Callable[[Filter], Conditions]
) -> list[UnionPart]:
    """What stands in these states (none of them completed), from the narrow tables: one arm for each state.

    ``conditions``: what else must hold, of a row of ``jobs``.
    """
    said = conditions(which)
    found = []
    for state in states:
        if state in ASIDE and which.message is not None:
            # Asked of the narrow row, before any wide one is looked at.
            holds_it, pattern = message_condition(which.message, "narrow")
            rest = conditions(replace(which, message=None))
            found.append(
                _narrow("inactive_jobs", rest, f"narrow.state = ? and {holds_it}", [state, pattern], state)
            )
        elif state in ASIDE:
            found.append(_narrow("inactive_jobs", said, "narrow.state = ?", [state], state))
        elif state in LEASED:
            begun = f"narrow.running_us is {'null' if state is State.CLAIMED else 'not null'}"
            found.append(_narrow("leases", said, begun, [], state))
        elif state is State.PENDING:
            # Their type, queue and stage are those of the lane that they stand in.
            rest = conditions(
                replace(which, type=None, queue=None, stage=None, within=_collections(which.within))
            )
            found.append(_narrow("ready", rest, *_lanes(which), state))
    unplaced = run_query("select 1 from staging where published = 1 limit 1", ())
    return [*map(_placed, found), *_unplaced(states, said)] if unplaced else found


def message_condition(message: str, alias: str) -> tuple[str, str]:
    """The condition that a row of ``inactive_jobs`` says this, whatever its letters' case; and its value."""
    literal = message
    for mark in "\\%_":
        literal = literal.replace(mark, f"\\{mark}")
    return f"lower({alias}.reason) like lower(?) escape '\\'", f"%{literal}%"


def narrow_size(run_query: RunQuery, which: Filter, states: Sequence[State]) -> int:
    """How many rows of the narrow tables would be looked at, counted up to ``ENOUGH``."""
    parts: list[tuple[str, Sequence[Any]]] = [
        ("inactive_jobs where state = ?", [state]) for state in states if state in ASIDE
    ]
    if LEASED & set(states):
        parts.append(("leases", ()))
    if State.PENDING in states:
        lanes, args = _lanes(which)
        parts.append((f"ready narrow where {lanes}", args))
    total = 0
    for part, args in parts:
        total += run_query(
            f"select count(*) from (select 1 from {part} limit ?) found", [*args, ENOUGH - total]
        )[0][0]
    return total


def _lanes(which: Filter) -> tuple[str, Sequence[Any]]:
    kind = {"type": which.type, "queue": which.queue, "stage": which.stage}
    said = {f"{column} = ?": value for column, value in kind.items() if value is not None}
    if which.within is not None and which.within.queues is not None:
        listed = orjson.dumps(which.within.queues).decode()
        said["queue in (select q.value from json_each(?) /* text */ q)"] = listed
    if not said:
        return "1 = 1", ()
    return f"narrow.lane in (select id from lanes where {' and '.join(said)})", [*said.values()]


def _collections(within: AccessScope | None) -> AccessScope | None:
    return None if within is None or within.collections is None else replace(within, queues=None)


def _narrow(table: str, said: Conditions, entry: str, args: Sequence[Any], state: State) -> UnionPart:
    """A narrow table; with the jobs' rows only if something is asked of them."""
    where, values = said
    if not where:
        return union_part(f"{table} narrow", "narrow.job_id", ([entry], [*args]), state)
    # A cross join: SQLite takes the tables in this order, and would else walk all jobs to find a few leases.
    joined = [entry, "jobs.id = narrow.job_id", *where]
    return union_part(f"{table} narrow cross join jobs", "narrow.job_id", (joined, [*args, *values]), state)


# --- what has been accepted and is not in its table yet ------------------------------------------


def _placed(part: UnionPart) -> UnionPart:
    """Without jobs of accepted calls that still are put in place: of those each row is asked."""
    if part.state is not State.PENDING:
        return part
    between = "narrow.job_id between s.next_id and s.last_id"
    return part._replace(
        where=f"{part.where} and not exists (select 1 from staging s where s.published = 1 and {between})"
    )


def _unplaced(states: Sequence[State], said: Conditions) -> list[UnionPart]:
    wanted = {
        State.PENDING: "jobs.state = 'pending' and not exists (select 1 from leases w where w.job_id = jobs.id)",
        State.WAITING: "jobs.state = 'waiting' and not exists (select 1 from inactive_jobs p where p.job_id = jobs.id)",
    }
    where, args = said
    place = ["s.published = 1", "jobs.id between s.next_id and s.last_id"]
    return [
        union_part("staging s cross join jobs", "jobs.id", ([*place, condition, *where], args), state)
        for state, condition in wanted.items()
        if state in states
    ]
