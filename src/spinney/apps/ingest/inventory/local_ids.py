"""Local ids: what a depositor calls an object, within a collection."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, select

from spinney.apps.ingest.inventory.entry_rules import KEY_MAX_BYTES, local_ids_admitted, name
from spinney.apps.ingest.inventory.errors import LocalIdTaken
from spinney.apps.ingest.inventory.sql.database import Database
from spinney.apps.ingest.inventory.sql.schema import local_ids

_MANY = 500
"""Names in one statement; SQLite's own limit of parameters is 32,766, older builds have 999."""


def ark_of(database: Database, collection: str, local_id: str) -> str | None:
    """Raises NotAdmitted."""
    name("collection", collection)
    name("local id", local_id, KEY_MAX_BYTES)
    with database.read() as connection:
        found = select(local_ids.c.ark).where(
            local_ids.c.local_id == local_id, local_ids.c.collection == collection
        )
        return connection.execute(found).scalar()


def bind(database: Database, collection: str, names: Iterable[str], ark: str) -> None:
    """All or none. Raises LocalIdTaken, NotAdmitted."""
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
    """The same in a transaction that has begun; ``names`` are admitted, in their order. Raises LocalIdTaken."""
    for some in (names[at : at + _MANY] for at in range(0, len(names), _MANY)):
        rows = [{"local_id": n, "collection": collection, "ark": ark} for n in some]
        made = connection.execute(database.insert(local_ids).on_conflict_do_nothing(), rows)
        if made.rowcount == len(some):
            continue  # all were free
        others = (
            select(local_ids.c.local_id, local_ids.c.ark)
            .where(
                local_ids.c.local_id.in_(some), local_ids.c.collection == collection, local_ids.c.ark != ark
            )
            .order_by(local_ids.c.local_id)
            .limit(1)
        )
        taken = connection.execute(others).first()
        if taken is not None:
            raise LocalIdTaken(collection, taken.local_id, taken.ark)


def bound_to(connection: Connection, arks: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """The local ids of each of these, by name; one that has none is left out."""
    found: dict[str, list[str]] = {}
    wanted = sorted(set(arks))
    for some in (wanted[at : at + _MANY] for at in range(0, len(wanted), _MANY)):
        query = (
            select(local_ids.c.ark, local_ids.c.local_id)
            .where(local_ids.c.ark.in_(some))
            .order_by(local_ids.c.ark, local_ids.c.local_id)
        )
        for ark, local_id in connection.execute(query):
            found.setdefault(ark, []).append(local_id)
    return found
