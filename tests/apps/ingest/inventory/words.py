"""What tests say of entries, and how they look behind the verbs."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import select, text

from spinney.apps.ingest.inventory import Entry, File, schema
from spinney.apps.ingest.inventory.inventory import Inventory

ARK = "ark:/99999/fk4m32"
NOON = datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)


def sha256(of: str) -> str:
    return hashlib.sha256(of.encode()).hexdigest()


def file(path: str, content: str = "", **other: Any) -> File:
    """A file with this content."""
    fields: dict[str, Any] = {
        "size_bytes": len(content),
        "digests": {"sha256": sha256(content)},
        "mime_type": "text/plain",
    }
    return File(path=path, **fields | other)


def entry(
    ark: str = ARK, version: int = 1, files: Mapping[str, str] | list[File] | None = None, **other: Any
) -> Entry:
    """``files``: path to content, or as they are."""
    fields: dict[str, Any] = {
        "collection": "maps",
        "owner": "library",
        "submitter": "ann",
        "batch_id": "bid-1",
        "job_id": f"jid-{version}",
        "storage": "main",
        "created": NOON,
        "who": "Ortelius",
        "what": "A map",
        "when": "1570",
    }
    if not isinstance(files, list):
        files = [file(path, content) for path, content in (files or {"map.tif": "map"}).items()]
    return Entry(ark=ark, version=version, files=files, **fields | other)


def contents(inventory: Inventory, version: int = 1, ark: str = ARK) -> dict[str, str]:
    """Path to sha256."""
    return {file.path: file.digests["sha256"] for file in inventory.files(ark, version)}


def sums(**files: str) -> dict[str, str]:
    return {path: sha256(content) for path, content in files.items()}


class KeptAudit(NamedTuple):
    when: datetime
    files: int
    size_bytes: int
    faults: list[str]


def audits(inventory: Inventory) -> list[KeptAudit]:
    """All audits that are kept, the newest first."""
    query = select(schema.audits).order_by(schema.audits.c.at_us.desc())
    with inventory._database.read() as connection:
        rows = connection.execute(query).all()
    return [KeptAudit(row.at_us, row.files, row.size_bytes, json.loads(row.faults)) for row in rows]


def count(inventory: Inventory, table: str) -> int:
    with inventory._database.read() as connection:
        return int(connection.execute(text(f"select count(*) from {table}")).scalar_one())
