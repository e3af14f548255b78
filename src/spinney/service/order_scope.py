"""The scope of an order: which orders a caller may give, and for which jobs.

An operator without limits reaches all jobs, and the store is not queried. Everybody else reaches visible jobs only: the
job itself must be visible, and where a verb goes further down, all jobs below it. Callers who are no operators reach
their own jobs, by a few verbs. A job that is not visible does not exist in any message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spinney.model.access import Role
from spinney.model.errors import Forbidden, NoSuchJob
from spinney.model.jobs import Filter, Job
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.rights.allowed_verbs import OWN_JOB_VERBS
from spinney.model.settings.holds import Scope
from spinney.model.states import NOT_DELETED
from spinney.service.service import ASK, Service, limits

_WORDS: Mapping[Verb, str] = {Verb.PRIORITY: "give priorities to", Verb.RUN_NOW: "start scheduled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderScope:
    """The scope of one order of one caller."""

    service: Service
    """The caller and the store."""
    order: Order
    """The order whose scope it is."""

    @property
    def unlimited(self) -> bool:
        """Return whether the order reaches every job."""
        return self.service.rights.everywhere and self._operates

    def require(self) -> None:
        """Raise Forbidden unless the caller may give such an order at all."""
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
        """Raise Forbidden or NoSuchJob unless the caller may give the order for this job."""
        self.require()
        if self.unlimited:
            return
        job = self.service.store.job(job_id)
        self.service.require_within(job)
        refusal = self._refusal(job, named=True)
        if refusal is not None:
            raise Forbidden(refusal)

    def bounded(self, job_filter: Filter) -> Filter:
        """Return the filter, narrowed to the jobs that the order reaches. Raises Forbidden where it names the jobs of
        another submitter."""
        job_filter = self.service.within(job_filter)
        if self._operates:
            return job_filter
        if job_filter.submitter not in (None, self.service.by):
            raise Forbidden(
                f"{self.service.by} is a submitter and may not {self.order.verb} the jobs of "
                f"{job_filter.submitter}: that takes an operator; {ASK}"
            )
        return replace(job_filter, submitter=self.service.by)

    def sift(self, job_ids: Sequence[int], *, named: bool = True) -> tuple[Sequence[int], Mapping[int, str]]:
        """Return which of the jobs the order reaches, and by job id why it does not reach the others.

        ``named``: the caller named the jobs by their ids. Otherwise a filter from ``bounded`` has matched them, and
        that filter also bounds the subjobs that a retry runs instead of a job."""
        if self.unlimited or not (named or self._covers_below or self._asks_for_holds):
            return job_ids, {}
        visible = Filter(ids=tuple(job_ids), within=self.service.rights.within)
        jobs = {job.id: job for job in self.service.store.jobs(visible, limit=len(job_ids))}
        refused: dict[int, str] = {}
        for job_id in job_ids:
            job = jobs.get(job_id)
            refusal = str(NoSuchJob(job_id)) if job is None else self._refusal(job, named=named)
            if refusal is not None:
                refused[job_id] = refusal
        return [job_id for job_id in job_ids if job_id not in refused], refused

    def whole_tree(self, root_id: int) -> bool:
        """Return whether the order reaches all jobs of a tree."""
        beyond = Filter(root_id=root_id, beyond=self.service.rights.within, states=NOT_DELETED)
        return self.unlimited or self.service.store.job_lists.count(beyond, most=1) == 0

    def beyond(self, job: Job) -> str:
        """Return why the order does not reach a job whose tree has jobs beyond the caller's limits."""
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
        """Return why the order does not reach a visible job; None: it does."""
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
        """Return whether the order retries failed subjobs instead of this job."""
        retry = self.order.verb is Verb.RETRY and not self.service.rights.everywhere
        return retry and bool(self.service.store.bulk.failed_children(job.id, limit=1))

    def _held_by_another(self, job: Job) -> str | None:
        holds = self.service.store.holds.covering(job.id)
        return next(
            (hold.by for hold in holds if hold.scope is Scope.JOB and hold.by != self.service.by), None
        )


def lies_beyond(service: Service, job: Job) -> bool:
    """Return whether a job below this one is not visible to the caller."""
    if service.rights.everywhere:
        return False
    beyond = Filter(below=job.lineage, beyond=service.rights.within, states=NOT_DELETED)
    return service.store.job_lists.count(beyond, most=1) > 0


def require_queue_within(service: Service, queue: str, action: str) -> None:
    """Raise Forbidden unless the caller may put jobs into this queue. ``action``: ``submit into``."""
    allowed = service.rights.within.queues
    if allowed is not None and queue not in allowed:
        raise Forbidden(
            f"{service.by} is limited to {limits(service.rights)} and may not {action} queue {queue!r}; {ASK}"
        )


def require_priority(service: Service, priority: int) -> None:
    """Raise Forbidden unless the caller may give this priority."""
    allowed = service.rights.priorities
    if allowed is not None and not service.rights.gives_priority(priority):
        raise Forbidden(
            f"{service.by} may give priorities {allowed[0]} to {allowed[1]}, not {priority}; give one of these, "
            f"or {ASK}"
        )
