"""What people ask of the monitor beside reading its tables: start checks, see what runs, stop it.

Each function works on a ``Control``, in the name and with the rights of its caller."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spinney.apps.monitor.sequences import CHECK_TYPE, TYPE, Selection, params
from spinney.errors import Refused
from spinney.jobs import LEASED, SETTLED, Filter, Job, State
from spinney.operations import CancelJob, Control

OPEN = tuple(state for state in State if state not in SETTLED and state != State.DELETED)
LISTED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceStatus:
    """A sequence that has not ended."""

    job_id: int
    name: str
    eid: int | None
    """The entity whose services it checks; None: it is another selection."""
    running: int
    completed: int
    total: int

    @property
    def is_pending(self) -> bool:
        """Return whether all its checks have been begun, and some still run."""
        return self.running > 0 and self.running + self.completed == self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCheck:
    """A check at work."""

    job_id: int
    gid: int
    task: str
    since_us: int
    is_stopping: bool


def start(control: Control, name: str, selection: Selection) -> int:
    """Start a sequence, and return the number of its job."""
    return control.submit(TYPE, [params(name, selection)], internal=True).ids[0]


def sequences(control: Control) -> list[SequenceStatus]:
    """Return the sequences that have not ended, the oldest first."""
    jobs = control.queries.jobs(Filter(type=TYPE, states=OPEN), limit=LISTED)
    below = control.queries.below([job.id for job in jobs])
    return [_status(job, below[job.id].states if job.id in below else {}) for job in jobs]


def running(control: Control) -> list[RunningCheck]:
    """Return the checks at work, in the order in which they were made."""
    jobs = control.queries.jobs(Filter(type=CHECK_TYPE, states=tuple(LEASED)), limit=LISTED)
    return [
        RunningCheck(
            job_id=job.id,
            gid=job.params["gid"],
            task=job.stage or "",
            since_us=job.started_us or job.created_us,
            is_stopping=job.cancelling,
        )
        for job in jobs
    ]


def stop(control: Control, sequences: Sequence[int] | None = None) -> int:
    """Cancel these sequences, or all, and return how many there were. Checks at work end after the task that they are
    at, whose result is stored."""
    stopped, after = 0, 0
    while jobs := control.queries.jobs(Filter(type=TYPE, states=OPEN), after=after, limit=LISTED):
        stopped += sum(_cancel(control, job.id) for job in jobs if sequences is None or job.id in sequences)
        after = jobs[-1].id
    return stopped


def stop_service(control: Control, gid: int) -> int:
    """Cancel the checks of one service that have not ended, and return how many there were."""
    checks = control.queries.jobs(Filter(type=CHECK_TYPE, states=OPEN), limit=100_000)
    return sum(_cancel(control, job.id) for job in checks if job.params["gid"] == gid)


def _cancel(control: Control, job_id: int) -> int:
    try:
        control.do(CancelJob(job=job_id, tree=True, reason="stopped through the monitor"))
    except Refused:  # it has ended meanwhile
        return 0
    return 1


def _status(job: Job, states: Any) -> SequenceStatus:
    counts: dict[str, int] = {str(state): number for state, number in states.items()}
    at_work = sum(counts.get(state, 0) for state in LEASED)
    still_open = sum(counts.get(state, 0) for state in OPEN)
    total = sum(counts.values())
    return SequenceStatus(
        job_id=job.id,
        name=job.params["name"],
        eid=job.params["selection"].get("eid"),
        running=at_work,
        completed=total - still_open,
        total=total,
    )
