"""Reading entities, and what their owners were told."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, false, func, select, update

from spinney.apps.monitor.inventory.model import Entity
from spinney.apps.monitor.inventory.schema import NUMBER_MAX, entities, services
from spinney.tables.database import Database


def like(database: Database, column: ColumnElement[Any], pattern: str) -> ColumnElement[bool]:
    """Return the condition that a text is like a pattern: ``%`` is any text, ``_`` a character, and case
    counts. There is no escape character."""
    if "\0" in pattern:  # which no text has, and PostgreSQL refuses even in a parameter
        return false()
    if database.dialect == "sqlite":  # whose LIKE ignores the case of ASCII letters
        plain = "".join(f"[{char}]" if char in "*?[" else char for char in pattern)
        return column.op("GLOB", is_comparison=True)(plain.replace("%", "*").replace("_", "?"))
    return column.like(pattern.replace("\\", "\\\\"), escape="\\")


def possible(numbers: Sequence[int]) -> list[int]:
    """Return the numbers that a service or an entity can have, in their order; databases refuse larger ones
    even as parameters of a query."""
    return [number for number in numbers if 0 < number <= NUMBER_MAX]


def query(database: Database, pattern: str = "%", *, alphabetically: bool = False) -> list[Entity]:
    """Return the entities whose description is like a pattern (``like``), each with the number of its
    services that are not retired. Those with the most services come first, unless ``alphabetically``."""
    number = func.count(services.c.gid)
    statement = _counted().where(like(database, entities.c.description, pattern))
    order = [entities.c.description] if alphabetically else [number.desc(), entities.c.eid]
    return _read(database, statement.order_by(*order))


def get(database: Database, eid: int) -> Entity | None:
    """Return the entity with this number. None: there is none."""
    return next(iter(_read(database, _counted().where(entities.c.eid.in_(possible([eid]))))), None)


def by_page_key(database: Database, page_key: str) -> Entity | None:
    """Return the entity whose public page has this address. None: no entity has it."""
    return next(iter(_read(database, _counted().where(entities.c.page_key == page_key))), None)


def mailed(database: Database, eid: int) -> tuple[int, int]:
    """Return when the owner last got a mail, in microseconds since 1970, and the id of the newest result of
    the history then. Zeros: there was no mail yet."""
    with database.read() as connection:
        row = connection.execute(
            select(entities.c.mailed_us, entities.c.mailed_id).where(entities.c.eid == eid)
        ).first()
    return (0, 0) if row is None else (row[0] or 0, row[1] or 0)


def set_mailed(database: Database, eid: int, at_us: int, newest_id: int) -> None:
    """Record a mail to the owner, which lists changes up to the result with this id. To record it twice
    changes nothing."""
    with database.write() as connection:
        connection.execute(
            update(entities).where(entities.c.eid == eid).values(mailed_us=at_us, mailed_id=newest_id)
        )


def _counted() -> Select[Any]:
    """Return the query of entities with the number of their present services, also of those that have
    none."""
    number = func.count(services.c.gid).label("services")
    columns = [entities.c[name] for name in Entity.__slots__ if name != "services"]
    present = (services.c.eid == entities.c.eid) & services.c.retired_us.is_(None)
    return select(*columns, number).outerjoin(services, present).group_by(entities.c.eid, *columns)


def _read(database: Database, statement: Select[Any]) -> list[Entity]:
    """Return the entities that a query of ``_counted`` selects."""
    with database.read() as connection:
        return [Entity(**row._mapping) for row in connection.execute(statement)]
