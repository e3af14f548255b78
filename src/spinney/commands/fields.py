"""Types of fields that commands share: their constraints, and the words that describe them."""

from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from spinney.model.jobs import JOB_ID_MAX
from spinney.model.types import PRIORITIES
from spinney.model.values import names

PRINTABLE = r"^[^\x00-\x1f\x7f]+$"

_TEXT = WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 500, "pattern": PRINTABLE})

Name = Annotated[str, _TEXT]
"""A name that the model or the store checks, since its sentence says of what."""
_Reason = Annotated[str, AfterValidator(partial(names.label, "reason")), _TEXT]
_WHY = Field(description="Why; kept in the audit.", examples=["the receiver is back"])
Reason = Annotated[_Reason | None, _WHY]
RequiredReason = Annotated[_Reason, _WHY]
NodeName = Annotated[
    str,
    AfterValidator(partial(names.name, "node")),
    _TEXT,
    Field(description="The node's name.", examples=["node-1"]),
]
JobNumber = Annotated[int, Field(ge=1, le=JOB_ID_MAX, description="The job's number.", examples=[17])]
PAGE = 100
PAGE_MAX = 1_000
Limit = Annotated[int, Field(ge=1, le=PAGE_MAX, description="How many at most.")]
Priority = Annotated[int, Field(ge=PRIORITIES[0], le=PRIORITIES[-1], description="0 (first) to 99 (last).")]
