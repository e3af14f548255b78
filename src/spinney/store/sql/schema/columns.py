"""The column types, and the catalogue of tables (``metadata``).

A type has a variant for each database, so that a value is stored, compared and sorted alike in both: the key
of ``ready`` is the order of work, and must not depend on a collation. ``metadata`` serves migrations and the
copy of a store; the store's own statements are written by hand."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, SmallInteger, Table, Text, text

metadata = MetaData()
Id = BigInteger().with_variant(Integer, "sqlite")
Chars = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that is compared by its bytes, as SQLite does it: lineages and positions are compared."""
Flag = Boolean().with_variant(SmallInteger(), "postgresql")
"""0 or 1, as in SQLite."""


def where(condition: str) -> dict[str, Any]:
    """Return the arguments of a partial index, for both dialects. A query uses such an index only when it
    repeats the condition."""
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}


def table(name: str, *columns: "Column[Any] | Index", **options: Any) -> Table:
    """Return a table, entered in the catalogue. ``options``: those of a dialect."""
    return Table(name, metadata, *columns, **options)
