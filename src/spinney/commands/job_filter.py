"""Which jobs: the filter of lists, counts and verbs, said once."""

from dataclasses import fields
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from spinney.commands.fields import BoundedNumber, Text, Time, Word
from spinney.model.errors import UsageError
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.service.queries import Queries
from spinney.service.service import Service

_FIELDS = {
    "states": "state",
    "type": "type",
    "queue": "queue",
    "stage": "stage",
    "collection": "collection",
    "submitter": "submitter",
    "root_id": "root",
    "parent_id": "parent",
    "roots_only": "roots",
    "node": "node",
    "message": "message",
    "fingerprint": "failure",
    "created_after_us": "created_after",
    "created_before_us": "created_before",
}
"""Of a ``Filter`` of the store, and what they are called here."""


class JobFilter(BaseModel):
    """Every field that is given must fit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Annotated[list[Annotated[State, Field(strict=False)]] | None, Field(max_length=len(State))] = (
        Field(default=None, description="Only of these states; may be repeated.")
    )
    type: Word | None = Field(default=None, description="Only of this job type.")
    queue: Word | None = Field(default=None, description="Only in this queue.")
    stage: Word | None = Field(default=None, description="Only those that run this stage, or would next.")
    collection: Word | None = Field(default=None, description="Only of this collection.")
    submitter: Word | None = Field(default=None, description="Only of this submitter.")
    root: BoundedNumber | None = Field(
        default=None, description="Only in the tree of this job, itself included."
    )
    parent: BoundedNumber | None = Field(default=None, description="Only direct subjobs of this job.")
    roots: bool = Field(default=False, description="Only jobs at the top of a tree.")
    node: Word | None = Field(default=None, description="Only those that this node runs or ran last.")
    message: Text | None = Field(default=None, description="Only those whose message holds this text.")
    failure: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{1,16}$")] | None = Field(
        default=None, description="Only failed jobs with the failure whose fingerprint begins with this."
    )
    created_after: Time | None = Field(default=None, description="Only those submitted then or later.")
    created_before: Time | None = Field(default=None, description="Only those submitted before.")

    def filter(self, service: Service) -> Filter:
        """What is asked for, as the store understands it. Raises Refused when no failure begins so."""
        fields: dict[str, Any] = {name: getattr(self, field) for name, field in _FIELDS.items()}
        if self.state is not None:
            fields["states"] = tuple(dict.fromkeys(self.state))
        if self.failure is not None:
            fields["fingerprint"] = service.part(Queries).fingerprint(self.failure)
        return Filter(**fields)


class JobFilterBody(JobFilter):
    """The same in a body of JSON, where a number is a number."""

    model_config = ConfigDict(strict=True)


def filter_fields(filter_: Filter) -> dict[str, Any]:
    """Return the fields of a ``JobFilter`` that means the same. Raises UsageError for what it has no field for."""
    found: dict[str, Any] = {}
    for field in fields(Filter):
        value = getattr(filter_, field.name)
        if value is None or value is False:
            continue
        if field.name not in _FIELDS:
            raise UsageError(
                f"a server is not asked for jobs by {field.name!r}; do it on a host that has the store"
            )
        found[_FIELDS[field.name]] = list(value) if isinstance(value, tuple) else value
    return found
