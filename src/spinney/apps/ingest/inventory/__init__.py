"""The inventory has the content of the archive in SQL tables of its own, on SQLite or PostgreSQL.

**Who writes what, in which order.** An object job that has no ark gets a ``number`` for its own key and makes an ark of
it; then it ``bind``s its local ids to the ark. Both are stored at once, so that a job that runs again gets the same.
When the storage has the version, the job ``record``s it: the object, the version, the differences of its files from
the neighbouring versions, and the local ids once more. An audit looks up which objects are ``due_for_fixity``, reads
them in the storage, and enters the result with ``audited``. Nothing else writes.

**What a crash leaves.** Each operation is one transaction, so a crash leaves all of it or nothing, and a caller who
does not know which repeats it: the same key gets the same number, the same binding, entry or audit is written once. A
number may stay unused, and a local id may be bound to an ark that is never recorded: that ark waits for its job.

**Concurrency.** The rows of one object, of one minter and of one local id are locked while a transaction writes them;
on SQLite there is one writer at a time. A version never changes: other content under the same number is refused, and
so is a local id that belongs to another object.

``inventory``      ``Inventory``, which has all operations; a version recorded with its files and local ids
``file_spans``     the rule by which a file is stored once for all versions that have it
``bindings``       local ids, and the numbers of minters
``searches``       searches, each by an index and in pages
``fixity_checks``  which objects are due, and the results of audits
``model``          entries, results of queries, errors
``entry_rules``    checks of an entry, before a transaction begins
``schema``         the tables
``rows``           rows from values and back

The migrations are in ``migrations``; ``spinney.tables`` opens and upgrades the tables. Importing this package loads no
SQLAlchemy; opening an inventory does.

Specified by ``tests/apps/ingest/inventory`` (on SQLite and PostgreSQL).
"""

from pathlib import Path
from typing import TYPE_CHECKING

from spinney.apps.ingest.inventory.model import Damaged as Damaged
from spinney.apps.ingest.inventory.model import Entry as Entry
from spinney.apps.ingest.inventory.model import File as File
from spinney.apps.ingest.inventory.model import LocalIdTaken as LocalIdTaken
from spinney.apps.ingest.inventory.model import Object as Object
from spinney.apps.ingest.inventory.model import Recorded as Recorded
from spinney.apps.ingest.inventory.model import Version as Version
from spinney.tables import TableSet

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory


TABLES = TableSet(
    name="inventory",
    prefix="inv",
    migrations=Path(__file__).parent / "migrations",
    head="0002",
    init="spinney ingest init",
)


def open_inventory(url: str) -> "Inventory":
    """Open ``sqlite:///file`` (``sqlite:////absolute/file``) or ``postgresql://user@host/database?schema=name``.

    It connects on first use. Raises UsageError for another URL.
    """
    # It imports SQLAlchemy, which takes as long as all the rest.
    from spinney.apps.ingest.inventory.inventory import Inventory

    return Inventory(TABLES.open(url))
