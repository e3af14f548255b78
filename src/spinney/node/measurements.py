"""What a node measures for its own ``/metrics`` (``services/metrics``): whole numbers that are added up while it works.

A node that exposes nothing has no ``NodeMeasurements``, and each place that would add to it makes one comparison for a
list of jobs. Types and stages are those that the application registers, so that the figures stay as few as they are."""

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from spinney.model.errors import StoreUnusable, store_error_kinds
from spinney.model.jobs import Record
from spinney.model.outcomes import Outcome
from spinney.model.types import Isolation, TypeSpec

Stage = tuple[str, str]
"""(type, stage)"""


def _microseconds(*seconds: float) -> tuple[int, ...]:
    return tuple(round(bound_s * 1e6) for bound_s in seconds)


JOB_BUCKETS_US = _microseconds(0.001, 0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 43_200)
"""Bounds for the times of attempts: from a millisecond to twelve hours."""
STORE_BUCKETS_US = _microseconds(0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
"""Bounds for exchanges and transactions: from a quarter of a millisecond to five seconds."""
SAMPLE = 100
"""How many attempts' waiting times are looked up at once."""


class TimeHistogram:
    """How many times were up to each bound. Times are whole microseconds."""

    __slots__ = ("bounds_us", "counts", "sum_us")

    def __init__(self, bounds_us: Sequence[int]) -> None:
        self.bounds_us = bounds_us
        self.counts = [0] * (len(bounds_us) + 1)
        """By bucket, not cumulative; the last is beyond all bounds."""
        self.sum_us = 0

    def add(self, time_us: int) -> None:
        """Add one time; a negative one, of clocks that were set back, counts as 0."""
        time_us = max(0, time_us)
        self.counts[bisect_left(self.bounds_us, time_us)] += 1
        self.sum_us += time_us


class NodeMeasurements:
    """The figures of one node since its start. All are written in the event loop, except those of ``transaction``, and
    read by the thread of a scrape."""

    def __init__(self) -> None:
        of_jobs, of_store = partial(TimeHistogram, JOB_BUCKETS_US), partial(TimeHistogram, STORE_BUCKETS_US)
        self.attempts: Counter[tuple[str, str, Outcome]] = Counter()
        """The attempts that ended, by type, stage and outcome."""
        self.run: defaultdict[Stage, TimeHistogram] = defaultdict(of_jobs)
        """How long attempts ran, of those that had begun."""
        self.wait: defaultdict[Stage, TimeHistogram] = defaultdict(of_jobs)
        """From when the stage could begin until it began, of a sample of the attempts."""
        self.exchanges: defaultdict[str, TimeHistogram] = defaultdict(of_store)
        """Exchanges with the store, by what was exchanged: ``claim``, ``flush`` or ``both``."""
        self.transactions: defaultdict[str, TimeHistogram] = defaultdict(of_store)
        """Transactions by phase: ``turn`` (until it is this writer's turn), ``statements``, ``commit``."""
        self._lock = threading.Lock()
        self.claimed = self.recorded = self.refused = 0
        """How many leases the store has granted, how many records it was sent, and how many of those it
        refused."""
        self.dead_nodes = 0
        """How many dead nodes this one has taken the jobs back from."""
        self.store_errors: Counter[str] = Counter(dict.fromkeys(store_error_kinds(), 0))
        """Calls of the store that failed, by the class of the error; each class is there from the start, with
        0."""
        self.sample: list[tuple[int, int]] = []
        """(job, start in us) of recorded attempts whose waiting time is to be looked up."""

    def expect(self, types: Iterable[TypeSpec]) -> None:
        """Begin to count the deaths of workers in each stage with 0, since Prometheus sees no increase where a counter
        begins with 1."""
        for spec in types:
            for stage in spec.stages:
                if stage.isolation is not Isolation.EXTERNAL:
                    self.attempts[spec.name, stage.name, Outcome.DIED] += 0

    def passed(self, stage: Stage, rows: Sequence[Sequence[int]]) -> None:
        """Add attempts that simply passed; ``rows`` have fence, start and end."""
        self.attempts[(*stage, Outcome.OK)] += len(rows)
        run = self.run[stage]
        for row in rows:
            run.add(row[2] - row[1])

    def ended(self, stage: Stage, record: Record) -> None:
        """Add an attempt that ended in any way. One that never started has no times."""
        self.attempts[(*stage, record.outcome)] += 1
        if record.started_us:
            self.run[stage].add(record.ended_us - record.started_us)

    def exchanged(
        self, took_s: float, *, records: Sequence[Record], refused: int, leases: int, claims: bool
    ) -> None:
        """Add an exchange of records for leases with the store. Some of the records become the sample, since the store
        has them now. ``claims``: it had a claim request."""
        room = max(0, SAMPLE - len(self.sample))
        self.sample += [(record.job_id, record.started_us) for record in records[:room] if record.started_us]
        self.recorded += len(records)
        self.refused += refused
        self.claimed += leases
        kind = "flush" if not claims else "both" if records else "claim"
        self.exchanges[kind].add(round(took_s * 1e6))

    def transaction(self, turn_s: float, statements_s: float, commit_s: float) -> None:
        """Add a transaction that was committed: the seconds until it was its turn, of its statements, and of its
        commit. Any thread that has a store may call it."""
        with self._lock:
            for phase, took_s in (("turn", turn_s), ("statements", statements_s), ("commit", commit_s)):
                self.transactions[phase].add(round(took_s * 1e6))

    def store_failed(self, error: StoreUnusable) -> None:
        """Add a call of the store that failed because of the database."""
        self.store_errors[type(error).__name__] += 1
