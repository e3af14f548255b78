"""Statements as PostgreSQL and its driver take them (see ``database``). Pure functions of text.

``translated`` replaces what has no common spelling: the marks of parameters, and lists. It does so once a statement.
``at_once`` makes one statement of a change of many rows.

The planner takes a table that was empty at its last vacuum for empty, however much has been written since, and may then
walk the whole table in a join with a list: an exchange took four seconds. So a list of keys is an array, which an index
takes as its condition; changes of many rows, and the joins of an exchange (``each_row``), look up each row in a
subquery that depends on the list. Rare statements that join a list with a table still leave the planner the choice.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from spinney.store.sql.connection.database import RowChange

_IN_LIST = re.compile(r"(not )?in \(select j\.value from json_each\((\?\d*)\) (/\* text \*/ )?j\)")
_LIST = re.compile(r"json_each\((\?\d*)\) (/\* text \*/ )?(\w+)")
_MARK = re.compile(r"'(?:[^']|'')*'|\?(\d*)")


class Statement(NamedTuple):
    """A statement with the driver's marks: each parameter is a plain ``%s``, so that one with a number that
    is used twice is sent twice."""

    text: str
    order: tuple[int, ...] | None
    """The index of the argument for each mark; None: one after the other."""


@lru_cache(maxsize=4096)
def translated(sql: str) -> Statement:
    """Return the statement for psycopg, with every ``%`` of its own doubled. Marks within strings are left
    alone.

    Each statement of this store is a constant, or one of few variants, so the cache has them all after a
    while."""
    order: list[int] = []

    def mark(match: re.Match[str]) -> str:
        if match.group(1) is None:  # a string
            return match.group()
        order.append(int(match.group(1)) - 1 if match.group(1) else len(order))
        return "\0"  # no statement has one; it becomes %s when the statement's own % are doubled

    text = (
        _MARK.sub(mark, _LIST.sub(_list, _IN_LIST.sub(_in_list, sql))).replace("%", "%%").replace("\0", "%s")
    )
    plain = order == list(range(len(order)))
    return Statement(text, None if plain else tuple(order))


def _in_list(match: re.Match[str]) -> str:
    """Return what replaces ``in (select j.value from json_each(?) j)``: a comparison with an array."""
    negated, mark, text = match.groups()
    values = f"array(select jsonb_array_elements_text(cast({mark} as jsonb)))" if text else _numbers(mark)
    return f"<> all({values})" if negated else f"= any({values})"


def _list(match: re.Match[str]) -> str:
    """Return what replaces ``json_each(?) j``: a table of the list's items with their positions."""
    mark, text, alias = match.groups()
    elements = f"jsonb_array_elements_text(cast({mark} as jsonb))" if text else f"unnest({_numbers(mark)})"
    return f"(select e.v as value, e.n - 1 as key from {elements} with ordinality as e(v, n)) {alias}"


def _numbers(mark: str) -> str:
    """Return the array of a list of numbers. It is quicker than through jsonb, and the planner takes it for short."""
    return f"cast(string_to_array(btrim({mark}, '[]'), ',') as bigint[])"


def each_row(table: str, where: str) -> str:
    """Return a subquery that replaces a table in a join with a list, and finds the rows for each item of the list.
    ``offset 0`` keeps the planner from making a plain join of it, which it could begin with the table."""
    return f"lateral (select * from {table} where {where} offset 0) {table}"


class Column(NamedTuple):
    """The values of many rows at one place among their arguments."""

    kind: str
    """The PostgreSQL type of the values."""
    single: bool
    """Whether all values are the same."""


class Change(NamedTuple):
    """A statement that changes many rows."""

    text: str
    order: list[int]
    """The place among the arguments of a row for each mark."""
    arrays: list[int]
    """The places whose values are sent as an array; for each of the others one value is sent, which is that of all
    rows."""


@lru_cache(maxsize=1024)
def at_once(change: RowChange, columns: tuple[Column | None, ...]) -> Change | None:
    """Return the statement that does a change for all rows; None where no row can match, since all keys are null.
    ``columns``: the arguments, by their places; None for one that is null in all rows.

    Values of ``where`` are always sent as an array: on a condition with one value, of which the planner knows nothing,
    it would walk the table and look up each row in the list.
    """
    own = change.set.count("?")
    arrays = [n for n, column in enumerate(columns) if column is not None and (n >= own or not column.single)]
    if not any(n >= own for n in arrays):
        return None
    order: list[int] = []

    def argument(n: int) -> str:
        column = columns[n]
        if column is None:
            return "null"
        if n in arrays:
            return f"v.c{n}"
        order.append(n)
        return f"cast(%s as {column.kind})"

    places = iter(range(len(columns)))
    assignments, where = _filled(change.set, places, argument), _filled(change.where, places, argument)
    lists = ", ".join(
        f"cast(%s as {column.kind}[])" for n, column in enumerate(columns) if column and n in arrays
    )
    table = change.table
    values = f"unnest({lists}) as v({', '.join(f'c{n}' for n in arrays)})"
    matching_rows = f"lateral (select ctid as place from {table} where {where} offset 0) k"
    if change.set:
        text = f"update {table} set {assignments} from {values} cross join {matching_rows} where {table}.ctid = k.place"
    else:
        text = f"delete from {table} where ctid = any(array(select k.place from {values} cross join {matching_rows}))"
    return Change(text, order + arrays, arrays)


def _filled(template: str, places: Iterator[int], argument: Callable[[int], str]) -> str:
    """Return the template with each mark replaced by the argument at the next of these places."""
    first, *others = template.split("?")
    return first + "".join(argument(next(places)) + text for text in others)


def array(values: Sequence[Any]) -> str:
    """Return an array of numbers, truth values and texts in PostgreSQL's notation. Quicker than the driver's own, and
    once more so for integers, of which an exchange sends thousands."""
    if set(map(type, values)) == {int}:
        return "{" + orjson.dumps(values).decode()[1:-1] + "}"
    return "{" + ",".join(map(_item, values)) + "}"


def _item(value: Any) -> str:
    """Return one item of an array."""
    if value is None:
        return "null"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(int(value)) if isinstance(value, int) else repr(value)
