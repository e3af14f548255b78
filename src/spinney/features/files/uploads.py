"""Jobs that are submitted with files, and the right to put files into a job's folder.

A job with files is accepted under a hold of its own, in one transaction; its files are put into its folder; the hold
is released. So whatever crashes in between, no job starts with half of its files: it stays held with a reason, and the
same request with the same idempotency key continues. Without a key an operator sees the hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spinney.define.job.options import Options
from spinney.model.access import Role
from spinney.model.errors import Forbidden, Refused
from spinney.model.jobs import Job
from spinney.model.settings.holds import Scope
from spinney.model.states import LEASED, State
from spinney.model.types import INTERNAL
from spinney.service.service import ASK, Service
from spinney.service.submitter import Submitter
from spinney.store.contract import SubmissionKey

REASON = "its files are not all here; send the same request again with its Idempotency-Key, or cancel it"
"""The reason of the hold, by which a repeated request recognizes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpload:
    """A job that waits for its files."""

    job_id: int
    holds: Sequence[int]
    """The holds that keep it waiting; none: it has its files already."""
    repeated: bool
    """Whether the job had been submitted before, with the same key."""


class Uploads(Service):
    """Accepts jobs with files. Every operation is durable when it returns."""

    def begin(
        self,
        type_: str | None,
        params: Mapping[str, Any],
        options: Options,
        *,
        once: SubmissionKey | None = None,
    ) -> PendingUpload:
        """Submit one job that does not start before ``finish``.

        With a key that was used before it returns the job of then, with the holds that still keep it. Raises
        what ``Submitter.submit`` raises.
        """
        done = self.part(Submitter).submit(type_, [params], options, once=once, under=self.actor(REASON))
        (job_id,) = done.ids
        return PendingUpload(job_id=job_id, holds=self._holds(job_id), repeated=done.repeated)

    def finish(self, begun: PendingUpload) -> None:
        """Release the job, whose files are in its folder now, and wake the nodes. Holds that an operator has
        released are skipped."""
        for hold_id in begun.holds:
            try:
                self.store.holds.lift(hold_id, self.actor("its files are here"), now_us=self.clock())
            except Refused:
                continue  # an operator has released it
        self.wake_nodes()

    def require_may_put(self, job_id: int) -> Job:
        """Return the job if the caller may put files into its folder now.

        An operator may, and so may the submitter, except for internal types, whose stages trust what they
        find there. Raises NoSuchJob, Forbidden, and Refused when the job is at work or deleted.
        """
        job = self.store.job(job_id)
        self.require_within(job)
        if not self.rights.permits(Role.OPERATOR):
            self.require(Role.SUBMITTER, "upload files")
            spec = self.store.types().get(job.type)
            if spec is not None and spec.submit == INTERNAL:
                self.require(Role.OPERATOR, f"put files into the folder of {job.type!r} jobs")
            if job.submitter != self.by:
                raise Forbidden(
                    f"job {job_id} was not submitted by {self.by}, who is a submitter and may put files into no "
                    f"other's folders: that takes an operator; {ASK}"
                )
        if job.state in LEASED:
            raise Refused(
                f"job {job_id} is running, and meanwhile only its stage changes its files; wait until it has ended"
            )
        if job.state is State.DELETED:
            raise Refused(f"job {job_id} is deleted, and has no folder any more; submit a new one")
        return job

    def _holds(self, job_id: int) -> Sequence[int]:
        """Return the holds by which uploads of this caller keep the job."""
        return [
            h.id
            for h in self.store.holds.covering(job_id)
            if (h.scope, h.name, h.reason, h.by) == (Scope.JOB, str(job_id), REASON, self.by)
        ]
