"""What people ask of jobs, and do to single ones; to many at once see ``spinney.features.bulk.commands``."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import PAGE, PAGE_MAX, After, JobNumber, Limit, Moment, Priority, Reason, Word
from spinney.commands.job_details import job_details
from spinney.commands.job_filter import JobFilter
from spinney.features.bulk.commands import bulk_order
from spinney.features.bulk.service import Bulk, require_order
from spinney.model.access import Role
from spinney.model.bulk_runs import Plan
from spinney.model.errors import Refused
from spinney.model.jobs import Attempt
from spinney.model.rights.operators import BulkStep, Explanation, Verb
from spinney.model.values.lists import All, Page
from spinney.schemas import JobDetails, VerbResult
from spinney.service.order_scope import OrderScope
from spinney.service.queries import Queries
from spinney.service.service import Service

TREE_MAX = 10_000


class ListJobs(Command, JobFilter, route="GET /jobs"):
    """List jobs.

    Jobs that fit all of the filters, the newest first. An unknown filter is refused, so that a typing error lists
    nothing rather than everything."""

    newest: bool = Field(default=True, description="The newest first; false: the oldest.")
    after: After = 0
    limit: Limit = PAGE

    def run(self, service: Service) -> Page[JobDetails]:
        jobs = service.part(Queries).jobs(
            self.filter(service), after=self.after, limit=self.limit, newest=self.newest
        )
        return Page(items=job_details(service, jobs), next=jobs[-1].id if len(jobs) >= self.limit else None)


class CountJobs(Command, JobFilter, route="GET /jobs/count"):
    """Count jobs by state.

    How many jobs that fit stand in each state, exactly."""

    def run(self, service: Service) -> Mapping[str, int]:
        return service.part(Queries).counts(self.filter(service))


class ShowJob(Command, route="GET /jobs/{job}"):
    """Show a job.

    Where it stands, and which verbs are allowed now. Parameters that the type declares secret are masked."""

    job: JobNumber

    def run(self, service: Service) -> JobDetails:
        return job_details(service, [service.part(Queries).job(self.job)])[0]


class ShowTree(Command, route="GET /jobs/{job}/tree"):
    """Show a job and all below it.

    In depth-first order, the job itself first. Of larger trees: `/jobs?root=` in pages."""

    job: JobNumber
    limit: Annotated[int, Field(ge=1, le=TREE_MAX, description="How many at most.")] = PAGE_MAX

    def run(self, service: Service) -> All[JobDetails]:
        return All(items=job_details(service, service.part(Queries).tree(self.job, limit=self.limit)))


class ListChildren(Command, route="GET /jobs/{job}/children"):
    """List the direct subjobs of a job.

    Those that count: not what a stage bore that ran again since."""

    job: JobNumber
    after: After = 0
    limit: Limit = PAGE

    def run(self, service: Service) -> Page[JobDetails]:
        jobs = service.part(Queries).children(self.job, after=self.after, limit=self.limit)
        # Those out of sight are left out, so that a page may be short though others follow.
        return Page(items=job_details(service, jobs), next=jobs[-1].id if jobs else None)


class ListAttempts(Command, route="GET /jobs/{job}/attempts"):
    """Show the history of a job's stages.

    Every attempt of every stage, oldest first; one that runs is last, without an outcome."""

    job: JobNumber

    def run(self, service: Service) -> All[Attempt]:
        return All(items=service.part(Queries).attempts(self.job))


class ShowData(Command, route="GET /jobs/{job}/data"):
    """Show what a job keeps.

    `job.data`: what its stages and those of its subjobs have kept in it, by name."""

    job: JobNumber

    def run(self, service: Service) -> Mapping[str, Any]:
        return service.part(Queries).data(self.job)


class ShowResults(Command, route="GET /jobs/{job}/results"):
    """Show the results of a job's stages.

    The values of the stages that have passed, by stage."""

    job: JobNumber

    def run(self, service: Service) -> Mapping[str, Any]:
        return service.part(Queries).results(self.job)


class ExplainJob(Command, route="GET /jobs/{job}/explain"):
    """Say why a job is not running.

    One exact sentence, a word for programs (`cause`), and when the job is expected to start if that can be known."""

    job: JobNumber

    def run(self, service: Service) -> Explanation:
        return service.part(Queries).explain(self.job)


class _JobCommand(Command, route=""):
    """Its fields beside the job's number are those of the order that is given."""

    verb: ClassVar[Verb]

    job: JobNumber
    reason: Reason = None

    def run(self, service: Service) -> VerbResult:
        """Raises NoSuchJob, Forbidden, Refused with what the state of the job says."""
        order = bulk_order(self.verb, **self.model_dump(exclude={"job"}))
        OrderScope(service=service, order=order).require_job(self.job)
        require_order(service, order)
        steps: list[BulkStep] = []
        plan = Plan(order=order, which=None, ids=(self.job,))
        report = service.part(Bulk).run(plan, on_step=lambda _, step: steps.append(step))
        if report.refused:
            service.part(Queries).job(self.job)
            raise Refused(next(iter(report.refused.values())))
        return VerbResult(
            touched=[job_id for step in steps for job_id in step.touched],
            reopened=[job_id for step in steps for job_id in step.reopened],
        )


class RetryJob(_JobCommand, route="POST /jobs/{job}/retry", role=Role.SUBMITTER, to="retry jobs"):
    """Retry a job.

    Open what failed, was cancelled or orphaned: behind the last stage that passed, or from an earlier one."""

    verb = Verb.RETRY

    stage: Word | None = Field(default=None, description="From this stage on.")
    queue: Word | None = Field(default=None, description="In this queue.")


class RerunJob(_JobCommand, route="POST /jobs/{job}/rerun", role=Role.OPERATOR, to="rerun jobs"):
    """Run a job again.

    Run a settled job again from its first stage, or from `stage`, whatever had passed."""

    verb = Verb.RERUN

    stage: Word | None = Field(default=None, description="From this stage on.")
    queue: Word | None = Field(default=None, description="In this queue.")


class CancelJob(_JobCommand, route="POST /jobs/{job}/cancel", role=Role.SUBMITTER, to="cancel jobs"):
    """Cancel a job.

    What waits is cancelled at once; what runs is asked to end, then made to."""

    verb = Verb.CANCEL

    tree: bool = Field(default=False, description="With all below it.")

    def is_long(self) -> bool:
        return self.tree


class HoldJob(_JobCommand, route="POST /jobs/{job}/hold", role=Role.SUBMITTER, to="hold jobs"):
    """Hold a job.

    Nothing of it starts until it is released; a stage that runs finishes."""

    verb = Verb.HOLD

    reason: Word = Field(description="Why; shown to everybody.", examples=["the receiver is being repaired"])
    until: Moment | None = Field(default=None, description="It ends by itself at this time.")


class ReleaseJob(_JobCommand, route="POST /jobs/{job}/release", role=Role.SUBMITTER, to="release jobs"):
    """Release a job.

    Let a held job go on."""

    verb = Verb.RELEASE


class MoveJob(_JobCommand, route="POST /jobs/{job}/move", role=Role.OPERATOR, to="move jobs"):
    """Move a job into another queue.

    It stays there for later stages and subjobs."""

    verb = Verb.MOVE

    queue: Word = Field(description="Where it goes.")


class PrioritiseJob(
    _JobCommand, route="POST /jobs/{job}/priority", role=Role.OPERATOR, to="give priorities to jobs"
):
    """Give a job another priority.

    0 is first, 99 last."""

    verb = Verb.PRIORITY

    priority: Priority


class DeleteJob(_JobCommand, route="DELETE /jobs/{job}", role=Role.OPERATOR, to="delete jobs", long=True):
    """Delete a job.

    With all below it, and their folders."""

    verb = Verb.DELETE


READING = (
    ListJobs,
    CountJobs,
    ShowJob,
    ShowTree,
    ListChildren,
    ListAttempts,
    ShowData,
    ShowResults,
    ExplainJob,
)
COMMANDS = (RetryJob, RerunJob, CancelJob, HoldJob, ReleaseJob, MoveJob, PrioritiseJob, DeleteJob)
