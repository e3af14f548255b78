"""The command that assigns a tree of jobs to another collection."""

from dataclasses import dataclass

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import JobNumber, Name, Reason
from spinney.model.access import Role
from spinney.model.values import names
from spinney.service.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabelled:
    """A tree of jobs that now belongs to another collection."""

    job: int
    """The job at the top of the tree."""
    collection: str | None
    """The name of the collection; null: none."""


class RelabelJob(
    Command,
    route="POST /jobs/{job}/collection",
    role=Role.OPERATOR,
    everywhere=True,
    to="assign jobs to collections",
    long=True,
):
    """Assign a tree to another collection.

    The job must be settled and have no parent; all jobs below it are assigned, too. Interrupted, it can be repeated."""

    job: JobNumber
    collection: Name | None = Field(
        default=None, description="Its name; without one the jobs belong to none."
    )
    reason: Reason = None

    def run(self, service: Service) -> Relabelled:
        """Change the root, and then the jobs below it step by step. A caller that goes away stops it between
        two steps."""
        collection = None if self.collection is None else names.name("collection", self.collection)
        collections = service.store.collections
        collections.assign(self.job, collection, service.actor(self.reason), now_us=service.clock())
        after: str | None = ""
        while after is not None:
            service.go_on()
            after = collections.assign_below(self.job, after=after)
        return Relabelled(job=self.job, collection=collection)
