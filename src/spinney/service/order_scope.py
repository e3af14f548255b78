"""Whom a verb of somebody reaches: which orders he may give, and to which jobs.

An operator without limits reaches all, and nothing is asked of the store. Everybody else reaches what is in sight:
the job itself, and where a verb goes further down, all below it. Who is no operator reaches his own jobs, by a few
verbs. What is out of sight is not there, in every sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spinney.model.access import Role
from spinney.model.errors import Forbidden, NoSuchJob
from spinney.model.jobs import Filter, Job
from spinney.model.rights.allowed_verbs import OWN_JOB_VERBS
from spinney.model.rights.operators import Order, Verb
from spinney.model.settings.holds import Scope
from spinney.model.states import State
from spinney.service.service import ASK, Service, limits

_THERE = tuple(state for state in State if state is not State.DELETED)
_WORDS: Mapping[Verb, str] = {Verb.PRIORITY: "give priorities to"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderScope:
    """Of one order, given by one person."""

    service: Service
    order: Order

    @property
    def unlimited(self) -> bool:
        """Whether it reaches every job there is."""
        return self.service.rights.everywhere and self._operates

    def require(self) -> None:
        """Raise Forbidden unless such an order may be given at all."""
        order, service = self.order, self.service
        own = order.verb in OWN_JOB_VERBS and not order.and_after
        service.require(
            Role.SUBMITTER if own else Role.OPERATOR, f"{_WORDS.get(order.verb, order.verb)} jobs"
        )
        if order.queue is not None:
            require_queue_within(service, order.queue, f"{order.verb} jobs into")
        if order.priority is not None:
            require_priority(service, order.priority)

    def require_job(self, job_id: int) -> None:
        """Raise Forbidden, NoSuchJob unless the order may be given for this job."""
        self.require()
        if self.unlimited:
            return
        job = self.service.store.job(job_id)
        self.service.require_within(job)
        refusal = self._refusal(job, named=True)
        if refusal is not None:
            raise Forbidden(refusal)

    def bounded(self, which: Filter) -> Filter:
        """The filter, no wider than the reach. Raises Forbidden where it means the jobs of somebody else."""
        rights = self.service.rights
        if not rights.everywhere:
            asked = which.within
            which = replace(which, within=rights.within if asked is None else asked.narrowed(rights.within))
        if self._operates:
            return which
        if which.submitter not in (None, self.service.by):
            raise Forbidden(
                f"{self.service.by} is a submitter and may not {self.order.verb} the jobs of {which.submitter}: that "
                f"takes an operator; {ASK}"
            )
        return replace(which, submitter=self.service.by)

    def sift(self, job_ids: Sequence[int], *, named: bool = True) -> tuple[Sequence[int], Mapping[int, str]]:
        """Of these jobs those that may be reached, and why not the others.

        ``named``: by their numbers. Else a filter that was ``bounded`` has found them, and of a retry what stands in
        the place of another is bounded, too.
        """
        if self.unlimited or not (named or self._covers_below or self._asks_for_holds):
            return job_ids, {}
        there = Filter(ids=tuple(job_ids), within=self.service.rights.within)
        jobs = {job.id: job for job in self.service.store.jobs(there, limit=len(job_ids))}
        refused: dict[int, str] = {}
        for job_id in job_ids:
            job = jobs.get(job_id)
            refusal = str(NoSuchJob(job_id)) if job is None else self._refusal(job, named=named)
            if refusal is not None:
                refused[job_id] = refusal
        return [job_id for job_id in job_ids if job_id not in refused], refused

    def whole_tree(self, root_id: int) -> bool:
        """Whether it reaches all of a tree."""
        beyond = Filter(root_id=root_id, beyond=self.service.rights.within, states=_THERE)
        return self.unlimited or self.service.store.bulk.count(beyond, most=1) == 0

    def beyond(self, job: Job) -> str:
        """Why a job is not reached whose tree reaches further."""
        return (
            f"job {job.id} has others in its tree that lie beyond what {self.service.by} is limited to "
            f"({limits(self.service.rights)}), and to {self.order.verb} it would reach them; {ASK}"
        )

    @property
    def _operates(self) -> bool:
        return self.service.rights.permits(Role.OPERATOR)

    @property
    def _covers_below(self) -> bool:
        order = self.order
        below = order.verb in (Verb.DELETE, Verb.RERUN) or order.tree or order.stage is not None
        return below and not self.service.rights.everywhere

    @property
    def _asks_for_holds(self) -> bool:
        return self.order.verb is Verb.RELEASE and not self._operates

    def _refusal(self, job: Job, *, named: bool) -> str | None:
        """Why a job that is in sight is not reached."""
        service, verb = self.service, self.order.verb
        if not self._operates and job.submitter != service.by:
            return (
                f"job {job.id} was not submitted by {service.by}, who is a submitter and may {verb} no other's jobs: "
                f"that takes an operator; {ASK}"
            )
        if self._asks_for_holds and (other := self._held_by_another(job)) is not None:
            return (
                f"job {job.id} is held by {other}, and {service.by} is a submitter and may release no other's holds: "
                f"ask {other}, or an operator"
            )
        below = self._covers_below or (named and self._retries_below(job))
        return self.beyond(job) if below and lies_beyond(service, job) else None

    def _retries_below(self, job: Job) -> bool:
        """Whether others are retried in its place."""
        retry = self.order.verb is Verb.RETRY and not self.service.rights.everywhere
        return retry and bool(self.service.store.bulk.failed_children(job.id, limit=1))

    def _held_by_another(self, job: Job) -> str | None:
        holds = self.service.store.holds.covering(job.id)
        return next(
            (hold.by for hold in holds if hold.scope is Scope.JOB and hold.by != self.service.by), None
        )


def lies_beyond(service: Service, job: Job) -> bool:
    """Whether something below a job is out of sight."""
    if service.rights.everywhere:
        return False
    beyond = Filter(below=job.lineage, beyond=service.rights.within, states=_THERE)
    return service.store.bulk.count(beyond, most=1) > 0


def require_queue_within(service: Service, queue: str, what: str) -> None:
    """Raise Forbidden unless jobs may be put into this queue. ``what``: ``submit into``."""
    allowed = service.rights.within.queues
    if allowed is not None and queue not in allowed:
        raise Forbidden(
            f"{service.by} is limited to {limits(service.rights)} and may not {what} queue {queue!r}; {ASK}"
        )


def require_priority(service: Service, priority: int) -> None:
    """Raise Forbidden unless this priority may be given."""
    given = service.rights.priorities
    if given is not None and not service.rights.gives_priority(priority):
        raise Forbidden(
            f"{service.by} may give priorities {given[0]} to {given[1]}, not {priority}; give one of these, or {ASK}"
        )
