"""What people ask of the monitor beside reading its tables: start checks, see what runs, stop it.

Each function works on a ``Control``, in the name and with the rights of its caller. Commands, pages, routes and the
line protocol all come through here, so that they name sequences and count checks in the same way. Pages and routes,
whose callers may have limits, read by ``read_unlimited``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from spinney.apps.monitor import inventory
from spinney.apps.monitor.database import database
from spinney.apps.monitor.sequences import CHECK_TYPE, TYPE, Selection, params
from spinney.errors import DuplicateKey, Refused, StoreUnavailable, UsageError
from spinney.jobs import LEASED, OPEN, Filter, Job, Options
from spinney.operations import CancelJob, Control, Role, all_jobs
from spinney.tables import TablesUnusable

if TYPE_CHECKING:
    from spinney.routes import RequestContext

T = TypeVar("T")

LISTED = 1000
"""The most sequences, or running checks, that are read at once; a monitor rarely has more."""
OF_ONE_NAME = 22
"""The most open sequences of one entity, or of no entity, as in the SNIG services monitor."""
_KEY = "monitor:"
"""The beginning of the unique keys of sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceStatus:
    """A sequence that has not ended."""

    job_id: int
    sequence_id: str
    """The name that it has as long as it is open: ``seq`` and the number of its entity, or 000; behind it ``-1`` to
    ``-21`` where that name was in use."""
    name: str
    eid: int | None
    """The entity whose services it checks; None: it is another selection."""
    running: int
    """How many of its checks are claimed or run."""
    completed: int
    """How many of its checks have ended, however."""
    total: int
    """How many checks it has; before they are made, how many services it selects."""

    @property
    def is_pending(self) -> bool:
        """Return whether all its checks have been begun, and some still run."""
        return self.running > 0 and self.running + self.completed == self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCheck:
    """A check that runs now: one service, and the task that is at work."""

    job_id: int
    sequence: int
    """The job of its sequence."""
    gid: int
    task: str
    """The stage at which it is, which has the task's name; empty: it is at none."""
    since_us: int
    """When its task began."""
    is_stopping: bool
    """Whether it was cancelled, and ends after its task."""


def require_unlimited(control: Control) -> None:
    """Raise Forbidden for people whose rights are limited: services belong to no collection and to no queue."""
    control.require_everywhere(Role.VIEWER, "use the monitor")


async def read_unlimited(context: "RequestContext", read: Callable[[Control], T]) -> T:
    """Run a function on the store in a thread, and return its value. Raises Forbidden for limited rights, and
    StoreUnavailable where the monitor's tables cannot be used."""

    def unlimited(control: Control) -> T:
        require_unlimited(control)
        return read(control)

    try:
        return await context.run(unlimited)
    except TablesUnusable as error:
        raise StoreUnavailable(str(error)) from error


def start(control: Control, selection: Selection, name: str | None = None) -> int:
    """Start a sequence, and return the number of its job. ``name``: what people see; None: what it selects. The names
    of open sequences are unique keys in the store, so two that are started at once get different ones. Raises Refused
    when ``OF_ONE_NAME`` sequences of the same entity, or of none, are open, and UsageError for services and entities
    that do not exist."""
    name = _name(selection) if name is None else name
    eid = selection.eid or "000"
    for number in range(OF_ONE_NAME):
        key = f"{_KEY}seq{eid}{f'-{number}' if number else ''}"
        try:
            return control.submit(TYPE, [params(name, selection)], Options(key=key), internal=True).ids[0]
        except DuplicateKey:
            continue
    raise Refused(f"Too many sequences for the same eid {eid}")


def sequences(control: Control) -> list[SequenceStatus]:
    """Return the sequences that have not ended, the oldest first, at most ``LISTED``."""
    jobs = control.queries.jobs(Filter(type=TYPE, states=OPEN), limit=LISTED)
    below = control.queries.below([job.id for job in jobs])
    return [_status(job, below[job.id].states) if job.id in below else _beginning(job) for job in jobs]


def running(control: Control) -> list[RunningCheck]:
    """Return the checks at work, at most ``LISTED``: by sequence, and within one in the order in which their
    tasks began."""
    jobs = control.queries.jobs(Filter(type=CHECK_TYPE, states=tuple(LEASED)), limit=LISTED)
    checks = [
        RunningCheck(
            job_id=job.id,
            sequence=job.root_id,
            gid=job.params["gid"],
            task=job.stage or "",
            since_us=max((a.started_us for a in control.queries.attempts(job.id)), default=job.created_us),
            is_stopping=job.cancelling,
        )
        for job in jobs
    ]
    return sorted(checks, key=lambda check: (check.sequence, check.since_us))


def stop(control: Control, sequences: Sequence[int] | None = None) -> int:
    """Cancel these sequences, or all for None, and return how many there were that had not ended. Checks that
    have not begun are cancelled at once; those at work end after the task that they are at, whose result is
    stored."""
    jobs = all_jobs(control.queries, Filter(type=TYPE, states=OPEN))
    return sum(_cancel(control, job.id) for job in jobs if sequences is None or job.id in sequences)


def stop_service(control: Control, gid: int) -> int:
    """Cancel the checks of one service that have not ended, in whatever sequence they are, and return how
    many there were. The store has no index of services, so all open checks are read."""
    checks = all_jobs(control.queries, Filter(type=CHECK_TYPE, states=OPEN))
    return sum(_cancel(control, job.id) for job in checks if job.params["gid"] == gid)


def _name(selection: Selection) -> str:
    """Return the name of a sequence for people. Raises UsageError for services and entities that do not
    exist: a sequence would check nothing, and complete."""
    if selection.eid is not None:
        entity = inventory.entities.get(database(), selection.eid)
        if entity is None:
            raise UsageError(f"there is no entity {selection.eid}; 'spinney monitor entities' lists them")
        return entity.description
    if selection.gids:
        services = selection.services()
        if len(services) < len(set(selection.gids)):
            missing = set(selection.gids) - {service.gid for service in services}
            raise UsageError(f"there is no service {min(missing)}; 'spinney monitor services' lists them")
        only = services[0]
        return (only.description or only.uri) if len(services) == 1 else f"{len(services)} services"
    if selection.description is not None:
        return f"Services like {selection.description}"
    if selection.unchecked_s is not None:
        return f"Services not checked for {selection.unchecked_s / 3600:g} hours"
    return "Services with errors" if selection.state else "All services"


def _cancel(control: Control, job_id: int) -> int:
    """Cancel a job with all below it; return 1, or 0 where it had ended."""
    try:
        control.do(CancelJob(job=job_id, tree=True, reason="stopped through the monitor"))
    except Refused:  # it has ended meanwhile
        return 0
    return 1


def _beginning(job: Job) -> SequenceStatus:
    """Return the status of a sequence without checks yet: as many as it selects services are to come, so that nobody
    takes it for one whose checks have all completed."""
    selected = Selection.model_validate(job.params["selection"])
    return replace(_status(job, {}), total=len(selected.services()))


def _status(job: Job, states: Any) -> SequenceStatus:
    """Return the status of a sequence. ``states``: how many jobs below it are in each state."""
    counts: dict[str, int] = {str(state): number for state, number in states.items()}
    at_work = sum(counts.get(state, 0) for state in LEASED)
    still_open = sum(counts.get(state, 0) for state in OPEN)
    total = sum(counts.values())
    return SequenceStatus(
        job_id=job.id,
        sequence_id=(job.key or f"{_KEY}seq-job-{job.id}").removeprefix(_KEY),
        name=job.params["name"],
        eid=job.params["selection"].get("eid"),
        running=at_work,
        completed=total - still_open,
        total=total,
    )
