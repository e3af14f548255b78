"""The filter of jobs that lists, counts and verbs have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from spinney.commands.fields import BoundedNumber, Text, Time, Word
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.service.queries import Queries
from spinney.service.service import Service

_FINGERPRINT = WithJsonSchema({"type": "string", "pattern": "^[0-9a-fA-F]{1,16}$"})
"""The schema of a fingerprint; the store refuses other texts."""


class JobFilter(BaseModel):
    """Which jobs are meant: a job matches when it matches every field that is set."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    state: Annotated[list[Annotated[State, Field(strict=False)]] | None, Field(max_length=len(State))] = (
        Field(default=None, description="Only jobs in these states; may be repeated.")
    )
    type: Word | None = Field(default=None, description="Only jobs of this type.")
    queue: Word | None = Field(default=None, description="Only jobs in this queue.")
    stage: Word | None = Field(default=None, description="Only jobs whose current or next stage this is.")
    collection: Word | None = Field(default=None, description="Only jobs of this collection.")
    submitter: Word | None = Field(default=None, description="Only jobs of this submitter.")
    root: BoundedNumber | None = Field(default=None, description="Only this job and all jobs below it.")
    parent: BoundedNumber | None = Field(default=None, description="Only direct subjobs of this job.")
    roots: bool = Field(default=False, description="Only jobs at the top of a tree.")
    node: Word | None = Field(default=None, description="Only jobs that this node runs or ran last.")
    message: Text | None = Field(
        default=None,
        description="Only jobs whose message contains this text; completed jobs are not searched.",
    )
    below: BoundedNumber | None = Field(
        default=None, description="Only jobs below this job, without the job itself."
    )
    failure: Annotated[str, _FINGERPRINT] | None = Field(
        default=None, description="Only failed jobs with the failure whose fingerprint begins with this."
    )
    created_after: Time | None = Field(default=None, description="Only jobs submitted at this time or later.")
    created_before: Time | None = Field(default=None, description="Only jobs submitted before this time.")
    settled_before: Time | None = Field(default=None, description="Only jobs that settled before this time.")

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
