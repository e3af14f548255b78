"""Submissions that may be repeated: the request header ``Idempotency-Key``, and the response header that
tells a repetition.

The request header is named as in the IETF draft ``draft-ietf-httpapi-idempotency-key-header``. Keys are kept
by the store, in the transaction that accepts the jobs, so that a repetition is recognized by any server and
after any crash."""

from typing import Annotated, Any

from fastapi import Header

from spinney.commands import fields

REPLAY = "Idempotent-Replay"

IdempotencyKey = Annotated[fields.IdempotencyKey | None, Header(alias="Idempotency-Key")]

REPLAYED: dict[str, Any] = {
    REPLAY: {"description": "`true` when the jobs were made before.", "schema": {"type": "string"}}
}
"""The response headers, for the OpenAPI document."""


def replayed(repeated: bool) -> dict[str, str]:
    """Return the headers of the response to a submission. ``repeated``: its jobs were made by an earlier
    request with the same key."""
    return {REPLAY: "true"} if repeated else {}
