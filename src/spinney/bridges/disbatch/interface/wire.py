"""How documents look on the wire: ids, dates, and what the driver says of a write.

Clients of the releases read the results of Perl's driver, so the replies to writes have its names
(``MongoDB::UpdateResult``) and keys."""

import base64
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from bson import ObjectId
from starlette.responses import Response

from spinney.bridges.disbatch.interface.settings import Oids

_OID = re.compile(r"[0-9a-fA-F]{24}")
_PLAIN = (str, bool, float, type(None))
_NO_ERRORS = {"acknowledged": 1, "write_concern_errors": [], "write_errors": []}


class BadRequest(Exception):
    """A request that is refused; the message tells its sender what to correct. ``status``: of HTTP. ``more``:
    further keys of the reply."""

    def __init__(self, error: str, status: int = 400, **more: Any) -> None:
        self.status, self.content = status, {"error": error, **more}
        super().__init__(error)


def oid(value: object) -> ObjectId | None:
    """Return the id that a request spells as 24 hex digits or as ``{"$oid": …}``, or None for anything else."""
    if isinstance(value, Mapping) and value.keys() == {"$oid"}:
        value = value["$oid"]
    return ObjectId(value) if isinstance(value, str) and _OID.fullmatch(value) else None


def clock(moment: datetime) -> str:
    """Return a time as the releases write it: in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


class Wire:
    """Makes replies in the form in which the releases write them, ids and times included."""

    def __init__(self, oids: Oids) -> None:
        self._plain = oids == "plain"

    def reply(self, content: object, status: int = 200, *, pretty: bool = False) -> Response:
        """Return a response of JSON with sorted keys; ``pretty``: indented for people."""
        options = orjson.OPT_SORT_KEYS | (orjson.OPT_INDENT_2 if pretty else 0)
        body = orjson.dumps(self.plain(content), option=options)
        return Response(body, status, media_type="application/json")

    def plain(self, value: Any) -> Any:
        """Return a value of a document as JSON has it: times in UTC to the second, bytes in Base64, and
        whatever JSON does not have as text."""
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, int):
            return int(value)
        if isinstance(value, ObjectId):
            return str(value) if self._plain else {"$oid": str(value)}
        if isinstance(value, datetime):
            return clock(value)
        if isinstance(value, Mapping):
            return {str(key): self.plain(item) for key, item in value.items()}
        if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
            return [self.plain(item) for item in value]
        return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def updated(matched: int, modified: int) -> dict[str, Any]:
    """Return what the releases say of an update."""
    counts = {"matched_count": matched, "modified_count": modified, "upserted_id": None}
    return {"MongoDB::UpdateResult": {**_NO_ERRORS, **counts}}


def inserted_one(inserted_id: ObjectId) -> dict[str, Any]:
    """Return what the releases say of one new document."""
    return {"MongoDB::InsertOneResult": {**_NO_ERRORS, "inserted_id": inserted_id}, "id": inserted_id}


def inserted_many(ids: Sequence[ObjectId]) -> dict[str, Any]:
    """Return what the releases say of new documents."""
    inserted = [{"index": index, "_id": id_} for index, id_ in enumerate(ids)]
    return {"MongoDB::InsertManyResult": {**_NO_ERRORS, "inserted": inserted}}


def deleted(count: int) -> dict[str, Any]:
    """Return what the releases say of a deletion."""
    return {"MongoDB::DeleteResult": {**_NO_ERRORS, "deleted_count": count}}
