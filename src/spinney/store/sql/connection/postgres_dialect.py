"""How PostgreSQL spells the statements of this store (``database``). Pure: text in, text out, once a statement.

* ``?`` and ``?1`` become the driver's marks; a number used twice hands its argument over twice.
* ``json_each(?) j``: the list arrives as JSON text, of numbers; ``json_each(?) /* text */ j``: of strings.
* ``printf('%012d', x)`` is ``lpad``.
* ``lower`` goes by the database's own collation: by that of the schema (bytes) it knows the letters of ASCII alone.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

_LIST = re.compile(r"json_each\((\?\d*)\) (/\* text \*/ )?(\w+)")
_PADDED = re.compile(r"printf\('%0(\d+)d', ([^()]+)\)")
_SMALL = re.compile(r"lower\(([^()]+)\)")
_INSERT = re.compile(r"insert into (\w+) \(([\w, ]+)\) values \((?:\?, )*\?\)")
_BY_ROW = re.compile(
    r"(update|delete from) (\w+(?: set (?:(?! where | from )[^'%]|'\w*')+)?) where ((?:(?! from | select )[^'%])+)"
)
_NUMBERED = re.compile(r"\?\d")
_MARK = re.compile(r"'(?:[^']|'')*'|\?(\d*)")


class Statement(NamedTuple):
    """A statement in PostgreSQL's words."""

    text: str
    order: tuple[int, ...] | None
    """Which argument goes to which mark; None: one after the other."""


@lru_cache(maxsize=256)
def copied(sql: str) -> str | None:
    """The COPY that takes the rows of this insert; None where it says more than "these columns are these
    arguments"."""
    match = _INSERT.fullmatch(sql)
    return f"copy {match.group(1)} ({match.group(2)}) from stdin" if match else None


class Column(NamedTuple):
    """What many rows have in one place."""

    kind: str
    """Its PostgreSQL type."""
    single: bool
    """All have the same value, which may travel once."""


@lru_cache(maxsize=1024)
def at_once(sql: str, columns: tuple[Column | None, ...]) -> Statement | None:
    """An update or delete of a row by its key, for many rows in one statement: each column of the arguments comes
    as an array of its kind, or as one value; None stands for a column that is null in all rows. None where the
    statement is of another shape.

    What belongs to the key always comes as an array: a condition on one value, of which the planner knows nothing,
    would lead it to walk the table and look each row up in the list.
    """
    match = _BY_ROW.fullmatch(sql)
    if match is None or _NUMBERED.search(sql) or sql.count("?") != len(columns):
        return None
    arrays = [n for n, column in enumerate(columns) if column is not None and not column.single]
    if not arrays:
        return None
    verb, head, rest = match.groups()
    of_the_key = head.count("?")
    arrays = [
        n for n, column in enumerate(columns) if column is not None and not (column.single and n < of_the_key)
    ]
    if not arrays:
        return None
    places = iter(range(len(columns)))
    order: list[int] = []

    def place(_: re.Match[str]) -> str:
        n = next(places)
        column = columns[n]
        if column is None:
            return "null"
        if n in arrays:
            return f"v.c{n}"
        order.append(n)
        return f"cast(%s as {column.kind})"

    head = re.sub(r"\?", place, head)
    order += arrays
    rest = re.sub(r"\?", place, rest)
    listed = ", ".join(f"cast(%s as {columns[n].kind}[])" for n in arrays)  # type: ignore[union-attr]
    names = ", ".join(f"c{n}" for n in arrays)
    joined = "from" if verb == "update" else "using"
    return Statement(f"{verb} {head} {joined} unnest({listed}) as v({names}) where {rest}", tuple(order))


def array(values: Iterable[Any]) -> str:
    """An array as PostgreSQL reads it, of numbers, truth values and texts. Quicker than the driver's own."""
    return "{" + ",".join(map(_item, values)) + "}"


def _item(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(int(value)) if isinstance(value, int) else repr(value)


@lru_cache(maxsize=4096)
def translated(sql: str) -> Statement:
    """The same statement for psycopg, every ``%`` of its own doubled."""
    sql = _LIST.sub(_list, sql)
    sql = _PADDED.sub(r"lpad(cast(\2 as text), \1, '0')", sql)
    sql = _SMALL.sub(r'lower(cast(\1 as text) collate "default")', sql)
    order: list[int] = []

    def mark(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return match.group()
        order.append(int(match.group(1)) - 1 if match.group(1) else len(order))
        return "\0"

    text = _MARK.sub(mark, sql).replace("%", "%%").replace("\0", "%s")
    plain = order == list(range(len(order)))
    return Statement(text, None if plain else tuple(order))


def _list(match: re.Match[str]) -> str:
    mark, text, alias = match.groups()
    if text:
        listed = f"jsonb_array_elements_text(cast({mark} as jsonb))"
    else:
        # Quicker than through jsonb, and the planner takes such a list for a short one, as it is.
        listed = f"unnest(cast(string_to_array(btrim({mark}, '[]'), ',') as bigint[]))"
    return f"(select e.v as value, e.n - 1 as key from {listed} with ordinality as e(v, n)) {alias}"
