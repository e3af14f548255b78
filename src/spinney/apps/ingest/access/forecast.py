"""Estimates when a package will be ready: from the wait for a slot, the requests before it, and the measured
rate.

The estimate is for people who decide whether to wait. It reads a bounded number of jobs, and is None rather
than wrong where the job waits for somebody's action, such as a hold.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from spinney.apps.ingest.access.packages import Package
from spinney.apps.ingest.access.tickets import TYPE, order_of
from spinney.jobs import LEASED, Filter, Job, State

if TYPE_CHECKING:
    from spinney.operations import Store

EXAMINED = 1000
"""How many requests of a queue are examined; those behind them count with the average size of these."""
MEASURED = 10
"""How many of the last packages the rate is measured with."""
LEAST_S = 0.05
"""Packages that took less time do not measure a rate, but the overhead at their beginning and end."""
RUNNING = 100
"""How many attempts are examined to estimate when a slot will be free."""
_SOON = frozenset(
    {
        "claimed",
        "running",
        "next",
        "turn",
        "priority",
        "share",
        "slots",
        "queue limit",
        "scheduled",
        "retry",
        "lock",
    }
)
"""The causes (``Explanation.cause``) for which a job waits that will start without anybody's action."""
_OPEN = (State.PENDING, State.SCHEDULED, State.WAITING, State.CLAIMED, State.RUNNING)


def anticipated(store: "Store", job: Job, bytes_s: float, now: datetime) -> datetime | None:
    """Return when the package of an open job will be ready; None: unknown, as when no node serves its queue.
    ``bytes_s``: the assumed rate until packages have been made."""
    now_us = round(now.timestamp() * 1e6)
    why = store.explainer.explain(job.id, now_us=now_us)
    if why.cause not in _SOON or (why.cause == "queue limit" and not why.facts.get("limit")):
        return None
    starts_us = max(now_us, why.start_us or 0)
    slot_s = _slot_s(store, job, now_us) if why.cause == "slots" else 0.0
    before, running = _before(store, job)
    rate = measured(_last_packages(store)) or bytes_s
    rests_s = slot_s + (starts_us - now_us) / 1e6
    return now + timedelta(seconds=rests_s + wait_s(_remaining_bytes(job), before, running, rate))


def wait_s(own_bytes: float, before_bytes: float, at_once: int, bytes_s: float) -> float:
    """Return the seconds until a package of ``own_bytes`` is made, behind others of ``before_bytes`` in all, when
    ``at_once`` are made at a time, each at ``bytes_s`` bytes a second."""
    return before_bytes / (bytes_s * max(at_once, 1)) + own_bytes / bytes_s


def rest_s(elapsed_s: float, progress: float | None) -> float:
    """Return how long a running attempt will continue: by its progress, else as long again as it has run. ``progress``:
    a fraction of 1; None or 0: not known. In seconds."""
    return elapsed_s * (1 - progress) / progress if progress else elapsed_s


def measured(packages: Iterable[Package]) -> float | None:
    """Return the median rate in bytes a second; None where no package took long enough to measure."""
    from statistics import median  # slow to import, and rarely needed

    rates = [p.content_bytes / p.seconds for p in packages if p.seconds >= LEAST_S and p.content_bytes]
    return median(rates) if rates else None


def _slot_s(store: "Store", job: Job, now_us: int) -> float:
    """Return in how many seconds the first of the occupied slots will be free."""
    serving = set(store.queue_admin.get(job.queue).nodes)
    busy = store.jobs(Filter(states=(State.RUNNING,)), limit=RUNNING)
    return min(
        (
            rest_s(max(0, now_us - last.started_us) / 1e6, other.progress)
            for other in busy
            if other.node in serving
            for last in store.attempts(other.id)[-1:]
        ),
        default=0.0,
    )


def _before(store: "Store", job: Job) -> tuple[float, int]:
    """Return the bytes of the requests before this job, and how many requests of its queue are running.

    At most ``EXAMINED`` requests are read; those behind them are assumed to have the average size of these.
    """
    filter_ = Filter(type=TYPE, queue=job.queue, states=_OPEN)
    jobs = store.jobs(filter_, limit=EXAMINED)
    others = [other for other in jobs if other.id != job.id and _goes_first(other, job)]
    running = sum(other.state in LEASED for other in jobs)
    size = sum(map(_remaining_bytes, others))
    if len(jobs) == EXAMINED and others and jobs[-1].id < job.id:
        rest = max(store.counts(filter_).get(State.PENDING, 0) - EXAMINED, 0)
        size += rest * size / len(others)
    return size, running


def _goes_first(other: Job, job: Job) -> bool:
    """Return whether another request is served before this one: it runs, or has the better place in the queue."""
    return other.state in LEASED or (other.priority, other.id) < (job.priority, job.id)


def _remaining_bytes(job: Job) -> float:
    return order_of(job).size_bytes * (1 - (job.progress or 0.0))


def _last_packages(store: "Store") -> Sequence[Package]:
    """Return the packages that were made last, with the time that each took."""
    jobs = store.jobs(Filter(type=TYPE, states=(State.COMPLETED,)), limit=MEASURED, newest=True)
    values = (store.results(job.id).get("packing") for job in jobs)
    return [Package.model_validate(value) for value in values if value]
