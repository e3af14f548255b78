"""Rows as values of dataclasses: the columns of a table come from the fields of the dataclass.

For what people read and change: settings, and jobs as the surfaces show them. Claims and records, of which there are
thousands a second, have statements of their own.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import Any, Generic, TypeVar, get_type_hints

from spinney.model.errors import NoSuch
from spinney.model.values.hints import no_such
from spinney.store.sql.connection.database import Tx

T = TypeVar("T")


class RowMap(Generic[T]):
    """Reads the rows of a table as values of a dataclass.

    ``source``: the table, or a join. ``columns``: the column, or SQL expression, of each field that is not a column of
    the same name; ``prefix``: what stands before the names of the others, in a join. ``decode``: for fields that are
    stored in another form, the function that reads them; ``bool`` and enumerations are read as such without one.
    ``omit``: fields that are not stored and have defaults.

    A new field of the dataclass is selected without a change here; where the table lacks its column, the
    first statement fails.
    """

    def __init__(
        self,
        kind: type[T],
        source: str,
        *,
        columns: Mapping[str, str] | None = None,
        prefix: str = "",
        decode: Mapping[str, Callable[[Any], Any]] | None = None,
        omit: Collection[str] = (),
    ) -> None:
        types, columns, decode = get_type_hints(kind), columns or {}, decode or {}
        names = [field.name for field in fields(kind) if field.name not in omit]  # type: ignore[arg-type]
        self._kind = kind
        self._decoders = [(name, decode.get(name) or _decoder(types[name])) for name in names]
        self.columns = ", ".join(columns.get(name, f"{prefix}{name}") for name in names)
        """What to select, for statements that select more; ``read`` takes the beginning of such rows."""
        self._select = f"select {self.columns} from {source} "

    def read(self, row: Sequence[Any]) -> T:
        """Return the value of a row that begins with ``columns``."""
        return self._kind(**self._fields(row))

    def _fields(self, row: Sequence[Any]) -> dict[str, Any]:
        values = zip(self._decoders, row, strict=False)
        return {name: decode(value) if decode is not None else value for (name, decode), value in values}

    def fields(self, tx: Tx, rest: str, args: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return the fields of these rows by name, for values of which some depend on others."""
        return [self._fields(row) for row in tx.all(self._select + rest, args)]

    def all(self, tx: Tx, rest: str = "", args: Sequence[Any] = ()) -> list[T]:
        """Return the rows that ``rest`` of the statement selects: its conditions, order and limit."""
        return [self.read(row) for row in tx.all(self._select + rest, args)]

    def one(self, tx: Tx, rest: str, args: Sequence[Any] = ()) -> T | None:
        """Return the first of these rows; None when there is none."""
        row = tx.one(self._select + rest, args)
        return None if row is None else self.read(row)


def _decoder(type_: Any) -> Callable[[Any], Any] | None:
    if type_ is bool or (isinstance(type_, type) and issubclass(type_, Enum)):
        return type_
    return None


def insert(tx: Tx, table: str, values: Mapping[str, Any]) -> None:
    """Insert a row with these columns; the others get their defaults."""
    tx.run(_insert(table, values), tuple(values.values()))


def upsert(tx: Tx, table: str, key: str, values: Mapping[str, Any], *, kept: Collection[str] = ()) -> None:
    """Insert a row, or change the one with the same ``key`` (columns with commas) to these values; columns in ``kept``
    keep theirs in a row that exists."""
    changes = ", ".join(
        f"{name} = excluded.{name}" for name in values if name not in (*key.split(", "), *kept)
    )
    tx.run(f"{_insert(table, values)} on conflict ({key}) do update set {changes}", tuple(values.values()))


def require_name(tx: Tx, table: str, noun: str, name: str) -> None:
    """Raise ``unknown_name`` unless the table has a row of this name."""
    if not tx.exists(f"select 1 from {table} where name = ?", (name,)):
        raise unknown_name(tx, table, noun, name)


def unknown_name(tx: Tx, table: str, noun: str, name: str, command: str = "") -> NoSuch:
    """Return the error for a name of which the table has no row, with names that are similar. ``noun``: what people
    call it; ``command``: the one that lists them, if it is not ``spinney NOUN list``."""
    names = tx.column(f"select name from {table} order by name")
    return NoSuch(no_such(noun, name, names, command or f"spinney {noun} list"))


def _insert(table: str, values: Mapping[str, Any]) -> str:
    return f"insert into {table} ({', '.join(values)}) values ({', '.join('?' * len(values))})"
