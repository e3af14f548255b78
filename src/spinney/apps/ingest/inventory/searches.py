"""Searches in the inventory. Every search uses an index, and returns its results in pages.

A page begins after the place of the last result, not after a count: so it costs the same at the end as at the
beginning, and entries that are recorded meanwhile shift nothing.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, or_, select, tuple_

from spinney.apps.ingest.inventory import rows
from spinney.apps.ingest.inventory.bindings import bound_to
from spinney.apps.ingest.inventory.entry_rules import plain
from spinney.apps.ingest.inventory.model import File, FileMatch, Match, Object, Recorded
from spinney.apps.ingest.inventory.schema import HEAD, files, local_ids, objects, versions
from spinney.files.digests import ALGORITHMS, Digest, digest
from spinney.files.paths import NotAdmitted, shown
from spinney.tables.database import Database

PAGE_MAX = 1000
_BEHIND_SLASH = chr(ord("/") + 1)
_PLACE = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,18}))?")
_OBJECT = (objects.c.id, objects.c.ark, objects.c.collection, objects.c.owner)


class Searches:
    """The searches of the inventory, by identifiers, names of files, digests and collections."""

    _database: Database

    def find(
        self,
        *,
        ark: str | None = None,
        local_id: str | None = None,
        file_name: str | None = None,
        digest: str | None = None,
        collection: str | None = None,
        within: Sequence[str] | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Match]:
        """Return the recorded objects that match all given conditions, in the order in which they were first
        recorded; with a ``file_name`` or a ``digest``, an entry for each of their files that match.

        ``file_name``: the last part of a path, or more of it (``b/c.txt`` finds ``a/b/c.txt``). ``digest``:
        ``sha256:9f86…``, or hexadecimal alone for any algorithm with values of that length. ``after``: the
        ``place`` of the last entry of the previous page; fewer than ``limit`` entries are the last page.
        ``within``: only objects of these collections; None: of all. Without any condition, all objects are
        listed. All versions are searched for files, and ``head`` is the newest version all the same.

        Raises NotAdmitted for an invalid digest or place, and for a limit outside 1..1000.
        """
        if not 1 <= limit <= PAGE_MAX:
            raise NotAdmitted(
                f"a page has 1 to {PAGE_MAX} entries, not {limit}; ask for the rest with 'after'"
            )
        behind = _place(after)
        texts = {"ark": ark, "local id": local_id, "file name": file_name, "collection": collection}
        for field, text in texts.items():
            plain(field, text or "")
        conditions: list[ColumnElement[bool]] = [] if within is None else [objects.c.collection.in_(within)]
        if ark is not None:
            conditions.append(objects.c.ark == ark)
        if collection is not None:
            conditions.append(objects.c.collection == collection)
        if local_id is not None:
            conditions.append(_has_local_id(local_id, collection))
        if file_name is None and digest is None:
            query = _objects(conditions, behind)
        else:
            if file_name is not None:
                conditions.append(_is_called(file_name))
            if digest is not None:
                conditions.append(_has_digest(digest))
            query = _files(conditions, behind)
        with self._database.checked().read() as connection:
            matches = connection.execute(query.limit(limit)).all()
            names = bound_to(connection, (row.ark for row in matches))
        return [_search_result(row, names.get(row.ark, ())) for row in matches]

    def files(self, ark: str, version: int) -> Iterator[File]:
        """Yield the files of a version, by path, from one snapshot; close the iterator when you leave it early. Raises
        NotAdmitted, at the first step, for a version that is not recorded."""
        # One transaction throughout: a version that is recorded meanwhile moves the ends of spans.
        with self._database.checked().read() as connection:
            object_query = (
                select(objects.c.id)
                .join(versions, versions.c.object_id == objects.c.id)
                .where(objects.c.ark == ark, versions.c.version == version)
            )
            object_id = connection.execute(object_query).scalar()
            if object_id is None:
                raise NotAdmitted(
                    f"version {version} of {shown(ark)} is not in the inventory; look for the ark first"
                )
            query = select(*rows.CONTENT).where(rows.is_in_version(object_id, version)).order_by(files.c.path)
            for row in connection.execution_options(yield_per=PAGE_MAX).execute(query):
                yield rows.file(tuple(row))

    def storages(self) -> set[str]:
        """Return the names of the storages of recorded versions. Reads all versions, so it is for ``ingest
        init`` and not for requests."""
        with self._database.checked().read() as connection:
            return set(connection.execute(select(versions.c.storage).distinct()).scalars())

    def batch_entries(self, batch_id: str, *, apart: str | None = None) -> Iterator[Recorded]:
        """Yield the versions that a batch has made, object by object, in the order in which the objects were
        first recorded.

        ``apart``: a folder whose files are also counted separately. Each page is a transaction of its own, so
        that a consumer that is slow keeps none open; versions that are recorded meanwhile may be missing.
        """
        behind = (0, 0)
        while True:
            query = (
                select(*_OBJECT, *rows.VERSION)
                .join_from(versions, objects, objects.c.id == versions.c.object_id)
                .where(
                    versions.c.batch_id == batch_id, tuple_(versions.c.object_id, versions.c.version) > behind
                )
                .order_by(versions.c.object_id, versions.c.version)
                .limit(PAGE_MAX)
            )
            with self._database.checked().read() as connection:
                page = connection.execute(query).all()
                names = bound_to(connection, (row.ark for row in page))
                below = _below(connection, apart, {row.id for row in page}) if apart and page else {}
            for row in page:
                sizes = [size for first, last, size in below.get(row.id, ()) if first <= row.version <= last]
                yield Recorded(
                    **_described(row, names.get(row.ark, ())),
                    version=rows.version(row),
                    apart_files=len(sizes),
                    apart_bytes=sum(sizes),
                )
            if len(page) < PAGE_MAX:
                return
            behind = (page[-1].id, page[-1].version)

    def object(self, ark: str) -> Object | None:
        """Return an object with its versions, oldest first; None where it is not recorded. ``ark`` is in its
        canonical form."""
        with self._database.checked().read() as connection:
            row = connection.execute(select(objects).where(objects.c.ark == ark)).first()
            if row is None:
                return None
            of_object = (
                select(*rows.VERSION).where(versions.c.object_id == row.id).order_by(versions.c.version)
            )
            return Object(
                **_described(row, bound_to(connection, [ark]).get(ark, ())),
                versions=[rows.version(v) for v in connection.execute(of_object)],
            )


def _below(connection: Connection, folder: str, objects_: set[int]) -> dict[int, list[tuple[int, int, int]]]:
    """Return first and last version and size of the files below a folder, by object.

    The condition is a range of paths, from the folder's slash to the character behind it, and not LIKE, which
    treats ``_`` and ``%`` in a name as patterns.
    """
    query = select(files.c.object_id, files.c.first_version, files.c.last_version, files.c.size_bytes).where(
        files.c.object_id.in_(objects_),
        files.c.path >= f"{folder}/",
        files.c.path < f"{folder}{_BEHIND_SLASH}",
    )
    by_object: dict[int, list[tuple[int, int, int]]] = {}
    for object_id, first, last, size in connection.execute(query):
        by_object.setdefault(object_id, []).append((first, last, size))
    return by_object


# --- conditions -------------------------------------------------------------------------------


def _has_local_id(local_id: str, collection: str | None) -> ColumnElement[bool]:
    """Return the condition for an object's local id, in one collection or in any."""
    bound = select(local_ids.c.ark).where(local_ids.c.local_id == local_id)
    if collection is not None:
        bound = bound.where(local_ids.c.collection == collection)
    return objects.c.ark.in_(bound)


def _is_called(file_name: str) -> ColumnElement[bool]:
    """Return the condition for a file's name, or for the end of its path.

    The name has an index; the rest of the path is compared only in rows that have the name.
    """
    name = file_name.rpartition("/")[2]
    if name == file_name:
        return files.c.name == name
    # Not LIKE, which ignores case on SQLite.
    ending = func.substr(files.c.path, func.length(files.c.path) - len(file_name)) == f"/{file_name}"
    return and_(files.c.name == name, or_(files.c.path == file_name, ending))


def _has_digest(digest_: str) -> ColumnElement[bool]:
    """Return the condition for a file's digest; each algorithm that the text may mean has an index of its
    own."""
    return or_(*(files.c[d.algorithm] == bytes.fromhex(d.value) for d in _possible_digests(digest_)))


def _possible_digests(digest_: str) -> Sequence[Digest]:
    """Return the digests that a text may mean. Raises NotAdmitted when it is none."""
    algorithm, colon, value = digest_.partition(":")
    if colon:
        return [digest(algorithm, value)]
    plain = digest_.strip().lower()
    fitting = [digest(algorithm, plain) for algorithm, digits in ALGORITHMS.items() if digits == len(plain)]
    if not fitting:
        lengths = sorted(set(ALGORITHMS.values()))
        raise NotAdmitted(
            f"'{shown(digest_[:40])}' is no digest: none has {len(plain)} hexadecimal digits "
            f"({', '.join(map(str, lengths))} are possible); give all of it"
        )
    return fitting


# --- statements -------------------------------------------------------------------------------


def _objects(conditions: Sequence[ColumnElement[bool]], behind: tuple[int, int]) -> Select[Any]:
    """Select objects with their newest version, a page in the order of their ids, behind an id."""
    return (
        select(*_OBJECT, *rows.VERSION)
        .join_from(objects, versions, HEAD)
        .where(*conditions, objects.c.id > behind[0])
        .order_by(objects.c.id)
    )


def _files(conditions: Sequence[ColumnElement[bool]], behind: tuple[int, int]) -> Select[Any]:
    """Select files with their object and its newest version, in the order of object and file, behind such a
    pair.

    The comparison of pairs (a row value) continues in the index where the last page ended.
    """
    return (
        select(*_OBJECT, *rows.VERSION, *_FILE, *rows.CONTENT)
        .join_from(files, objects, objects.c.id == files.c.object_id)
        .join(versions, HEAD)
        .where(*conditions, tuple_(files.c.object_id, files.c.id) > behind)
        .order_by(files.c.object_id, files.c.id)
    )


_any = versions.alias("any_version")
_FILE = (
    files.c.id.label("file_id"),
    # A span may extend beyond the recorded versions that it contains; these are the first and last of those.
    select(func.min(_any.c.version))
    .where(_any.c.object_id == files.c.object_id, _any.c.version >= files.c.first_version)
    .scalar_subquery()
    .label("first_recorded"),
    select(func.max(_any.c.version))
    .where(_any.c.object_id == files.c.object_id, _any.c.version <= files.c.last_version)
    .scalar_subquery()
    .label("last_recorded"),
)


# --- answers ----------------------------------------------------------------------------------


def _place(after: str | None) -> tuple[int, int]:
    """Parse the place after which a page begins: an object, and a file of it. Raises NotAdmitted."""
    if after is None:
        return 0, 0
    match = _PLACE.fullmatch(after)
    if match is None:
        raise NotAdmitted(
            f"'{shown(after[:40])}' is no place in an answer; give the 'place' of the last entry"
        )
    return int(match[1]), int(match[2] or 0)


def _search_result(row: Row[Any], names: Sequence[str]) -> Match:
    """Return the match of a row, which has columns of a file if files were searched."""
    file = None
    if is_file := "file_id" in row._fields:
        content = rows.file(rows.content_of(row))
        file = FileMatch(file=content, first_version=row.first_recorded, last_version=row.last_recorded)
    return Match(
        **_described(row, names),
        head=rows.version(row),
        file=file,
        place=f"{row.id}.{row.file_id}" if is_file else str(row.id),
    )


def _described(row: Row[Any], names: Sequence[str]) -> dict[str, Any]:
    return {"ark": row.ark, "collection": row.collection, "owner": row.owner, "local_ids": names}
