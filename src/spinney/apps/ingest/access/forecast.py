"""When a package will be there: by when a slot is free, what is read before it, and how fast the last were made."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from spinney.apps.ingest.access.packages import Package
from spinney.apps.ingest.access.tickets import TYPE, order_of
from spinney.jobs import LEASED, Filter, Job, State

if TYPE_CHECKING:
    from spinney.operations import Store

LOOKED_AT = 1000
"""Requests of a queue that are looked at; what stands behind them counts as much as they do on average."""
MEASURED = 10
"""Packages, the last ones, by which the rate is told."""
LEAST_S = 0.05
"""What took less says more of its beginning and end than of a rate."""
RUNNING = 100
"""Attempts by which it is told when a slot will be free."""
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
"""What keeps a job (``Explanation.cause``) that will start without anybody doing something."""
_OPEN = (State.PENDING, State.SCHEDULED, State.WAITING, State.CLAIMED, State.RUNNING)


def anticipated(store: "Store", job: Job, bytes_s: float, now: datetime) -> datetime | None:
    """When the package of an open job will be there; None: nobody can tell, as nobody serves its queue. ``bytes_s``:
    the rate until some have been made."""
    now_us = round(now.timestamp() * 1e6)
    why = store.explainer.explain(job.id, now_us=now_us)
    if why.cause not in _SOON or (why.cause == "queue limit" and not why.facts.get("limit")):
        return None
    starts_us = max(now_us, why.start_us or 0)
    slot_s = _slot_s(store, job, now_us) if why.cause == "slots" else 0.0
    before, running = _before(store, job)
    rate = measured(_made(store)) or bytes_s
    rests_s = slot_s + (starts_us - now_us) / 1e6
    return now + timedelta(seconds=rests_s + wait_s(_left(job), before, running, rate))


def wait_s(own_bytes: float, before_bytes: float, at_once: int, bytes_s: float) -> float:
    """``at_once``: how many of the queue are served at a time; each gets the whole rate."""
    return before_bytes / (bytes_s * max(at_once, 1)) + own_bytes / bytes_s


def rest_s(elapsed_s: float, progress: float | None) -> float:
    """How long an attempt goes on that has run so long: by its progress, else as long again."""
    return elapsed_s * (1 - progress) / progress if progress else elapsed_s


def measured(packages: Iterable[Package]) -> float | None:
    """Bytes a second; None where none is worth a measure."""
    from statistics import median  # slow to import, and rarely needed

    rates = [p.content_bytes / p.seconds for p in packages if p.seconds >= LEAST_S and p.content_bytes]
    return median(rates) if rates else None


def _slot_s(store: "Store", job: Job, now_us: int) -> float:
    """When the first of the slots that are taken will be free."""
    serving = set(store.queue_admin.of(job.queue).nodes)
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
