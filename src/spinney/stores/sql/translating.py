"""How PostgreSQL spells the statements of this store (``database``). Pure: text in, text out, once a statement.

* ``?`` and ``?1`` become the driver's marks; a number used twice hands its argument over twice.
* ``json_each(?) j``: the list arrives as JSON text, of numbers; ``json_each(?) /* text */ j``: of strings.
* ``printf('%012d', x)`` is ``lpad``.
* ``lower`` goes by the database's own collation: by that of the schema (bytes) it knows the letters of ASCII alone.
"""

import re
from functools import lru_cache
from typing import NamedTuple

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
    found = _INSERT.fullmatch(sql)
    return f"copy {found.group(1)} ({found.group(2)}) from stdin" if found else None


@lru_cache(maxsize=256)
def at_once(sql: str, kinds: tuple[str | None, ...]) -> str | None:
    """An update or delete of a row by its key, for many rows in one statement: each column of the arguments comes
    as an array of its kind. None where the statement is of another shape.

    ``kinds``: the PostgreSQL type of each argument; None where all are null.
    """
    found = _BY_ROW.fullmatch(sql)
    if found is None or _NUMBERED.search(sql) or sql.count("?") != len(kinds):
        return None
    columns = iter(range(len(kinds)))
    verb, head, rest = found.groups()

    def column(_: re.Match[str]) -> str:
        n = next(columns)
        return "null" if kinds[n] is None else f"v.c{n}"

    head, rest = re.sub(r"\?", column, head), re.sub(r"\?", column, rest)
    given = [(n, kind) for n, kind in enumerate(kinds) if kind is not None]
    arrays = ", ".join(f"cast(%s as {kind}[])" for _, kind in given)
    names = ", ".join(f"c{n}" for n, _ in given)
    joined = "from" if verb == "update" else "using"
    return f"{verb} {head} {joined} unnest({arrays}) as v({names}) where {rest}"


@lru_cache(maxsize=4096)
def translated(sql: str) -> Statement:
    """The same statement for psycopg, every ``%`` of its own doubled."""
    sql = _LIST.sub(_list, sql)
    sql = _PADDED.sub(r"lpad(cast(\2 as text), \1, '0')", sql)
    sql = _SMALL.sub(r'lower(cast(\1 as text) collate "default")', sql)
    order: list[int] = []

    def mark(found: re.Match[str]) -> str:
        if found.group(1) is None:
            return found.group()
        order.append(int(found.group(1)) - 1 if found.group(1) else len(order))
        return "\0"

    text = _MARK.sub(mark, sql).replace("%", "%%").replace("\0", "%s")
    plain = order == list(range(len(order)))
    return Statement(text, None if plain else tuple(order))


def _list(found: re.Match[str]) -> str:
    mark, text, alias = found.groups()
    if text:
        listed = f"jsonb_array_elements_text(cast({mark} as jsonb))"
    else:
        # Quicker than through jsonb, and the planner takes such a list for a short one, as it is.
        listed = f"unnest(cast(string_to_array(btrim({mark}, '[]'), ',') as bigint[]))"
    return f"(select e.v as value, e.n - 1 as key from {listed} with ordinality as e(v, n)) {alias}"
