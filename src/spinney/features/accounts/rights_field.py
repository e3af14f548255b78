"""Rights as a field of a command: in Python ``Rights``, in JSON the object that answers have.

``RightsField`` accepts both, so that the local command line passes a ``Rights`` and a request the object; a
handler always gets ``Rights``. In JSON a limit that is left out does not limit anything.
"""

from dataclasses import asdict
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    PlainSerializer,
)

from spinney.commands.fields import Name, Priority
from spinney.model.access import AccessScope, Rights, Role

# Not strict, because the limits of ``Rights`` are tuples.
Names = Annotated[list[Name], Field(max_length=1_000, strict=False)]


class ScopeRequest(BaseModel):
    """Which jobs somebody sees and may change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    collections: Names | None = Field(
        default=None,
        description="Only jobs of these collections; null: of all collections.",
        examples=[["birds"]],
    )
    queues: Names | None = Field(default=None, description="Only jobs in these queues; null: in all queues.")


class RightsRequest(BaseModel):
    """A role and its limits, as they are written in JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    role: Annotated[Role, Field(strict=False)] = Field(examples=["operator"])
    within: ScopeRequest = ScopeRequest()
    shares: Names | None = Field(
        default=None,
        description="Shares that may be named; `lab:*`: all that begin with `lab:`; null: any share.",
    )
    priorities: Annotated[list[Priority], Field(min_length=2, max_length=2, strict=False)] | None = Field(
        default=None,
        description="The first and the last priority that may be given; null: any priority.",
        examples=[[40, 60]],
    )
    locks: Names | None = Field(
        default=None, description="Locks that may be freed or given a capacity; null: any lock."
    )
    external: Names = Field(
        default=[], description="Job types whose external stages may be claimed; `*`: all job types."
    )


def _rights(request: RightsRequest) -> Rights:
    """Return the rights. Raises UsageError, BadName for invalid limits."""
    priorities = request.priorities
    return Rights(
        role=request.role,
        within=AccessScope(
            collections=_tuple(request.within.collections), queues=_tuple(request.within.queues)
        ),
        shares=_tuple(request.shares),
        priorities=None if priorities is None else (priorities[0], priorities[1]),
        locks=_tuple(request.locks),
        external=tuple(request.external),
    )


def _tuple(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


_REQUEST = Annotated[
    RightsRequest,
    BeforeValidator(lambda value: asdict(value) if isinstance(value, Rights) else value),
    AfterValidator(_rights),
    PlainSerializer(asdict),
]
RightsField = Annotated[Rights, GetPydanticSchema(lambda _, handler: handler(_REQUEST))]
