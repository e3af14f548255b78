"""The inventory as others hold it: one object, opened by a URL."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.inventory import fixity_checks, minter_numbers, searches, versions
from spinney.apps.ingest.inventory import local_ids as binding
from spinney.apps.ingest.inventory.model import Audit, Damaged, Due, Entry, File, Found, Object, Recorded
from spinney.apps.ingest.inventory.sql import upgrades
from spinney.apps.ingest.inventory.sql.database import Database


class Inventory:
    """What the archive holds. Use it in a ``with`` block, or ``close`` it; from any thread, but not across a fork.

    All verbs raise InventoryAway while the database does not answer, and InventoryUnusable when it cannot be used as it
    is; those that take text, NotAdmitted for what cannot be kept. What is said to be written is durable on return.
    """

    def __init__(self, database: Database, file: Path | None) -> None:
        self._database, self._file = database, file
        self._is_workable = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Inventory({self._database.name})"

    def init(self) -> None:
        """Make the tables, or bring them up to date. Any number may do so at once; what is current is left alone."""
        upgrades.init(self._database, self._file)

    def close(self) -> None:
        self._database.close()

    # --- writing --------------------------------------------------------------------------

    def number(self, minter: str, key: str) -> int:
        """The number that this minter gave to this key, from 1; a new one when it has none. No number is given twice;
        there may be gaps."""
        return minter_numbers.number(self._workable, minter, key)

    def bind(self, collection: str, local_ids: Iterable[str], ark: str) -> None:
        """Say that these local ids mean this ark, which need not be recorded yet: all of them, or none. Raises
        LocalIdTaken when one belongs to another ark."""
        binding.bind(self._workable, collection, local_ids, ark)

    def record(self, entry: Entry) -> None:
        """Enter a version with its files, and bind its local ids. The same entry again changes nothing; versions may
        come in any order.

        Raises NotAdmitted for a version that is there with other content and for an object of another collection or
        owner; LocalIdTaken. ``created`` is not compared; the first stands.
        """
        versions.record(self._workable, entry)

    def audited(self, ark: str, when: datetime, files: int, size_bytes: int, faults: Iterable[str]) -> None:
        """Enter what reading all files of an object has shown: a sentence for each fault, none when all is well. The
        same ``when`` again changes nothing. Raises NotAdmitted for an object that is not recorded."""
        fixity_checks.audited(self._workable, ark, when, files, size_bytes, faults)

    # --- looking up -----------------------------------------------------------------------

    def ark_of(self, collection: str, local_id: str) -> str | None:
        """What a local id is bound to."""
        return binding.ark_of(self._workable, collection, local_id)

    def find(
        self,
        *,
        ark: str | None = None,
        local_id: str | None = None,
        file_name: str | None = None,
        digest: Digest | str | None = None,
        collection: str | None = None,
        within: Sequence[str] | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Found]:
        """Recorded objects that fit all that is named, in the order in which they were first recorded; with a
        ``file_name`` or a ``digest``, their files that fit, one answer for each.

        ``file_name``: the last part of a path, or more of it (``b/c.txt`` finds ``a/b/c.txt``). ``digest``:
        ``sha256:9f86…``, or hexadecimal alone for any algorithm with values of that length. ``after``: the ``place`` of
        what was found last. ``within``: only objects of these collections.

        Raises NotAdmitted for what is no digest or no place, and for a limit outside 1..1000.
        """
        return searches.find(
            self._workable,
            ark=ark,
            local_id=local_id,
            file_name=file_name,
            digest=digest,
            collection=collection,
            within=within,
            limit=limit,
            after=after,
        )

    def object(self, ark: str) -> Object | None:
        """An object with its versions."""
        return searches.object_(self._workable, ark)

    def files(self, ark: str, version: int) -> Iterator[File]:
        """The files of a version, by path, as of one moment; close the iterator when you leave it early. Raises
        NotAdmitted, at the first step, for a version that is not recorded."""
        return searches.files_of(self._workable, ark, version)

    def batch_entries(self, batch_id: str, *, apart: str | None = None) -> Iterator[Recorded]:
        """The versions that a batch has brought, object after object. ``apart``: a folder of them, whose files are
        counted apart as well."""
        return searches.batch_entries(self._workable, batch_id, apart)

    def storages(self) -> set[str]:
        """The names of storages that hold recorded versions. Reads all versions."""
        return searches.storages(self._workable)

    # --- fixity ---------------------------------------------------------------------------

    def due_for_fixity(
        self, before: datetime, limit: int = 100, *, within: Sequence[str] | None = None
    ) -> list[Due]:
        """Objects not audited since ``before``: those never audited first, then the least recently audited.
        ``within``: only objects of these collections."""
        return fixity_checks.due(self._workable, before, limit, within)

    def audits(self, ark: str) -> Sequence[Audit]:
        """The last audits of an object (at most ``auditing.KEPT``), newest first."""
        return fixity_checks.history(self._workable, ark)

    def damaged(self, limit: int = 1000, *, within: Sequence[str] | None = None) -> list[Damaged]:
        """Objects whose last audit found faults. ``within``: only objects of these collections."""
        return fixity_checks.damaged(self._workable, limit, within)

    @property
    def _workable(self) -> Database:
        if not self._is_workable:
            upgrades.require(self._database)
            self._is_workable = True
        return self._database
