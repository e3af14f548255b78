"""When a package will be there: by what is to be read before it, and how fast the last ones were made."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from spinney.apps.ingest.access.packages import Package
from spinney.apps.ingest.access.tickets import TYPE, order_of
from spinney.model.jobs import Filter, Job
from spinney.model.states import LEASED, State

if TYPE_CHECKING:
    from spinney.stores.contract import Store

LOOKED_AT = 1000
"""Requests of a queue that are looked at; what stands behind them counts as much as they do on average."""
MEASURED = 10
"""Packages, the last ones, by which the rate is told."""
LEAST_S = 0.05
"""What took less says more of its beginning and end than of a rate."""
_OPEN = (State.PENDING, State.SCHEDULED, State.WAITING, State.CLAIMED, State.RUNNING)


def anticipated(store: "Store", job: Job, bytes_s: float, now: datetime) -> datetime:
    """When the package of an open job will be there. ``bytes_s``: the rate until some have been made."""
    before, running = _before(store, job)
    rate = measured(_made(store)) or bytes_s
    return now + timedelta(seconds=wait_s(_left(job), before, running, rate))


def wait_s(own_bytes: float, before_bytes: float, at_once: int, bytes_s: float) -> float:
    """``at_once``: how many of the queue are served at a time; each gets the whole rate."""
    return before_bytes / (bytes_s * max(at_once, 1)) + own_bytes / bytes_s


def measured(packages: Iterable[Package]) -> float | None:
    """Bytes a second; None where none is worth a measure."""
    from statistics import median  # slow to import, and rarely needed

    rates = [p.content_bytes / p.seconds for p in packages if p.seconds >= LEAST_S and p.content_bytes]
    return median(rates) if rates else None


def _before(store: "Store", job: Job) -> tuple[float, int]:
    """Bytes that are read before this job's turn, and how many of its queue are at work."""
    which = Filter(type=TYPE, queue=job.queue, states=_OPEN)
    found = store.jobs(which, limit=LOOKED_AT)
    others = [other for other in found if other.id != job.id and _goes_first(other, job)]
    running = sum(other.state in LEASED for other in found)
    size = sum(map(_left, others))
    if len(found) == LOOKED_AT and others and found[-1].id < job.id:
        rest = max(store.counts(which).get(State.PENDING, 0) - LOOKED_AT, 0)
        size += rest * size / len(others)
    return size, running


def _goes_first(other: Job, job: Job) -> bool:
    return other.state in LEASED or (other.priority, other.id) < (job.priority, job.id)


def _left(job: Job) -> float:
    return order_of(job).size_bytes * (1 - (job.progress or 0.0))


def _made(store: "Store") -> Sequence[Package]:
    done = store.jobs(Filter(type=TYPE, states=(State.COMPLETED,)), limit=MEASURED, newest=True)
    kept = (store.results(job.id).get("packing") for job in done)
    return [Package.model_validate(value) for value in kept if value]
