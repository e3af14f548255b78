"""Fixity: the objects that should be read next, and the results of audits.

The files are read elsewhere; the database only stores the results. The state of an object follows from its newest
audit alone, so that a result that is entered late changes only the history.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import islice

from sqlalchemy import ColumnElement, Connection, delete, select, update

from spinney.apps.ingest.inventory.entry_rules import aware, plain
from spinney.apps.ingest.inventory.model import Damaged
from spinney.apps.ingest.inventory.schema import HEAD, audits, objects, versions
from spinney.files.paths import NotAdmitted, shown
from spinney.tables.database import Database

KEPT = 10
"""How many audits of an object are kept; the time at which its damage began is kept beside them."""
FAULTS_MAX = 100
"""How many faults of an audit are kept; the others are only counted."""
_FAULT_MAX = 1000
"""The maximum number of characters of a fault."""
_NEWEST_FIRST = audits.c.at_us.desc()


class FixityChecks:
    """The objects that are due for an audit, and the results of audits."""

    _database: Database

    def due_for_fixity(
        self,
        before: datetime,
        limit: int = 100,
        *,
        within: Sequence[str] | None = None,
        outside: Collection[str] = (),
    ) -> dict[str, str]:
        """Return up to ``limit`` objects not audited since ``before``, each with the storage of its newest
        version: those never audited first, then the least recently audited.

        ``within``: only objects of these collections; None: of all. ``outside``: none whose newest version is
        in these storages, which do not answer now.

        The index ``inv_objects_by_audit`` has the rows in this order, so that the query reads no more than it
        returns, apart from those that it leaves out; objects that were never audited have the time ``EPOCH``
        and not NULL for its sake.
        """
        return self._due(limit, objects.c.audited_us < before, *_within(within), *_outside(outside))

    def damaged_for_fixity(self, limit: int = 100, *, outside: Collection[str] = ()) -> dict[str, str]:
        """Return up to ``limit`` damaged objects, each with the storage of its newest version, the least recently
        audited first, so that runs which cannot read all of them take turns. ``outside`` is as in ``due_for_fixity``.
        """
        return self._due(limit, objects.c.damaged_since_us.is_not(None), *_outside(outside))

    def _due(self, limit: int, *conditions: ColumnElement[bool]) -> dict[str, str]:
        query = (
            select(objects.c.ark, versions.c.storage)
            .join(versions, HEAD)
            .where(*conditions)
            .order_by(objects.c.audited_us, objects.c.id)
            .limit(limit)
        )
        with self._database.checked().read() as connection:
            return {row.ark: row.storage for row in connection.execute(query)}

    def audited(self, ark: str, when: datetime, files: int, size_bytes: int, faults: Iterable[str]) -> None:
        """Enter an audit's result, and update the state of its object; durable on return.

        ``when``: when it was made, with a zone. ``files``, ``size_bytes``: what was read. ``faults``: a
        sentence each, none when all is well; the first ``FAULTS_MAX`` are kept. A repetition with the same
        ``when`` changes nothing. Raises NotAdmitted for an object that is not recorded, ValueError for a time
        without a zone.
        """
        at, kept_faults = aware(when), _bounded(faults)
        with self._database.checked().write() as connection:
            query = (
                select(objects.c.id, objects.c.damaged_since_us).where(objects.c.ark == ark).with_for_update()
            )
            object_ = connection.execute(query).first()
            if object_ is None:
                raise NotAdmitted(
                    f"{shown(ark)} is not in the inventory, so its audit cannot be kept; record it first"
                )
            connection.execute(
                self._database.insert(audits)
                .values(
                    object_id=object_.id,
                    at_us=at,
                    files=files,
                    size_bytes=size_bytes,
                    faults=json.dumps(kept_faults),
                )
                .on_conflict_do_nothing()
            )
            _forget_oldest(connection, object_.id)
            _update_state(connection, object_.id, object_.damaged_since_us)

    def damaged_since(self) -> dict[str, datetime]:
        """Return since when each damaged object is damaged, by ARK, in the order in which they were recorded.

        These are all of them, however many, so that they are returned without their faults.
        """
        query = (
            select(objects.c.ark, objects.c.damaged_since_us)
            .where(objects.c.damaged_since_us.is_not(None))
            .order_by(objects.c.id)
        )
        with self._database.checked().read() as connection:
            return {row.ark: row.damaged_since_us for row in connection.execute(query)}

    def damaged(
        self,
        limit: int = 1000,
        *,
        within: Sequence[str] | None = None,
        arks: Collection[str] | None = None,
    ) -> list[Damaged]:
        """Return up to ``limit`` objects whose newest audit found faults, in the order in which they were
        recorded.

        ``within``: only objects of these collections; ``arks``: only these objects; None: all. A partial index
        has the damaged objects alone, of which there should be few.
        """
        of_arks = () if arks is None else (objects.c.ark.in_(arks),)
        query = (
            select(
                objects.c.ark,
                objects.c.collection,
                objects.c.damaged_since_us.label("since"),
                audits.c.at_us.label("audited"),
                audits.c.faults,
            )
            .join(audits, (audits.c.object_id == objects.c.id) & (audits.c.at_us == objects.c.audited_us))
            .where(objects.c.damaged_since_us.is_not(None), *_within(within), *of_arks)
            .order_by(objects.c.id)
            .limit(limit)
        )
        with self._database.checked().read() as connection:
            rows = connection.execute(query).mappings()
            return [Damaged(**{**row, "faults": json.loads(row["faults"])}) for row in rows]


def _within(collections: Sequence[str] | None) -> Sequence[ColumnElement[bool]]:
    return () if collections is None else (objects.c.collection.in_(collections),)


def _outside(storages: Collection[str]) -> Sequence[ColumnElement[bool]]:
    return (versions.c.storage.not_in(sorted(storages)),) if storages else ()


def _bounded(faults: Iterable[str]) -> Sequence[str]:
    """Return the first faults, shortened and printable, and how many more there are."""
    remaining = iter(faults)
    bounded = [shown(plain("fault", fault)[:_FAULT_MAX]) for fault in islice(remaining, FAULTS_MAX)]
    more = sum(1 for _ in remaining)
    return [*bounded, f"and {more} more"] if more else bounded


def _forget_oldest(connection: Connection, object_id: int) -> None:
    """Delete the audits of an object beyond the newest ``KEPT``. With fewer, the subquery is NULL, and
    nothing is older."""
    of_object = audits.c.object_id == object_id
    oldest_kept = select(audits.c.at_us).where(of_object).order_by(_NEWEST_FIRST).offset(KEPT - 1).limit(1)
    connection.execute(delete(audits).where(of_object, audits.c.at_us < oldest_kept.scalar_subquery()))


def _update_state(connection: Connection, object_id: int, damaged_since: datetime | None) -> None:
    """Derive the state of an object from its newest audit, which need not be the one that was just entered.

    Damage that continues keeps the time at which it began: the audit that found it first may be deleted by
    now.
    """
    of_object = select(audits.c.at_us, audits.c.faults).where(audits.c.object_id == object_id)
    newest = connection.execute(of_object.order_by(_NEWEST_FIRST).limit(1)).one()
    is_damaged = newest.faults != "[]"
    since = (damaged_since or newest.at_us) if is_damaged else None
    connection.execute(
        update(objects)
        .where(objects.c.id == object_id)
        .values(audited_us=newest.at_us, damaged_since_us=since)
    )
