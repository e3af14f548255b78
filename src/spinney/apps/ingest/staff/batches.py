"""Batches and objects, found by what people call them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder
from spinney.apps.ingest.deposits.states import STOPPABLE, BatchState
from spinney.apps.ingest.deposits.states import shown as state_shown
from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.staff.service import BATCH, OBJECT, Service
from spinney.errors import Refused, UsageError
from spinney.jobs import JOB_ID_MAX, LEASED, ChildSummary, Filter, Job, State

_PAGE = 1000
_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
BID, JID = re.compile(f"bid-{_UUID}"), re.compile(f"jid-{_UUID}")
_KEPT = tuple(state for state in State if state is not State.DELETED)
_TO_COME = (State.PENDING, State.SCHEDULED, State.WAITING)
_NOTHING = ChildSummary(states={}, warnings=0)
_OPEN = (State.PENDING, State.SCHEDULED, State.CLAIMED, State.RUNNING, State.WAITING)
_STATES = {
    BatchState.COMPLETED: (State.COMPLETED,),
    BatchState.FAILED: (State.COMPLETED, State.FAILED, State.ORPHANED, State.CANCELLED),
    BatchState.HELD: (State.HELD, *STOPPABLE),
    BatchState.DELETED: (State.DELETED,),
}
"""In which states of their jobs batches can stand that are shown so; all others are open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch as of now."""

    job: Job
    order: BatchOrder
    state: BatchState
    told: int
    """Reports that have been told."""
    failed: int
    """Objects that had failed by the last of them."""
    objects: Mapping[str, int]
    """How many stand in each state."""
    warnings: int
    """Of it and its objects."""

    @property
    def running(self) -> int:
        """Objects that are at work."""
        return sum(self.objects.get(state, 0) for state in LEASED)

    @property
    def bid(self) -> str:
        return self.order.bid


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Which batches; what is None lets all through."""

    profile: str | None = None
    state: BatchState | None = None
    submitter: str | None = None
    collection: str | None = None


# --- batches ----------------------------------------------------------------------------------


def batch(service: Service, name: str) -> Batch:
    """By ``bid-…`` or the number of its job. Raises UsageError for what is neither, Refused and NoSuchJob when there is
    none."""
    job = (
        by_bid(service, name)
        if BID.fullmatch(name)
        else _numbered(service, name, "bid-… or its job's number")
    )
    if job is None:
        raise Refused(f"there is no batch {name}; 'spinney ingest batches' shows those there are")
    if job.type == OBJECT:
        bid = ObjectOrder.model_validate(job.params["order"]).bid
        raise Refused(
            f"job {job.id} is an object of the batch {bid}; name that, or look at it with 'ingest object'"
        )
    if job.type != BATCH:
        raise Refused(f"job {job.id} is a {job.type!r} job and no batch; 'spinney show {job.id}' shows it")
    return seen(service, job)


def by_bid(service: Service, bid: str) -> Job | None:
    """The job of a batch, by the key under which it was submitted for ever; one that was deleted has lost the key."""
    found = service.look.jobs(Filter(type=BATCH, key=bid), limit=1)
    if found:
        return found[0]
    deleted = _jobs(service, Filter(type=BATCH, states=(State.DELETED,)))
    return next((job for job in deleted if job.params["order"]["bid"] == bid), None)


def batches(service: Service, which: Listed, *, after: int = 0, page: int = _PAGE) -> Iterator[Batch]:
    """Those that fit, the newest first; ``after``: from behind this job on; ``page``: so many are looked at at a time.
    Deleted ones only where these are asked for."""
    states = _KEPT if which.state is None else _STATES.get(which.state, _OPEN)
    fits = Filter(type=BATCH, states=states, submitter=which.submitter, collection=which.collection)
    for jobs in _pages(service, fits, after=after, newest=True, limit=page):
        asked = [job for job in jobs if which.profile in (None, job.params["order"]["profile"])]
        yield from (found for found in _seen(service, asked) if which.state in (None, found.state))


def seen(service: Service, job: Job) -> Batch:
    """A batch by its job."""
    return next(_seen(service, [job]))


def _seen(service: Service, jobs: Sequence[Job]) -> Iterator[Batch]:
    """With one look at the objects of all of them."""
    below = service.look.below([job.id for job in jobs]) if jobs else {}
    holds = any(job.state in STOPPABLE for job in jobs) and bool(service.store.holds.all())
    for job in jobs:
        yield _one(service, job, below.get(job.id, _NOTHING), holds=holds)


def _one(service: Service, job: Job, below: ChildSummary, *, holds: bool) -> Batch:
    reported = service.store.results(job.id).get("reporting") or {}
    data = service.store.get_data(job.id)
    told, failed = data.get("told", 0), reported.get("failed", 0)
    stopped = job.state in STOPPABLE and (
        _all_held(below.states) or (holds and bool(service.store.holds.covering(job.id)))
    )
    return Batch(
        job=job,
        order=BatchOrder.model_validate(job.params["order"]),
        state=state_shown(
            job.state, job.stage, begun="begun" in data, reports=told, failed=failed, stopped=stopped
        ),
        told=told,
        failed=failed,
        objects=below.states,
        warnings=job.warnings + below.warnings,
    )


def _all_held(objects: Mapping[str, int]) -> bool:
    """Whether objects are held, and none but those that run is going to go on."""
    return bool(objects.get(State.HELD)) and not any(objects.get(state) for state in _TO_COME)


# --- objects ----------------------------------------------------------------------------------


def objects(
    service: Service,
    batch: Batch,
    *,
    states: Iterable[State] = (),
    stage: str | None = None,
    message: str | None = None,
    after: int = 0,
) -> Iterator[Job]:
    """The jobs of its objects, in their order; ``after``: from behind this one on."""
    fits = Filter(
        type=OBJECT, parent_id=batch.job.id, states=tuple(states) or _KEPT, stage=stage, message=message
    )
    return _jobs(service, fits, after=after)


def object_(service: Service, name: str) -> Job:
    """An object's job, by its number or ``jid-…`` (for which all objects are looked through, the newest first). Raises
    UsageError, Refused, NoSuchJob."""
    if JID.fullmatch(name):
        found = (
            job
            for job in _jobs(service, Filter(type=OBJECT), newest=True)
            if job.params["order"]["jid"] == name
        )
        job = next(found, None)
        if job is None:
            raise Refused(f"there is no object {name}; 'spinney ingest objects BATCH' shows those of a batch")
        return job
    job = _numbered(service, name, "jid-… or its job's number")
    if job.type != OBJECT:
        raise Refused(f"job {job.id} is a {job.type!r} job and no object; 'spinney show {job.id}' shows it")
    return job


def _numbered(service: Service, name: str, right: str) -> Job:
    # Counted first: Python refuses to read a number of thousands of digits.
    if not name.isdecimal() or len(name) > len(str(JOB_ID_MAX)) or not int(name):
        raise UsageError(f"'{shown(name[:80])}' names nothing here; write {right}")
    return service.look.job(int(name))


def _jobs(service: Service, which: Filter, *, after: int = 0, newest: bool = False) -> Iterator[Job]:
    for page in _pages(service, which, after=after, newest=newest, limit=_PAGE):
        yield from page


def _pages(service: Service, which: Filter, *, after: int, newest: bool, limit: int) -> Iterator[list[Job]]:
    while page := service.look.jobs(which, after=after, limit=limit, newest=newest):
        yield page
        after = page[-1].id
