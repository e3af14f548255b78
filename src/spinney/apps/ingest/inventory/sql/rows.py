"""Conversion between the data types and rows."""

from typing import Any

from sqlalchemy import Row

from spinney.apps.ingest.files.digests import ALGORITHMS
from spinney.apps.ingest.inventory.file_spans import Content
from spinney.apps.ingest.inventory.model import File, Version
from spinney.apps.ingest.inventory.sql.schema import files, versions
from spinney.apps.ingest.inventory.sql.values import moment

_ALGORITHMS = tuple(ALGORITHMS)

CONTENT = (
    files.c.path,
    files.c.size_bytes,
    files.c.mime_type,
    files.c.modified,
    *(files.c[a] for a in _ALGORITHMS),
)
"""The columns of a file that make up its ``Content``, in its order."""
VERSION = tuple(column for column in versions.c if column is not versions.c.object_id)


def content_of(row: Row[Any]) -> Content:
    """Return the content of a row that ends with the columns of ``CONTENT``."""
    return tuple(row[-len(CONTENT) :])


def file(content: Content) -> File:
    path, size_bytes, mime_type, modified, *digests = content
    return File(
        path=str(path),
        size_bytes=int(size_bytes),  # type: ignore[call-overload]
        mime_type=None if mime_type is None else str(mime_type),
        modified=None if modified is None else str(modified),
        digests={a: bytes(d).hex() for a, d in zip(_ALGORITHMS, digests, strict=True) if d is not None},  # type: ignore[call-overload]
    )


def file_row(object_id: int, content: Content, first: int, last: int) -> dict[str, Any]:
    values = dict(zip((column.name for column in CONTENT), content, strict=True))
    name = str(content[0]).rpartition("/")[2]
    return {"object_id": object_id, "first_version": first, "last_version": last, "name": name} | values


def version(row: Row[Any]) -> Version:
    """Return the version of a row with the columns of ``VERSION``."""
    columns = row._mapping
    return Version(
        version=columns[versions.c.version],
        batch_id=columns[versions.c.batch_id],
        job_id=columns[versions.c.job_id],
        submitter=columns[versions.c.submitter],
        who=columns[versions.c.who],
        what=columns[versions.c.what],
        when=columns[versions.c.when_said],
        storage=columns[versions.c.storage],
        created=moment(columns[versions.c.created_us]),
        files=columns[versions.c.files],
        size_bytes=columns[versions.c.size_bytes],
        verified=columns[versions.c.verified],
    )
