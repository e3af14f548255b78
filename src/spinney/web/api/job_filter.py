"""Which jobs: the filter of lists, counts and verbs, said once."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from spinney.commands.fields import PAGE, PAGE_MAX, Text, Time, Word
from spinney.control import Control
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.web.api.request_types import JobNumber


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
    root: JobNumber | None = Field(default=None, description="Only in the tree of this job, itself included.")
    parent: JobNumber | None = Field(default=None, description="Only direct subjobs of this job.")
    roots: bool = Field(default=False, description="Only jobs at the top of a tree.")
    node: Word | None = Field(default=None, description="Only those that this node runs or ran last.")
    message: Text | None = Field(default=None, description="Only those whose message holds this text.")
    failure: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{1,16}$")] | None = Field(
        default=None, description="Only failed jobs with the failure whose fingerprint begins with this."
    )
    created_after: Time | None = Field(default=None, description="Only those submitted then or later.")
    created_before: Time | None = Field(default=None, description="Only those submitted before.")

    def filter(self, control: Control) -> Filter:
        """What is asked for, as the store understands it. Raises Refused when no failure begins so."""
        return Filter(
            states=None if self.state is None else tuple(dict.fromkeys(self.state)),
            type=self.type,
            queue=self.queue,
            stage=self.stage,
            collection=self.collection,
            submitter=self.submitter,
            root_id=self.root,
            parent_id=self.parent,
            roots_only=self.roots,
            node=self.node,
            message=self.message,
            fingerprint=None if self.failure is None else control.queries.fingerprint(self.failure),
            created_after_us=self.created_after,
            created_before_us=self.created_before,
        )


class JobListRequest(JobFilter):
    """A page of those."""

    newest: bool = Field(default=True, description="The newest first; false: the oldest.")
    after: int = Field(default=0, ge=0, le=2**62, description="`next` of the page before.")
    limit: int = Field(default=PAGE, ge=1, le=PAGE_MAX, description="How many at most.")


class JobFilterBody(JobFilter):
    """The same in a body of JSON, where a number is a number."""

    model_config = ConfigDict(strict=True)
