"""Types of parameters and bodies, for routes that are not made from commands.

Bodies refuse unknown fields (``extra="forbid"``), and convert no text to a number or the other way.

Submissions may be repeated: the request header ``Idempotency-Key`` is named as in the IETF draft
``draft-ietf-httpapi-idempotency-key-header``, and a response header tells a repetition. Keys are kept by the store, in
the transaction that accepts the jobs, so that a repetition is recognized by any server and after any crash.
"""

from typing import Annotated, Any

from fastapi import Header, Path
from pydantic import BaseModel, ConfigDict

from spinney.commands import fields
from spinney.model.jobs import JOB_ID_MAX

JobId = Annotated[int, Path(alias="job", ge=1, le=JOB_ID_MAX, description="The job's number.", examples=[17])]
Fence = Annotated[int, Path(ge=1, le=2**62, description="The attempt's number, as the history shows it.")]


class RequestModel(BaseModel):
    """A JSON body of a request: it is checked strictly, and a field that is not declared is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
