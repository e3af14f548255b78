"""The queries for failures: failed jobs by their cause.

A cause is a fingerprint of type, stage, exception and message with numbers and the like left out
(``model.attempts.failures``), so that the same failure of many jobs is one group. Only jobs that are failed now count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import PAGE, Word
from spinney.commands.job_details import JobDetails, job_details
from spinney.model.attempts.failure_groups import Failure, FailureGroups
from spinney.model.errors import NoSuch, Refused
from spinney.model.jobs import Filter
from spinney.service.queries import Queries
from spinney.service.service import Service

GROUPS_MAX = 10_000
"""How many causes, the largest first, are searched for the one that is asked for."""
NEWEST = 10
"""How many jobs are named with a cause, the newest first."""

Fingerprint = Annotated[
    str,
    Field(
        pattern=r"^[0-9a-fA-F]{1,16}$",
        description="The fingerprint of a failure; its first digits are enough.",
        examples=["9f86d0"],
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDetails:
    """One cause, with some of its jobs."""

    failure: Failure
    newest: Sequence[JobDetails]
    """The newest jobs that are failed with it; ``/jobs?failure=`` has all."""


class ListFailures(Command, route="GET /failures"):
    """List failures by cause.

    Groups the jobs that failed by an attempt of their own, the largest group first.
    """

    type: Word | None = Field(default=None, description="Only failures of this job type.")
    limit: Annotated[
        int, Field(ge=1, le=100_000, description="The maximum number of causes in the answer.")
    ] = PAGE

    def run(self, service: Service) -> FailureGroups:
        queries = service.part(Queries)
        if self.type is not None:
            queries.type(self.type)
        return queries.failures(self.type, self.limit)


class ShowFailure(Command, route="GET /failures/{fingerprint}"):
    """Show a cause of failures.

    Returns the cause, and the newest jobs that are failed with it.
    """

    fingerprint: Fingerprint

    def run(self, service: Service) -> FailureDetails:
        queries = service.part(Queries)
        try:
            fingerprint = queries.fingerprint(self.fingerprint)
        except Refused as error:
            raise NoSuch(str(error)) from None
        failure = failure_of(queries, fingerprint)
        if failure is None:
            raise NoSuch(
                f"no failed job has the failure {fingerprint} any more; /failures lists what there is"
            )
        newest = queries.jobs(Filter(fingerprint=fingerprint), limit=NEWEST, newest=True)
        return FailureDetails(failure=failure, newest=job_details(service, newest))


def failure_of(queries: Queries, fingerprint: str) -> Failure | None:
    """Return the cause with this fingerprint; None: no job is failed with it now."""
    groups = queries.failures(limit=GROUPS_MAX).items
    return next((group for group in groups if group.fingerprint == fingerprint), None)
