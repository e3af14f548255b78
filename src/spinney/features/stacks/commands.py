"""The command that requests the stacks of a running attempt."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import JobNumber
from spinney.node.workers.stack_taker import file_path
from spinney.service.queries import Queries
from spinney.service.service import Service

Fence = Annotated[
    int, Field(ge=1, le=2**62, description="The attempt, as the request returned it.", examples=[41])
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackRequest:
    """A request that a node answers within a moment, by a file in the job's folder."""

    fence: int
    """The attempt that runs."""
    file: str
    """The path of the file in the job's folder. One of an earlier request is replaced."""


class RequestStacks(Command, route="POST /jobs/{job}/stacks"):
    """Request the stacks of a running attempt.

    Its worker writes where its threads and tasks stand into a file of the job's folder, and goes on."""

    job: JobNumber

    def run(self, service: Service) -> StackRequest:
        """Write the request, and wake the nodes. Raises NoSuchJob, and Refused when no attempt runs."""
        job = service.part(Queries).job(self.job)
        fence = service.store.stack_requests.ask(self.job, now_us=service.clock())
        service.wake_nodes()
        attempts = service.store.attempts(job.id)
        stage = next((attempt.stage for attempt in attempts if attempt.fence == fence), job.stage)
        return StackRequest(fence=fence, file=file_path(stage or "", fence))


@dataclass(frozen=True, slots=True, kw_only=True)
class StackRequestState:
    """Whether the request for an attempt's stacks is still open."""

    is_waiting: bool
    """The node has not written the file yet. When it has, or the attempt has ended, this is false."""


class ShowStackRequest(Command, route="GET /jobs/{job}/stacks/{fence}"):
    """Show whether a request for stacks is answered.

    The file that the request names is written when it is."""

    job: JobNumber
    fence: Fence

    def run(self, service: Service) -> StackRequestState:
        service.part(Queries).job(self.job)  # raises NoSuchJob for one that is out of sight
        return StackRequestState(is_waiting=service.store.stack_requests.is_due(self.fence, job_id=self.job))
