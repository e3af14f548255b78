"""What an ARK is made of and bound to: the numbers of minters, and the local ids that depositors give to
objects.

Both exist before the object is recorded: a job first gets its number and binds its local ids, and may then
run again or wait for days before it stores anything. So neither refers to an object's row.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.sql.dml import ReturningInsert

from spinney.apps.ingest.inventory.entry_rules import KEY_MAX_BYTES, local_ids_admitted, name
from spinney.apps.ingest.inventory.model import LocalIdTaken
from spinney.apps.ingest.inventory.schema import local_ids, minters, numbers
from spinney.tables.database import Database

_MANY = 500
"""The number of names in one statement; SQLite allows 32,766 parameters, older builds 999."""

_NUMBER = select(numbers.c.number).where(
    numbers.c.minter == bindparam("minter"), numbers.c.key == bindparam("key")
)


class Bindings:
    """The numbers of minters, and the ARKs of local ids."""

    _database: Database

    def number(self, minter: str, key: str) -> int:
        """Return the number of this key with this minter, from 1; a new one when it has none.

        No number is given twice by one minter. There are gaps: a key that already has a number uses one up,
        because the increment is the statement that locks the minter's row, and it comes first. Raises
        NotAdmitted for text that cannot be stored.
        """
        name("minter", minter)
        name("key", key, KEY_MAX_BYTES)
        row = {"minter": minter, "key": key}
        with self._database.checked().write() as connection:
            # Locks this minter's row until the commit, so that two callers with one new key get one number.
            # Looking the key up first would need a second look under the lock, for the sake of fewer gaps.
            new_number = int(connection.execute(self._increment, {"minter": minter}).scalar_one())
            existing = connection.execute(_NUMBER, row).scalar()
            if existing is not None:
                return int(existing)
            connection.execute(numbers.insert(), {**row, "number": new_number})
            return new_number

    @cached_property
    def _increment(self) -> ReturningInsert[int]:
        """The statement that raises and returns the last number of a minter."""
        return (
            self._database.insert(minters)
            .values(minter=bindparam("minter"), last=1)
            .on_conflict_do_update(index_elements=["minter"], set_={"last": minters.c.last + 1})
            .returning(minters.c.last)
        )

    def ark_of(self, collection: str, local_id: str) -> str | None:
        """Return the ARK that a local id of this collection is bound to; None: none, so far. Raises
        NotAdmitted."""
        name("collection", collection)
        name("local id", local_id, KEY_MAX_BYTES)
        with self._database.checked().read() as connection:
            query = select(local_ids.c.ark).where(
                local_ids.c.local_id == local_id, local_ids.c.collection == collection
            )
            return connection.execute(query).scalar()

    def bind(self, collection: str, names: Iterable[str], ark: str) -> None:
        """Bind all of these local ids to this ARK, which need not be recorded yet, or none of them.

        A binding that exists already is left as it is. Raises LocalIdTaken when one belongs to another ARK,
        NotAdmitted.
        """
        name("collection", collection)
        name("ark", ark)
        admitted = local_ids_admitted(names)
        if not admitted:
            return
        with self._database.checked().write() as connection:
            self._bind_within(connection, collection, admitted, ark)

    def unbind(self, collection: str, names: Sequence[str], ark: str) -> None:
        """Free those of these local ids that are bound to this ARK; for names that ``bind`` has bound to it, and that
        no version has."""
        with self._database.checked().write() as connection:
            for chunk in _chunks(names):
                connection.execute(
                    local_ids.delete().where(
                        local_ids.c.local_id.in_(chunk),
                        local_ids.c.collection == collection,
                        local_ids.c.ark == ark,
                    )
                )

    def _bind_within(self, connection: Connection, collection: str, names: Sequence[str], ark: str) -> None:
        """Bind local ids within a transaction. Raises LocalIdTaken.

        ``names`` are checked, and sorted: two transactions that bind overlapping sets lock the rows in one order, and
        cannot deadlock. The insertion decides, not a query before it: if two transactions have the same new name, the
        second waits for the first and then finds its row.
        """
        for chunk in _chunks(names):
            rows = [{"local_id": n, "collection": collection, "ark": ark} for n in chunk]
            inserted = connection.execute(self._database.insert(local_ids).on_conflict_do_nothing(), rows)
            if inserted.rowcount == len(chunk):
                continue  # all were free
            others = (
                select(local_ids.c.local_id, local_ids.c.ark)
                .where(
                    local_ids.c.local_id.in_(chunk),
                    local_ids.c.collection == collection,
                    local_ids.c.ark != ark,
                )
                .order_by(local_ids.c.local_id)
                .limit(1)
            )
            other = connection.execute(others).first()
            if other is not None:
                raise LocalIdTaken(collection, other.local_id, other.ark)


def bound_to(connection: Connection, arks: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the sorted local ids of each of these ARKs; an ARK without any is left out. Local ids of all
    collections count."""
    by_ark: dict[str, list[str]] = {}
    for chunk in _chunks(sorted(set(arks))):
        query = (
            select(local_ids.c.ark, local_ids.c.local_id)
            .where(local_ids.c.ark.in_(chunk))
            .order_by(local_ids.c.ark, local_ids.c.local_id)
        )
        for ark, local_id in connection.execute(query):
            by_ark.setdefault(ark, []).append(local_id)
    return by_ark


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the names in pieces of ``_MANY``."""
    return (names[start : start + _MANY] for start in range(0, len(names), _MANY))
