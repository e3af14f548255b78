"""What columns are made of, and the one catalogue of tables."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Integer, MetaData, SmallInteger, Text, text

metadata = MetaData()
Id = BigInteger().with_variant(Integer, "sqlite")
Chars = Text().with_variant(Text(collation="C"), "postgresql")
"""In the order of its bytes, as SQLite has it: lineages and positions are compared."""
Flag = Boolean().with_variant(SmallInteger(), "postgresql")
"""0 or 1, as SQLite has it."""


def where(condition: str) -> dict[str, Any]:
    """Of a partial index, on both."""
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}
