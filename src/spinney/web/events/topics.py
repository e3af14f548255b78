"""The topics that can be watched, and how the state of each is read.

A state is small JSON: what pages need to know that they must read again, and what programs need to follow. It is read
by the same queries as everything else, with the rights of the watcher.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from spinney.commands.control import Control
from spinney.model.errors import NoSuchJob, UsageError
from spinney.model.jobs import Filter, job_number
from spinney.model.operators.stats import Stats
from spinney.model.values.hints import did_you_mean, listed
from spinney.model.values.times import now_us
from spinney.web.pages.filters import WATCHED, parse_filters

State_ = Any
"""A JSON value."""
Look = Callable[[Control], State_]

LISTED = 50
"""How many jobs of a list are looked at: a page."""
TOPICS_MAX = 30
"""The most topics that one stream watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Something whose state can be watched, with the query that reads the state."""

    name: str
    look: Look
    """Reads the state with the rights of a watcher; it is JSON."""
    from_stats: Callable[[Stats], State_] | None = None
    """A function that makes the state from the statistics that all share. None: ``look`` reads it."""


def topic(name: str) -> Topic:
    """Return the topic of this name. Whether its job exists, or the caller may see it, is found when it is
    read. Raises UsageError, which lists the topics, for an unknown name, and for a filter or number that
    cannot be."""
    kind, colon, rest = name.partition(":")
    if not colon and kind in _PLAIN:
        return Topic(name=name, look=_PLAIN[kind], from_stats=_of_stats if kind == "overview" else None)
    if colon and kind in ("job", "tree"):
        return Topic(name=name, look=_of_job(kind, _number(rest)))
    if colon and kind == "jobs":
        job_filter = _filter(rest)
        return Topic(name=name, look=lambda control: _jobs(control, job_filter))
    examples = [*_PLAIN, "job:17", "tree:17", "jobs:state=failed&type=…"]
    raise UsageError(
        f"there is no topic {name!r}{did_you_mean(kind, _PLAIN)}; use one of: {listed(examples)}"
    )


def _of_job(kind: str, job_id: int) -> Look:
    """Return the query of a topic ``job:N`` or ``tree:N``. A job that is gone or not visible has the state null, so
    that the stream goes on."""

    def job(control: Control) -> State_:
        return asdict(control.queries.job(job_id))

    def tree(control: Control) -> State_:
        job_ = control.queries.job(job_id)
        below = Filter(root_id=job_.root_id, below=job_.lineage)
        counts = {str(state): n for state, n in control.queries.counts(below).items() if n}
        return {"id": job_id, "state": job_.state, "stage": job_.stage, "counts": counts}

    look = job if kind == "job" else tree

    def or_gone(control: Control) -> State_:
        try:
            return look(control)
        except NoSuchJob:
            return {"id": job_id, "state": None}  # deleted for good, or out of sight: the stream goes on

    return or_gone


def _jobs(control: Control, job_filter: Filter) -> State_:
    """Return the newest jobs that fit, with what a list shows of each."""
    jobs = control.queries.jobs(job_filter, limit=LISTED, newest=True)
    return [
        {"id": j.id, "state": j.state, "stage": j.stage, "progress": j.progress, "message": j.message}
        for j in jobs
    ]


def _of_stats(stats: Stats) -> State_:
    """Return the figures of the overview, from statistics: states, and short rows for queues and nodes."""
    return {
        "states": {str(state): n for state, n in stats.states.items() if n},
        "rate": _rounded(stats.rate),
        "queues": {q.queue: [q.pending, q.running, q.failed, _rounded(q.rate)] for q in stats.queues},
        "nodes": {n.node: [n.state, n.running, n.slots] for n in stats.nodes},
    }


def _rounded(rate: float | None) -> float | None:
    """Return a rate with one decimal; None: it is not known within the limits of the caller."""
    return None if rate is None else round(rate, 1)


def _nodes(control: Control) -> State_:
    return [
        {"node": n.node, "state": n.state, "slots": n.slots, "used": n.used, "trouble": n.trouble}
        for n in control.queries.nodes()
    ]


def _failures(control: Control) -> State_:
    groups = control.queries.failures(limit=LISTED)
    return {"jobs": groups.jobs, "groups": {g.fingerprint: g.jobs for g in groups.items}}


_PLAIN: Mapping[str, Look] = MappingProxyType(
    {
        "overview": lambda control: _of_stats(control.queries.stats()),
        "batches": lambda control: _jobs(control, Filter(roots_only=True)),
        "jobs": lambda control: _jobs(control, Filter()),
        "queues": lambda control: [asdict(queue) for queue in control.queries.queues()],
        "nodes": _nodes,
        "holds": lambda control: [asdict(hold) for hold in control.queries.holds()],
        "locks": lambda control: [asdict(lock) for lock in control.queries.locks(limit=LISTED)],
        "schedules": lambda control: [
            {"name": s.name, "paused": s.paused} for s in control.queries.schedules()
        ],
        "failures": _failures,
    }
)


def _number(text: str) -> int:
    """Return the number of a job. Raises UsageError."""
    number = job_number(text)
    if number is None:
        raise UsageError(f"{text[:40]!r} is no job's number; write the topic as job:17")
    return number


def _filter(text: str) -> Filter:
    """Return the filter of a topic's query string, whose names are those of the list of jobs. Raises UsageError."""
    pairs = parse_qsl(text, keep_blank_values=True)
    for name, value in pairs:
        if name not in WATCHED:
            raise UsageError(
                f"a list of jobs cannot be watched by {name[:40]!r}; use one of: {listed(WATCHED)}"
            )
        if not value.strip():
            raise UsageError(f"the filter {name!r} has no value; give one, or leave the filter out")
    filters = parse_filters(pairs, now_us())
    if filters.errors:
        raise UsageError(next(iter(filters.errors.values())))
    return filters.job_filter
