"""The column types, and the catalogue of tables (``metadata``)."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Integer, MetaData, SmallInteger, Text, text

metadata = MetaData()
Id = BigInteger().with_variant(Integer, "sqlite")
Chars = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that is compared by its bytes, as SQLite does it: lineages and positions are compared."""
Flag = Boolean().with_variant(SmallInteger(), "postgresql")
"""0 or 1, as in SQLite."""


def where(condition: str) -> dict[str, Any]:
    """Return the arguments of a partial index, for both dialects."""
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}
