"""Conversion between the data types and rows, by the names of columns, so that a new column is added in one
place."""

from typing import Any

from sqlalchemy import ColumnElement, Row, and_

from spinney.apps.ingest.inventory.file_spans import Content
from spinney.apps.ingest.inventory.model import Entry, File, Version
from spinney.apps.ingest.inventory.schema import files, versions
from spinney.files.digests import ALGORITHMS

_ALGORITHMS = tuple(ALGORITHMS)

CONTENT = tuple(files.c[name] for name in ("path", "size_bytes", "mime_type", "modified", *_ALGORITHMS))
"""The columns of a file that make up its ``Content``, in its order."""
_VERSION_FIELDS = {
    {"when_said": "when", "created_us": "created"}.get(column.name, column.name): column
    for column in versions.c
    if column is not versions.c.object_id
}
"""The column of each field of a ``Version``."""
VERSION = tuple(_VERSION_FIELDS.values())


def content_of(row: Row[Any]) -> Content:
    """Return the content of a row that ends with the columns of ``CONTENT``, so that a query may have others
    before them."""
    return tuple(row[-len(CONTENT) :])


def is_in_version(object_id: int, version: int) -> ColumnElement[bool]:
    """Return the condition for the files of a version."""
    return and_(
        files.c.object_id == object_id, files.c.last_version >= version, files.c.first_version <= version
    )


def file(content: Content) -> File:
    """Return the file that has this content."""
    path, size_bytes, mime_type, modified, *digests = content
    return File(
        path=path,
        size_bytes=size_bytes,
        mime_type=mime_type,
        modified=modified,
        digests={a: d.hex() for a, d in zip(_ALGORITHMS, digests, strict=True) if d is not None},
    )


def file_row(object_id: int, content: Content, first: int, last: int) -> dict[str, Any]:
    """Return the row of a file that is in the versions from ``first`` to ``last``."""
    values = dict(zip((column.name for column in CONTENT), content, strict=True))
    name = content[0].rpartition("/")[2]
    return {"object_id": object_id, "first_version": first, "last_version": last, "name": name} | values


def version(row: Row[Any]) -> Version:
    """Return the version of a row with the columns of ``VERSION``, among others."""
    return Version(**{field: row._mapping[column] for field, column in _VERSION_FIELDS.items()})


def version_row(object_id: int, entry: Entry, files: int, size_bytes: int) -> dict[str, Any]:
    """Return the row of an entry's version, which has so many files and bytes."""
    sizes = {"object_id": object_id, "files": files, "size_bytes": size_bytes}
    described = {c.name: getattr(entry, f) for f, c in _VERSION_FIELDS.items() if c.name not in sizes}
    return described | sizes
