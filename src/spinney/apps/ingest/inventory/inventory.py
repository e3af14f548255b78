"""The inventory: one object with all operations, opened by a URL."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.inventory import fixity_checks, minter_numbers, searches, versions
from spinney.apps.ingest.inventory import local_ids as binding
from spinney.apps.ingest.inventory.model import Audit, Damaged, Due, Entry, File, Found, Object, Recorded
from spinney.tables.database import Database


class Inventory:
    """The content of the archive. Use it in a ``with`` block, or ``close`` it; from any thread, but not across a fork.

    All methods raise TablesAway while the database does not answer, and TablesUnusable when it cannot be used as
    it is; those with text parameters, NotAdmitted for text that cannot be stored. Writes are durable on return.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Inventory({self._database.name})"

    def init(self) -> None:
        """Make the tables, or upgrade them. Several processes may do so at once; current tables are left alone."""
        self._database.init()

    def close(self) -> None:
        self._database.close()

    # --- writing --------------------------------------------------------------------------

    def number(self, minter: str, key: str) -> int:
        """Return the number of this key with this minter, from 1; a new one when it has none. No number is given twice;
        there may be gaps."""
        return minter_numbers.number(self._database.checked(), minter, key)

    def bind(self, collection: str, local_ids: Iterable[str], ark: str) -> None:
        """Bind all of these local ids to this ark, which need not be recorded yet, or none of them. Raises
        LocalIdTaken when one belongs to another ark."""
        binding.bind(self._database.checked(), collection, local_ids, ark)

    def record(self, entry: Entry) -> None:
        """Enter a version with its files, and bind its local ids. A repetition changes nothing; versions may be
        recorded in any order.

        Raises NotAdmitted for a version that is recorded with other content and for an object of another collection or
        owner; LocalIdTaken. ``created`` is not compared; the first value is kept.
        """
        versions.record(self._database.checked(), entry)

    def audited(self, ark: str, when: datetime, files: int, size_bytes: int, faults: Iterable[str]) -> None:
        """Enter the result of reading all files of an object: a sentence for each fault, none when all is well. A
        repetition with the same ``when`` changes nothing. Raises NotAdmitted for an object that is not recorded."""
        fixity_checks.audited(self._database.checked(), ark, when, files, size_bytes, faults)

    # --- looking up -----------------------------------------------------------------------

    def ark_of(self, collection: str, local_id: str) -> str | None:
        """Return the ark that a local id is bound to."""
        return binding.ark_of(self._database.checked(), collection, local_id)

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
        """Return the recorded objects that match all given conditions, in the order in which they were first recorded;
        with a ``file_name`` or a ``digest``, an entry for each of their files that match.

        ``file_name``: the last part of a path, or more of it (``b/c.txt`` finds ``a/b/c.txt``). ``digest``:
        ``sha256:9f86…``, or hexadecimal alone for any algorithm with values of that length. ``after``: the ``place`` of
        the last entry of the previous page. ``within``: only objects of these collections.

        Raises NotAdmitted for an invalid digest or place, and for a limit outside 1..1000.
        """
        return searches.find(
            self._database.checked(),
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
        """Return an object with its versions, or None."""
        return searches.object_(self._database.checked(), ark)

    def files(self, ark: str, version: int) -> Iterator[File]:
        """Yield the files of a version, by path, from one snapshot; close the iterator when you leave it early. Raises
        NotAdmitted, at the first step, for a version that is not recorded."""
        return searches.files_of(self._database.checked(), ark, version)

    def batch_entries(self, batch_id: str, *, apart: str | None = None) -> Iterator[Recorded]:
        """Yield the versions that a batch has made, object by object. ``apart``: a folder whose files are also counted
        separately."""
        return searches.batch_entries(self._database.checked(), batch_id, apart)

    def storages(self) -> set[str]:
        """Return the names of the storages of recorded versions. Reads all versions."""
        return searches.storages(self._database.checked())

    # --- fixity ---------------------------------------------------------------------------

    def due_for_fixity(
        self, before: datetime, limit: int = 100, *, within: Sequence[str] | None = None
    ) -> list[Due]:
        """Return objects not audited since ``before``: those never audited first, then the least recently audited.
        ``within``: only objects of these collections."""
        return fixity_checks.due(self._database.checked(), before, limit, within)

    def audits(self, ark: str) -> Sequence[Audit]:
        """Return the last audits of an object (at most ``fixity_checks.KEPT``), newest first."""
        return fixity_checks.history(self._database.checked(), ark)

    def damaged(self, limit: int = 1000, *, within: Sequence[str] | None = None) -> list[Damaged]:
        """Return the objects whose last audit found faults. ``within``: only objects of these collections."""
        return fixity_checks.damaged(self._database.checked(), limit, within)
