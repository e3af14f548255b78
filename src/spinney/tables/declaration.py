"""What an application declares of its tables: all that upgrades and messages need to know of them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDeclaration:
    """The names of one application's tables, their migrations, and the revision that the code works with."""

    name: str
    """What messages call the set: "there is no inventory at …"."""
    prefix: str
    """The beginning of all names of tables, without the underscore."""
    migrations: Path
    """The folder of the Alembic migrations, with ``versions`` and ``script.py.mako`` in it."""
    head: str
    """The revision that this code works with. Revisions are compared as texts: number them ``0001``, ``0002``."""
    init: str
    """The command that makes and upgrades the tables, for messages: ``spinney ingest init``."""

    @property
    def version_table(self) -> str:
        """Return the name of the table that holds the revision."""
        return f"{self.prefix}_version"

    @property
    def article(self) -> str:
        """Return "a" or "an", as the name needs it in a message."""
        return "an" if self.name[0] in "aeiou" else "a"
