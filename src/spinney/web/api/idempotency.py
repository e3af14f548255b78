"""Submissions that may be repeated: the request header ``Idempotency-Key``, and the response header that tells a
repetition."""

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
    """Return the headers of the response to a submission."""
    return {REPLAY: "true"} if repeated else {}
