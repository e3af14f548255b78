"""Types of fields that commands share: their constraints, and the words that describe them."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from spinney.define.params.values import NOT_FINITE, not_finite, params_to_text
from spinney.model.errors import BadParameters
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.types import PRIORITIES, require_priority
from spinney.model.values import names
from spinney.model.values.times import to_us

PRINTABLE = r"^[^\x00-\x1f\x7f]+$"

_TEXT = WithJsonSchema({"type": "string", "minLength": 1, "maxLength": names.LABEL_MAX, "pattern": PRINTABLE})

Word = Annotated[str, Field(min_length=1, max_length=names.LABEL_MAX, pattern=PRINTABLE)]
"""A name, a label, a reason that nothing else checks: printable, and short."""
Text = Annotated[str, Field(min_length=1, max_length=2_000, pattern=PRINTABLE)]
"""The same, and longer: a message, or a part of one."""
Name = Annotated[str, _TEXT]
"""A name that the model or the store checks, since its sentence says of what."""
_Reason = Annotated[str, AfterValidator(partial(names.label, "reason")), _TEXT]
_WHY = Field(description="The reason, recorded in the audit log.", examples=["the receiver is back"])
Reason = Annotated[_Reason | None, _WHY]
RequiredReason = Annotated[_Reason, _WHY]
NodeName = Annotated[
    str,
    AfterValidator(partial(names.name, "node")),
    _TEXT,
    Field(description="The node's name.", examples=["node-1"]),
]
BoundedNumber = Annotated[int, Field(ge=1, le=JOB_ID_MAX)]
"""A job's number, where the field says which job's."""
JobNumber = Annotated[int, Field(ge=1, le=JOB_ID_MAX, description="The job's number.", examples=[17])]


def as_json(values: dict[str, Any]) -> dict[str, Any]:
    """Return parameters or data as JSON has them: a caller in Python may give paths, dates or models. Raises
    BadParameters for what JSON has no form for, and for secrets, because whether the type hides them is not known
    here."""
    text, secrets = params_to_text(values, "a parameter of the job, or of its data,")
    name = not_finite(values) if "null" in text else None
    if name is not None:
        raise BadParameters(f"{name!r} cannot be kept as JSON: {NOT_FINITE}; use None or a text in its place")
    if secrets:
        raise BadParameters(
            "a secret object cannot be a parameter here; if the type declares it as a secret, pass its value "
            "(get_secret_value)"
        )
    plain: dict[str, Any] = orjson.loads(text)
    return plain


JsonObject = Annotated[dict[str, Any], AfterValidator(as_json)]
"""Parameters of jobs."""
PAGE = 100
"""How many items a page of a list has unless the request names a limit."""
PAGE_MAX = 1_000
"""The most items of a page."""
Limit = Annotated[int, Field(ge=1, le=PAGE_MAX, description="The maximum number of items in the answer.")]
After = Annotated[
    int, Field(ge=0, le=2**62, description="Continue after this item: `next` of the previous page.")
]


Priority = Annotated[
    int,
    AfterValidator(require_priority),
    WithJsonSchema({"type": "integer", "minimum": PRIORITIES[0], "maximum": PRIORITIES[-1]}),
    Field(description="The priority, 0 (first) to 99 (last)."),
]

IdempotencyKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="A word of your choice, new for each submission. Sent again with the same request within a day, "
        "also after a crash, it answers with the same jobs and `Idempotent-Replay: true`.",
    ),
]
"""The type of a command's field ``idempotency_key``, which is sent as the header ``Idempotency-Key``."""

_NO_MOMENT = "a time is microseconds since 1970, or a text such as 2030-01-31T08:00:00+00:00"
LATEST_US = 253_402_300_799_999_999
"""The end of the year 9999."""
MOMENT_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": LATEST_US},
            {"type": "string", "format": "date-time"},
        ],
        "description": "A time: microseconds since 1970 UTC, or ISO 8601 with a zone.",
        "examples": ["2030-01-31T08:00:00Z", 1_896_076_800_000_000],
    }
)


def as_moment(value: Any) -> Any:
    """Return microseconds since 1970 UTC for a number, a datetime or an ISO 8601 text with a zone; other types are
    returned as they are, for the field to refuse. Raises ValueError for a text or a fraction that is no time, and for a
    time without a zone."""
    if isinstance(value, str) and not value.isdecimal():
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(_NO_MOMENT) from None
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError("the time needs a zone, as in 2030-01-31T08:00:00Z")
        return to_us(value)
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(_NO_MOMENT)
    return int(value) if isinstance(value, float | str) and len(str(value)) < 25 else value


Moment = Annotated[int, BeforeValidator(as_moment), MOMENT_SCHEMA]
"""A time that the model checks, since its sentence says of what."""
Time = Annotated[int, Field(ge=0, le=LATEST_US), BeforeValidator(as_moment), MOMENT_SCHEMA]
"""A time that nothing else checks."""
