"""The inventory as one class. It records a version of an object: object, version, files and local ids in one
transaction.

That transaction first inserts the object's row or locks the existing one. So versions of one object are
recorded one after the other, and the spans of its files, which several versions share, are changed by one
transaction at a time.
"""

from functools import cached_property
from typing import Self

from sqlalchemy import Connection, bindparam, func, select, update
from sqlalchemy.sql.dml import ReturningInsert

from spinney.apps.ingest.inventory import rows
from spinney.apps.ingest.inventory.bindings import Bindings
from spinney.apps.ingest.inventory.entry_rules import Admitted, admitted, local_ids_admitted
from spinney.apps.ingest.inventory.file_spans import Changes, Span, span_changes, stored_part
from spinney.apps.ingest.inventory.fixity_checks import FixityChecks
from spinney.apps.ingest.inventory.model import Entry, Version
from spinney.apps.ingest.inventory.schema import files, objects, versions
from spinney.apps.ingest.inventory.searches import Searches
from spinney.files.paths import NotAdmitted, shown
from spinney.tables.database import Database

_OF_OBJECT = ("ark", "collection", "owner")
"""The columns of an object that its first version fills with its own values."""


class Inventory(Bindings, Searches, FixityChecks):
    """The content of the archive.

    All methods raise TablesAway while the database does not answer, and TablesUnusable when it cannot be used
    as it is, for example before ``ingest init``; those with text parameters, NotAdmitted for text that cannot
    be stored. Each write is one transaction, and durable on return.

    Use it in a ``with`` block, or ``close`` it; from any thread, but not across a fork, because two processes
    would share a connection.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Inventory({self._database.name})"

    def init(self) -> None:
        """Make the tables, or upgrade them. Several processes may do so at once; current tables are left alone."""
        self._database.init()

    def close(self) -> None:
        """Close the connections to the database of the inventory."""
        self._database.close()

    def record(self, entry: Entry) -> None:
        """Record a version; durable on return. A repetition changes nothing; versions may be recorded in any order.

        ``created``, ``verified``, and the types and dates of files are not compared, and their first values are kept: a
        stage that runs again may read the clock once more, find a file that was fetched already, or read a manifest
        that was made anew.

        Raises NotAdmitted for a version that is recorded with other content, for an object of another collection or
        owner, and for invalid entries; LocalIdTaken.
        """
        checked = admitted(entry)
        names = local_ids_admitted(entry.local_ids)
        with self._database.checked().write() as connection:
            object_id = self._new_object(connection, entry)
            if object_id is not None:
                # A new object has no other versions, so none are looked up.
                changes = span_changes([], checked.contents, entry.version, None, None)
                _enter(connection, object_id, entry, checked, changes)
            else:
                _enter_another(connection, entry, checked)
            self._bind_within(connection, entry.collection, names, entry.ark)

    def _new_object(self, connection: Connection, entry: Entry) -> int | None:
        """Insert the object, and return its id; None when it exists. On PostgreSQL this waits for another transaction
        that is inserting it."""
        values = {column: getattr(entry, column) for column in _OF_OBJECT} | {"head_version": entry.version}
        return connection.execute(self._insert_object, values).scalar()

    @cached_property
    def _insert_object(self) -> ReturningInsert[int]:
        return (
            self._database.insert(objects)
            .values({column: bindparam(column) for column in (*_OF_OBJECT, "head_version")})
            .on_conflict_do_nothing(index_elements=["ark"])
            .returning(objects.c.id)
        )


def _enter_another(connection: Connection, entry: Entry, checked: Admitted) -> None:
    """Enter a version of an existing object, whose row stays locked until the commit.

    Raises NotAdmitted where collection or owner are others, or the version is recorded with other content.
    The newest version is kept in the object's row, so that searches need not look for it.
    """
    object_ = connection.execute(select(objects).where(objects.c.ark == entry.ark).with_for_update()).one()
    for field in ("collection", "owner"):
        recorded, expected = getattr(object_, field), getattr(entry, field)
        if recorded != expected:
            raise NotAdmitted(
                f"{shown(entry.ark)} is of {field} '{shown(recorded)}', not '{shown(expected)}'; deposit it there, or "
                f"as another object"
            )
    object_id = int(object_.id)
    if _is_recorded(connection, object_id, entry, checked):
        return
    before, after = _neighbours(connection, object_id, entry.version, int(object_.head_version))
    spans = _spans_over(connection, object_id, entry.version)
    changes = span_changes(spans, checked.contents, entry.version, before, after)
    _enter(connection, object_id, entry, checked, changes)
    if entry.version > object_.head_version:
        connection.execute(
            update(objects).where(objects.c.id == object_id).values(head_version=entry.version)
        )


def _is_recorded(connection: Connection, object_id: int, entry: Entry, checked: Admitted) -> bool:
    """Return whether this version has been recorded. Raises NotAdmitted when it has been with other content."""
    query = select(*rows.VERSION).where(
        versions.c.object_id == object_id, versions.c.version == entry.version
    )
    row = connection.execute(query).first()
    if row is None:
        return False
    recorded = rows.version(row)
    other = _other_fact(recorded, entry) or _other_file(connection, object_id, entry, checked)
    if other is None:
        return True
    raise NotAdmitted(
        f"version {entry.version} of {shown(entry.ark)} is in the inventory with {other}; a version never changes, so "
        f"record what differs as a new one"
    )


def _other_fact(recorded: Version, entry: Entry) -> str | None:
    """Return the first field in which a recorded version differs from an entry, with its value."""
    for fact in ("batch_id", "job_id", "submitter", "who", "what", "when", "storage"):
        if getattr(recorded, fact) != getattr(entry, fact):
            return f"another {fact.removesuffix('_id')}: '{shown(str(getattr(recorded, fact)))}'"
    return None


def _other_file(connection: Connection, object_id: int, entry: Entry, checked: Admitted) -> str | None:
    """Return the first file in which a recorded version differs from an entry."""
    recorded = {stored_part(span.content) for span in _spans_over(connection, object_id, entry.version)}
    stored = {stored_part(content) for content in checked.contents}
    differing = sorted(str(part[0]) for part in recorded ^ stored)
    return f"another '{shown(differing[0])}'" if differing else None


def _neighbours(
    connection: Connection, object_id: int, version: int, head: int
) -> tuple[int | None, int | None]:
    """Return the nearest recorded versions before and after; None where there is none.

    ``head``: the newest one, which is before every version that is recorded in order, so that this case needs
    no query.
    """
    if version > head:
        return head, None
    of_object = versions.c.object_id == object_id
    before = select(func.max(versions.c.version)).where(of_object, versions.c.version < version)
    after = select(func.min(versions.c.version)).where(of_object, versions.c.version > version)
    return connection.execute(before).scalar(), connection.execute(after).scalar()


def _spans_over(connection: Connection, object_id: int, version: int) -> list[Span]:
    """Return the spans that contain a version."""
    query = select(files.c.id, files.c.first_version, files.c.last_version, *rows.CONTENT).where(
        rows.is_in_version(object_id, version)
    )
    return [
        Span(row.id, row.first_version, row.last_version, rows.content_of(row))
        for row in connection.execute(query)
    ]


def _enter(connection: Connection, object_id: int, entry: Entry, checked: Admitted, changes: Changes) -> None:
    """Insert the version, and change the spans of its object's files: first narrowed, then added."""
    connection.execute(
        versions.insert(), rows.version_row(object_id, entry, len(checked.contents), checked.size_bytes)
    )
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
