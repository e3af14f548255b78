"""Reads services from the inventory: by their numbers, by entity, by words.

Each function is one query that joins the entity's name. All leave out retired services except ``get``. Numbers that no
service can have are dropped before they reach a database, which would refuse them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, or_, select, update

from spinney.apps.monitor.inventory.entities import like, possible
from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.inventory.schema import entities, services, statuses
from spinney.tables.database import Database

_AT_ONCE = 1000  # how many numbers one query has as parameters


def get(database: Database, gid: int) -> Service | None:
    """Return the service with this number, also one that is retired. None: no service has it."""
    return next(iter(_read(database, _all().where(services.c.gid.in_(possible([gid]))))), None)


def by_numbers(database: Database, gids: Sequence[int]) -> list[Service]:
    """Return the services with these numbers that are not retired, in the order of the numbers given, each once."""
    gids = possible(gids)
    numbered: dict[int, Service] = {}
    for start in range(0, len(gids), _AT_ONCE):
        part = gids[start : start + _AT_ONCE]
        numbered |= {service.gid: service for service in _read(database, _present(services.c.gid.in_(part)))}
    return [numbered[gid] for gid in dict.fromkeys(gids) if gid in numbered]


def of_entity(database: Database, eid: int, *, offset: int = 0, limit: int | None = None) -> list[Service]:
    """Return the services of an entity that are not retired, by URI: ``limit`` of them (None: all) after the
    first ``offset``."""
    statement = _present(services.c.eid == eid).order_by(services.c.uri, services.c.gid)
    return _read(database, statement.offset(offset).limit(limit))


def like_description(database: Database, pattern: str) -> list[Service]:
    """Return the services whose description is like a pattern of SQL (``entities.like``), by number."""
    return _read(database, _present(like(database, services.c.description, pattern)).order_by(services.c.gid))


def search(database: Database, words: str, *, limit: int = 200) -> list[Service]:
    """Return up to ``limit`` services whose description, URI or entity contains a text, ignoring case, by
    number. The text is one piece, and has no wildcards."""
    columns = (services.c.description, services.c.uri, entities.c.description)
    condition = or_(*(column.icontains(words, autoescape=True) for column in columns))
    return _read(database, _present(condition).order_by(services.c.gid).limit(limit))


def unchecked_since(database: Database, before_us: int) -> list[Service]:
    """Return the services that have no result since a time (microseconds since 1970), those never checked
    first, then those whose last check is longest ago."""
    condition = or_(services.c.checked_us.is_(None), services.c.checked_us < before_us)
    order = (case((services.c.checked_us.is_(None), 0), else_=1), services.c.checked_us, services.c.gid)
    return _read(database, _present(condition).order_by(*order))


def failing(database: Database, tasks: Collection[str] = ()) -> list[Service]:
    """Return the services of which the newest result of a task is an error, by number. ``tasks``: those that
    count; none: all."""
    failed = select(statuses.c.gid).where(statuses.c.status == "error", *_of_tasks(tasks))
    return _read(database, _present(services.c.gid.in_(failed)).order_by(services.c.gid))


def after(database: Database, gid: int, limit: int) -> list[Service]:
    """Return up to ``limit`` services with a higher number, by number: the next page of a list."""
    return _read(database, _present(services.c.gid > gid).order_by(services.c.gid).limit(limit))


def all_present(database: Database) -> list[Service]:
    """Return all services that are not retired, entity by entity."""
    return _read(
        database, _all().where(services.c.retired_us.is_(None)).order_by(services.c.eid, services.c.gid)
    )


def counts(database: Database, eid: int | None = None, *, tasks: Collection[str] = ()) -> Mapping[str, int]:
    """Return how many services are in each state, worst first: ``error`` or ``warning`` if a task found one,
    ``ok`` if all that applied were, also if none did, ``unchecked`` before the first check. All four are
    keys.

    ``eid``: only those of this entity. ``tasks``: the tasks that count; none: all. Words of programs that are
    no standard status count as warnings."""
    worst = func.max(case((statuses.c.status == "error", 3), (statuses.c.status == "ok", 1), else_=2))
    present: list[ColumnElement[bool]] = [services.c.retired_us.is_(None)]
    if eid is not None:
        present.append(services.c.eid == eid)
    per_service = (
        select(worst.label("worst"))
        .join(services)
        .where(*present, *_of_tasks(tasks))
        .group_by(statuses.c.gid)
        .subquery()
    )
    names = {3: "error", 2: "warning", 1: "ok"}
    with database.read() as connection:
        rows = connection.execute(select(per_service.c.worst, func.count()).group_by(per_service.c.worst))
        by_state = {names[value]: number for value, number in rows}
        total, checked = connection.execute(
            select(func.count(), func.count(services.c.checked_us)).select_from(services).where(*present)
        ).one()
    by_state["unchecked"] = total - checked
    # Not the count of ok ones: a checked service without any result that counts is in order, too.
    by_state["ok"] = checked - by_state.get("error", 0) - by_state.get("warning", 0)
    return {state: by_state.get(state, 0) for state in ("error", "warning", "ok", "unchecked")}


def note_checked(database: Database, gid: int, at_us: int) -> None:
    """Record that a service was checked although no task had anything to say of it, so that it is not
    selected again as unchecked."""
    with database.write() as connection:
        connection.execute(update(services).where(services.c.gid == gid).values(checked_us=at_us))


def _of_tasks(tasks: Collection[str]) -> list[ColumnElement[bool]]:
    """Return the condition that a result is of one of these tasks; no condition where none is named."""
    return [statuses.c.task.in_(tasks)] if tasks else []


def _all() -> Select[Any]:
    """Return the query of all services, with the name of the entity of each."""
    columns = [services.c[name] for name in Service.__slots__ if name != "entity"]
    return select(*columns, entities.c.description.label("entity")).join(entities)


def _present(condition: ColumnElement[bool]) -> Select[Any]:
    return _all().where(services.c.retired_us.is_(None), condition)


def _read(database: Database, statement: Select[Any]) -> list[Service]:
    with database.read() as connection:
        return [Service(**row._mapping) for row in connection.execute(statement)]
