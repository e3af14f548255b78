"""Which jobs: the filter of lists, counts and verbs, said once."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from spinney.commands.fields import BoundedNumber, Text, Time, Word
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.service.queries import Queries
from spinney.service.service import Service

_FINGERPRINT = WithJsonSchema({"type": "string", "pattern": "^[0-9a-fA-F]{1,16}$"})
"""The store refuses others."""


class JobFilter(BaseModel):
    """A job fits when it fits every field that is set."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

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
    message: Text | None = Field(
        default=None, description="Only those whose message holds this text; completed ones are not searched."
    )
    below: BoundedNumber | None = Field(default=None, description="Only below this job, itself not included.")
    failure: Annotated[str, _FINGERPRINT] | None = Field(
        default=None, description="Only failed jobs with the failure whose fingerprint begins with this."
    )
    created_after: Time | None = Field(default=None, description="Only those submitted then or later.")
    created_before: Time | None = Field(default=None, description="Only those submitted before.")
    settled_before: Time | None = Field(default=None, description="Only those that settled before.")

    def filter(self, service: Service) -> Filter:
        """Return the filter as the store understands it. Raises Refused when no failure begins with ``failure``, and
        NoSuchJob when the job named by ``below`` is not visible."""
        queries = service.part(Queries)
        return Filter(
            states=None if self.state is None else tuple(dict.fromkeys(self.state)),
            type=self.type,
            queue=self.queue,
            stage=self.stage,
            collection=self.collection,
            submitter=self.submitter,
            root_id=self.root,
            parent_id=self.parent,
            below=None if self.below is None else queries.job(self.below).lineage,
            roots_only=self.roots,
            node=self.node,
            message=self.message,
            fingerprint=None if self.failure is None else queries.fingerprint(self.failure),
            created_after_us=self.created_after,
            created_before_us=self.created_before,
            settled_before_us=self.settled_before,
        )


class JobFilterBody(JobFilter):
    """The filter of jobs as JSON, where a number must be a number."""

    model_config = ConfigDict(strict=True)
