"""Local ids: the names that depositors give to objects, within a collection."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, select

from spinney.apps.ingest.inventory.entry_rules import KEY_MAX_BYTES, local_ids_admitted, name
from spinney.apps.ingest.inventory.errors import LocalIdTaken
from spinney.apps.ingest.inventory.sql.schema import local_ids
from spinney.tables.database import Database

_MANY = 500
"""The number of names in one statement; SQLite allows 32,766 parameters, older builds 999."""


def ark_of(database: Database, collection: str, local_id: str) -> str | None:
    """Return the ark that a local id is bound to, or None. Raises NotAdmitted."""
    name("collection", collection)
    name("local id", local_id, KEY_MAX_BYTES)
    with database.read() as connection:
        query = select(local_ids.c.ark).where(
            local_ids.c.local_id == local_id, local_ids.c.collection == collection
        )
        return connection.execute(query).scalar()


def bind(database: Database, collection: str, names: Iterable[str], ark: str) -> None:
    """Bind all of these local ids to an ark, or none. Raises LocalIdTaken, NotAdmitted."""
    name("collection", collection)
    name("ark", ark)
    admitted = local_ids_admitted(names)
    if not admitted:
        return
    with database.write() as connection:
        bind_within(database, connection, collection, admitted, ark)


def bind_within(
    database: Database, connection: Connection, collection: str, names: Sequence[str], ark: str
) -> None:
    """Bind local ids within a transaction; ``names`` are checked and sorted. Raises LocalIdTaken."""
    for chunk in (names[start : start + _MANY] for start in range(0, len(names), _MANY)):
        rows = [{"local_id": n, "collection": collection, "ark": ark} for n in chunk]
        inserted = connection.execute(database.insert(local_ids).on_conflict_do_nothing(), rows)
        if inserted.rowcount == len(chunk):
            continue  # all were free
        others = (
            select(local_ids.c.local_id, local_ids.c.ark)
            .where(
                local_ids.c.local_id.in_(chunk), local_ids.c.collection == collection, local_ids.c.ark != ark
            )
            .order_by(local_ids.c.local_id)
            .limit(1)
        )
        taken = connection.execute(others).first()
        if taken is not None:
            raise LocalIdTaken(collection, taken.local_id, taken.ark)


def bound_to(connection: Connection, arks: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the sorted local ids of each of these arks; an ark without any is left out."""
    by_ark: dict[str, list[str]] = {}
    sorted_arks = sorted(set(arks))
    for chunk in (sorted_arks[start : start + _MANY] for start in range(0, len(sorted_arks), _MANY)):
        query = (
            select(local_ids.c.ark, local_ids.c.local_id)
            .where(local_ids.c.ark.in_(chunk))
            .order_by(local_ids.c.ark, local_ids.c.local_id)
        )
        for ark, local_id in connection.execute(query):
            by_ark.setdefault(ark, []).append(local_id)
    return by_ark
