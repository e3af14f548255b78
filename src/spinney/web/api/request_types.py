"""What requests may say, and how answers look that are no plain nouns of the model.

Requests refuse what they do not know (``extra="forbid"``) and turn no text into a number or the other way. Answers are
dataclasses, written as they are; their fields are those of ``--json`` on the command line.
"""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict

from spinney.commands import fields
from spinney.commands.fields import PAGE_MAX, PRINTABLE
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.values.lists import Page

T = TypeVar("T")

JobNumber = fields.BoundedNumber
JobId = Annotated[int, Path(alias="job", ge=1, le=JOB_ID_MAX, description="The job's number.", examples=[17])]
Fence = Annotated[int, Path(ge=1, le=2**62, description="The attempt's number, as the history tells it.")]
NamePath = Annotated[
    str, Path(alias="name", min_length=1, max_length=200, pattern=PRINTABLE, description="Its name.")
]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="How many at most.")]
After = Annotated[int, Query(ge=0, le=2**62, description="`next` of the page before.")]


class RequestModel(BaseModel):
    """A body of JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# --- answers ------------------------------------------------------------------------------------


def page(items: Sequence[T], limit: int, next_: int | str | None) -> Page[T]:
    """The page; where it is full there may be another behind it."""
    return Page(items=items, next=next_ if len(items) >= limit else None)
