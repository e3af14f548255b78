"""Look up batches, objects and profiles by the names that people use.

A name is ``bid-…`` or ``jid-…``, or the number of the job. A bid is the key of the batch's job and found by
an index; a jid is only in the parameters of the object's job, so that objects are searched for it. Everything
is limited to what the person may see: other batches do not exist for them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.deposits.orders import BID, JID, BatchOrder, ObjectOrder
from spinney.apps.ingest.deposits.states import STOPPABLE, BatchState
from spinney.apps.ingest.deposits.states import shown as state_shown
from spinney.apps.ingest.verbs.service import BATCH, OBJECT, Service
from spinney.errors import Refused, UsageError, did_you_mean, listed
from spinney.files.paths import shown
from spinney.jobs import JOB_ID_MAX, LEASED, ChildSummary, Filter, Job, State
from spinney.operations import all_jobs

_PAGE = 1000
KEPT = tuple(state for state in State if state is not State.DELETED)
"""The states of jobs that are not deleted."""
_TO_COME = (State.PENDING, State.SCHEDULED, State.WAITING)
"""The states of objects that will run without anybody's action."""
_NOTHING = ChildSummary(states={}, warnings=0)
_OPEN = (State.PENDING, State.SCHEDULED, State.CLAIMED, State.RUNNING, State.WAITING)
_STATES = {
    BatchState.COMPLETED: (State.COMPLETED,),
    BatchState.FAILED: (State.COMPLETED, State.FAILED, State.ORPHANED, State.CANCELLED),
    BatchState.HELD: (State.HELD, *STOPPABLE),
    BatchState.DELETED: (State.DELETED,),
}
"""The possible states of the jobs of batches with a shown state; batches with other shown states are open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch with its job and how far its objects are, as of now."""

    job: Job
    order: BatchOrder
    state: BatchState
    reports: int
    """How many reports have been sent."""
    failed: int
    """How many objects had failed by the last report."""
    objects: Mapping[str, int]
    """The number of objects in each state."""
    warnings: int
    """The number of warnings of the batch and its objects."""

    @property
    def running(self) -> int:
        """The number of objects that are running."""
        return sum(self.objects.get(state, 0) for state in LEASED)

    @property
    def bid(self) -> str:
        """The name of the batch: ``bid-…``."""
        return self.order.bid


# --- batches ----------------------------------------------------------------------------------


def find_batch(service: Service, name: str) -> Batch:
    """Return a batch by ``bid-…`` or the number of its job. Raises UsageError for a name that is neither, Refused and
    NoSuchJob when there is no such batch."""
    job = (
        by_bid(service, name) if BID.fullmatch(name) else numbered(service, name, "bid-… or its job's number")
    )
    if job is None:
        raise Refused(f"there is no batch {name}; 'spinney ingest batches' lists them all")
    if job.type == OBJECT:
        bid = ObjectOrder.model_validate(job.params["order"]).bid
        raise Refused(
            f"job {job.id} is an object of the batch {bid}; name that, or look at it with 'ingest object'"
        )
    if job.type != BATCH:
        raise Refused(f"job {job.id} is a {job.type!r} job and no batch; 'spinney show {job.id}' shows it")
    return batch_of(service, job)


def by_bid(service: Service, bid: str) -> Job | None:
    """Return the job of a batch, by its permanent key, or by its parameters when it was deleted and lost the key."""
    jobs = service.look.jobs(Filter(type=BATCH, key=bid), limit=1)
    if jobs:
        return jobs[0]
    deleted = all_jobs(service.look, Filter(type=BATCH, states=(State.DELETED,)))
    return next((job for job in deleted if job.params["order"]["bid"] == bid), None)


def batches(
    service: Service,
    *,
    profile: str | None = None,
    state: BatchState | None = None,
    submitter: str | None = None,
    collection: str | None = None,
    after: int = 0,
    page: int = _PAGE,
) -> Iterator[Batch]:
    """Yield the batches that match, the newest first; a condition that is None matches all. ``after``: begin behind
    this job; ``page``: how many are read at a time. Deleted ones only where they are the state that is named."""
    states = KEPT if state is None else _STATES.get(state, _OPEN)
    job_filter = Filter(type=BATCH, states=states, submitter=submitter, collection=collection)
    while jobs := service.look.jobs(job_filter, after=after, limit=page, newest=True):
        after = jobs[-1].id
        matching = [job for job in jobs if profile in (None, job.params["order"]["profile"])]
        yield from (batch for batch in _batches_of(service, matching) if state in (None, batch.state))


def batch_of(service: Service, job: Job) -> Batch:
    """Return a batch by its job."""
    return next(_batches_of(service, [job]))


def _batches_of(service: Service, jobs: Sequence[Job]) -> Iterator[Batch]:
    """Yield the batches of these jobs, with one query for the objects of all of them."""
    below = service.look.below([job.id for job in jobs]) if jobs else {}
    holds = any(job.state in STOPPABLE for job in jobs) and bool(service.store.holds.all())
    for job in jobs:
        yield _load_batch(service, job, below.get(job.id, _NOTHING), holds=holds)


def _load_batch(service: Service, job: Job, below: ChildSummary, *, holds: bool) -> Batch:
    """Return a batch, with what its job has recorded of its reports. ``holds``: whether the store has any hold."""
    last_report = service.store.results(job.id).get("reporting") or {}
    data = service.store.get_data(job.id)
    reports, failed = data.get("sent", 0), last_report.get("failed", 0)
    stopped = job.state in STOPPABLE and (
        _all_held(below.states) or (holds and bool(service.store.holds.covering(job.id)))
    )
    begun = held_batches.BEGUN in data
    return Batch(
        job=job,
        order=BatchOrder.model_validate(job.params["order"]),
        state=state_shown(job.state, job.stage, begun=begun, reports=reports, failed=failed, stopped=stopped),
        reports=reports,
        failed=failed,
        objects=below.states,
        warnings=job.warnings + below.warnings,
    )


def _all_held(objects: Mapping[str, int]) -> bool:
    """Return whether objects are held, and no others are waiting to run."""
    return bool(objects.get(State.HELD)) and not any(objects.get(state) for state in _TO_COME)


# --- objects ----------------------------------------------------------------------------------


def find_object(service: Service, name: str) -> Job:
    """Return an object's job, by its number or ``jid-…`` (for which all objects are searched, the newest first). Raises
    UsageError, Refused, NoSuchJob."""
    if JID.fullmatch(name):
        for job in all_jobs(service.look, Filter(type=OBJECT), newest=True):
            if job.params["order"]["jid"] == name:
                return job
        raise Refused(f"there is no object {name}; 'spinney ingest objects BATCH' shows those of a batch")
    job = numbered(service, name, "jid-… or its job's number")
    if job.type != OBJECT:
        raise Refused(f"job {job.id} is a {job.type!r} job and no object; 'spinney show {job.id}' shows it")
    return job


def numbered(service: Service, name: str, form: str) -> Job:
    """Return a job by its number. Raises UsageError for text that is no number of a job."""
    # Counted first: Python refuses to read a number of thousands of digits.
    if not name.isdecimal() or len(name) > len(str(JOB_ID_MAX)) or not int(name):
        raise UsageError(f"'{shown(name[:80])}' is no name of a batch or object; write {form}")
    return service.look.job(int(name))


# --- profiles ---------------------------------------------------------------------------------


def visible_profiles(service: Service) -> Iterator[tuple[str, Profile | str]]:
    """Yield the names of the profiles, each with the profile, or with what is wrong with one that cannot be read: those
    of the collections that the person may see. People with limits see no unreadable profiles."""
    for name in profiles.names_of(service.settings):
        try:
            profile = profiles.load(service.settings, name)
        except UsageError as error:
            if service.collections is None:
                yield name, str(error)
        else:
            if service.sees(profile.collection):
                yield name, profile


def find_profile(service: Service, name: str) -> Profile:
    """Return the profile of that name, if the person may submit with it.

    Raises UsageError for another name; for a person with limits, profiles of other collections do not exist,
    so that the message lists only those of theirs.
    """
    if service.collections is None:
        return profiles.load(service.settings, name)
    by_name = {name: profile for name, profile in visible_profiles(service) if isinstance(profile, Profile)}
    if name not in by_name:
        raise UsageError(
            f"there is no profile {name!r}{did_you_mean(name, by_name)}; there are: {listed(by_name) or '(none)'}"
        )
    return by_name[name]
