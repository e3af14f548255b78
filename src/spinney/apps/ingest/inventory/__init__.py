"""The inventory: what the archive holds, in SQL tables of its own, on SQLite or PostgreSQL.

**Who writes what, in which order.** An object job, when it has no ark, asks ``number`` for the number of its own key
and makes an ark of it; then it ``bind``s its local ids to the ark. Both are kept the moment they are given, so a job
that runs again gets the same. When the storage has the version, the job ``record``s it: the object, the version, what
its files differ from the neighbouring versions', and the local ids once more. An audit asks which objects are
``due_for_fixity``, reads them in the storage, and says what it found to ``audited``. Nobody else writes.

**What a crash leaves.** Each verb is one transaction, so a crash leaves all of it or nothing, and who does not know
which asks again: the same key gets the same number, the same binding, entry or audit is written once. A number may stay
unused, and a local id may be bound to an ark that is never recorded: that ark waits for its job.

**Two at once.** The rows of one object, of one minter and of one local id are locked while a transaction writes them;
on SQLite there is one writer at a time. A version never changes: another content under the same number is refused, and
so is a local id that belongs to another object.

``inventory`` has the operations, and ``opening`` opens it. ``model`` has the classes, ``entry_rules`` what may enter.
``versions`` records a version, with ``file_spans`` for how a file is kept once for many of them; ``minter_numbers``,
``local_ids``, ``searches`` and ``fixity_checks`` are one operation each. ``sql`` has tables, upgrades and the two
databases. Importing this package loads no SQLAlchemy; opening an inventory does.
"""

from typing import TYPE_CHECKING, Any

from spinney.apps.ingest.inventory.errors import InventoryAway, InventoryUnusable, LocalIdTaken
from spinney.apps.ingest.inventory.model import (
    Audit,
    Damaged,
    Due,
    Entry,
    File,
    Found,
    FoundFile,
    Object,
    Recorded,
    Version,
)
from spinney.apps.ingest.inventory.opening import open_inventory

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory

__all__ = [
    "Audit",
    "Damaged",
    "Due",
    "Entry",
    "File",
    "Found",
    "FoundFile",
    "Inventory",
    "InventoryAway",
    "InventoryUnusable",
    "LocalIdTaken",
    "Object",
    "Recorded",
    "Version",
    "open_inventory",
]


def __getattr__(name: str) -> Any:
    """``Inventory``, loaded when it is asked for: with SQLAlchemy, it takes as long as all the rest."""
    if name != "Inventory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spinney.apps.ingest.inventory.inventory import Inventory

    return Inventory
