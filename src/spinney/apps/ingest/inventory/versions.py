"""Entering a version of an object: object, version, files and local ids in one transaction."""

from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.inventory.entry_rules import Admitted, admitted, local_ids_admitted
from spinney.apps.ingest.inventory.file_spans import Changes, Span, entered
from spinney.apps.ingest.inventory.local_ids import bind_within
from spinney.apps.ingest.inventory.model import Entry, Version
from spinney.apps.ingest.inventory.sql import rows, values
from spinney.apps.ingest.inventory.sql.database import Database
from spinney.apps.ingest.inventory.sql.schema import files, objects, versions


def record(database: Database, entry: Entry) -> None:
    """Enter a version; durable on return. The same entry again changes nothing; versions may come in any order.

    ``created`` and ``verified`` are not compared: a run that was cut off may look at the clock once more, or find that
    a file stands already; the first stand.

    Raises NotAdmitted for a version that is there with other content, for an object of another collection or owner,
    and for what may not enter at all; LocalIdTaken.
    """
    checked = admitted(entry)
    names = local_ids_admitted(entry.local_ids)
    with database.write() as connection:
        object_id = _new_object(database, connection, entry)
        if object_id is not None:
            # Nothing else can be there, so nothing is looked for.
            _enter(
                connection,
                object_id,
                entry,
                checked,
                entered([], checked.contents, entry.version, None, None),
            )
        else:
            _enter_another(connection, entry, checked)
        bind_within(database, connection, entry.collection, names, entry.ark)


def _new_object(database: Database, connection: Connection, entry: Entry) -> int | None:
    """Its id, when it was not there. On PostgreSQL this waits for another transaction that is making it."""
    made = (
        database.insert(objects)
        .values(ark=entry.ark, collection=entry.collection, owner=entry.owner, head_version=entry.version)
        .on_conflict_do_nothing(index_elements=["ark"])
        .returning(objects.c.id)
    )
    return connection.execute(made).scalar()


def _enter_another(connection: Connection, entry: Entry, checked: Admitted) -> None:
    """A version of an object that is there."""
    known = connection.execute(select(objects).where(objects.c.ark == entry.ark).with_for_update()).one()
    for what, theirs, ours in (
        ("collection", known.collection, entry.collection),
        ("owner", known.owner, entry.owner),
    ):
        if theirs != ours:
            raise NotAdmitted(
                f"{shown(entry.ark)} is of {what} '{shown(theirs)}', not '{shown(ours)}'; deposit it there, or "
                f"as another object"
            )
    object_id = int(known.id)
    if _is_there(connection, object_id, entry, checked):
        return
    before, after = _neighbours(connection, object_id, entry.version, int(known.head_version))
    spans = _spans_over(connection, object_id, entry.version)
    _enter(
        connection, object_id, entry, checked, entered(spans, checked.contents, entry.version, before, after)
    )
    if entry.version > known.head_version:
        connection.execute(
            update(objects).where(objects.c.id == object_id).values(head_version=entry.version)
        )


def _is_there(connection: Connection, object_id: int, entry: Entry, checked: Admitted) -> bool:
    """Whether just this has been entered. Raises NotAdmitted when something else has."""
    query = select(*rows.VERSION).where(
        versions.c.object_id == object_id, versions.c.version == entry.version
    )
    found = connection.execute(query).first()
    if found is None:
        return False
    there = rows.version(found)
    other = _other_fact(there, entry) or _other_file(connection, object_id, entry, checked)
    if other is None:
        return True
    raise NotAdmitted(
        f"version {entry.version} of {shown(entry.ark)} is in the inventory with {other}; a version never changes, so "
        f"record what differs as a new one"
    )


def _other_fact(there: Version, entry: Entry) -> str | None:
    for fact in ("batch_id", "job_id", "submitter", "who", "what", "when", "storage"):
        if getattr(there, fact) != getattr(entry, fact):
            return f"another {fact.removesuffix('_id')}: '{shown(str(getattr(there, fact)))}'"
    return None


def _other_file(connection: Connection, object_id: int, entry: Entry, checked: Admitted) -> str | None:
    kept = {span.content for span in _spans_over(connection, object_id, entry.version)}
    differing = sorted(str(content[0]) for content in kept.symmetric_difference(checked.contents))
    return f"another '{shown(differing[0])}'" if differing else None


def _neighbours(
    connection: Connection, object_id: int, version: int, head: int
) -> tuple[int | None, int | None]:
    """The nearest recorded versions on both sides."""
    if version > head:
        return head, None
    of_object = versions.c.object_id == object_id
    before = select(func.max(versions.c.version)).where(of_object, versions.c.version < version)
    after = select(func.min(versions.c.version)).where(of_object, versions.c.version > version)
    return connection.execute(before).scalar(), connection.execute(after).scalar()


def _spans_over(connection: Connection, object_id: int, version: int) -> list[Span]:
    query = select(files.c.id, files.c.first_version, files.c.last_version, *rows.CONTENT).where(
        files.c.object_id == object_id, files.c.last_version >= version, files.c.first_version <= version
    )
    return [_span(row) for row in connection.execute(query)]


def _span(row: Row[Any]) -> Span:
    return Span(row.id, row.first_version, row.last_version, rows.content_of(row))


def _enter(connection: Connection, object_id: int, entry: Entry, checked: Admitted, changes: Changes) -> None:
    connection.execute(versions.insert(), _version_row(object_id, entry, checked))
    if changes.narrowed:
        narrowing = (
            update(files)
            .where(files.c.id == bindparam("row"))
            .values(first_version=bindparam("first"), last_version=bindparam("last"))
        )
        connection.execute(
            narrowing, [{"row": r, "first": first, "last": last} for r, first, last in changes.narrowed]
        )
    if changes.added:
        connection.execute(
            files.insert().inline(), [rows.file_row(object_id, *added) for added in changes.added]
        )


def _version_row(object_id: int, entry: Entry, checked: Admitted) -> dict[str, Any]:
    return {
        "object_id": object_id,
        "version": entry.version,
        "batch_id": entry.batch_id,
        "job_id": entry.job_id,
        "submitter": entry.submitter,
        "who": entry.who,
        "what": entry.what,
        "when_said": entry.when,
        "storage": entry.storage,
        "created_us": values.micros(entry.created),
        "files": len(checked.contents),
        "size_bytes": checked.size_bytes,
        "verified": entry.verified,
    }
