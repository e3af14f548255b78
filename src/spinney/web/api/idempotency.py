"""Submissions that may be asked again: the header ``Idempotency-Key``, and what answers to it."""

from typing import Annotated, Any

from fastapi import Header

from spinney.commands import fields

REPLAY = "Idempotent-Replay"

IdempotencyKey = Annotated[fields.IdempotencyKey | None, Header(alias="Idempotency-Key")]

REPLAYED: dict[str, Any] = {
    REPLAY: {"description": "`true` when the jobs were made before.", "schema": {"type": "string"}}
}
"""Headers of an answer, as they are documented."""


def replayed(repeated: bool) -> dict[str, str]:
    """The headers of the answer."""
    return {REPLAY: "true"} if repeated else {}
