"""The verbs on one job, as commands.

Those on many jobs are in ``spinney.features.bulk.commands``, and queries for jobs in
``spinney.commands.job_queries``. The rights of a role are checked by ``role``; whether a submitter may do it
to this very job, by ``OrderScope``.
"""

from typing import ClassVar

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import JobNumber, Moment, Priority, Reason, Word
from spinney.features.bulk.commands import bulk_order
from spinney.features.bulk.service import Bulk, require_order
from spinney.model.access import Role
from spinney.model.errors import Refused
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import Verb
from spinney.model.operators.bulk_runs import BulkStep, Plan
from spinney.schemas import VerbResult
from spinney.service.order_scope import OrderScope
from spinney.service.queries import Queries
from spinney.service.service import Service


class _JobCommand(Command, route=""):
    """A verb on one job. Fields of a subclass beside the job's number are passed on as those of the order."""

    verb: ClassVar[Verb]
    """The verb that is carried out."""

    job: JobNumber
    reason: Reason = None

    def run(self, service: Service) -> VerbResult:
        """Carry out the verb as a bulk run over one job, and return the jobs that it changed, and
        ancestors that regrew.

        Raises NoSuchJob for one that the caller may not see, Forbidden, and Refused with the reason
        why the job's state does not allow the verb.
        """
        order = bulk_order(self.verb, **self.model_dump(exclude={"job"}))
        OrderScope(service=service, order=order).require_job(self.job)
        require_order(service, order, Filter(ids=(self.job,)))
        steps: list[BulkStep] = []
        plan = Plan(order=order, job_filter=None, ids=(self.job,))
        report = service.part(Bulk).run(plan, on_step=lambda _, step: steps.append(step))
        if report.refused:
            # A job that has been deleted meanwhile raises NoSuchJob, which is more to the point than the
            # refusal.
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

    stage: Word | None = Field(default=None, description="Restart from this stage.")
    queue: Word | None = Field(default=None, description="The queue in which the job runs from now on.")


class RerunJob(_JobCommand, route="POST /jobs/{job}/rerun", role=Role.OPERATOR, to="rerun jobs"):
    """Run a job again.

    Run a settled job again from its first stage, or from `stage`, whatever had passed."""

    verb = Verb.RERUN

    stage: Word | None = Field(default=None, description="Restart from this stage.")
    queue: Word | None = Field(default=None, description="The queue in which the job runs from now on.")


class RunJobNow(_JobCommand, route="POST /jobs/{job}/run-now", role=Role.SUBMITTER, to="run jobs now"):
    """Run a scheduled job now.

    It does not wait for the time of its submission or of its next attempt any more."""

    verb = Verb.RUN_NOW


class CancelJob(_JobCommand, route="POST /jobs/{job}/cancel", role=Role.SUBMITTER, to="cancel jobs"):
    """Cancel a job.

    What waits is cancelled at once; what runs is asked to end, then made to."""

    verb = Verb.CANCEL

    tree: bool = Field(default=False, description="Also cancel all jobs below it.")

    def is_long(self) -> bool:
        """Return whether the command may take long: only a cancellation of all jobs below does, since they may be
        many."""
        return self.tree


class HoldJob(_JobCommand, route="POST /jobs/{job}/hold", role=Role.SUBMITTER, to="hold jobs"):
    """Hold a job.

    Nothing of it starts until it is released; a stage that runs finishes."""

    verb = Verb.HOLD

    reason: Word = Field(
        description="The reason, which is shown to everybody who sees the job.",
        examples=["the receiver is being repaired"],
    )
    until: Moment | None = Field(default=None, description="When the hold ends by itself.")


class ReleaseJob(_JobCommand, route="POST /jobs/{job}/release", role=Role.SUBMITTER, to="release jobs"):
    """Release a job.

    Let a held job go on."""

    verb = Verb.RELEASE


class MoveJob(_JobCommand, route="POST /jobs/{job}/move", role=Role.OPERATOR, to="move jobs"):
    """Move a job into another queue.

    It stays there for later stages and subjobs."""

    verb = Verb.MOVE

    queue: Word = Field(description="The queue to which the job moves.")


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

    def uses_folders(self) -> bool:
        return True
