"""Canaries: an operation runs on a few jobs first, and on more only while the share that fails stays below a limit.

After the first few, never more are open at a time than have come to rest before, so that a fault has been seen on as
many jobs as it can still harm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spinney.model.errors import UsageError
from spinney.model.jobs import Filter
from spinney.model.states import SETTLED, State
from spinney.model.values import durations

if TYPE_CHECKING:
    from spinney.store.parts import Store

AT_REST = (*sorted(SETTLED), State.HELD)
"""Nothing happens to such a job by itself."""
BAD = (State.FAILED, State.ORPHANED, State.HELD)
"""States that a canary counts as failed: a job that its stage holds needs a person, too."""
LOOK_S = 0.2
"""How many seconds pass between two looks at the jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """The settings of a canary: a few jobs of a bulk operation go first, and their failures decide whether the others
    follow. Raises UsageError for values that make no sense."""

    first: int
    """How many jobs go first."""
    stop_at: float
    """The share of failures, 0 to 1, below which the operation continues. No failure at all is always below it."""
    patience_s: float | None = None
    """How many seconds each check waits for jobs to come to rest; None: without limit."""

    def __post_init__(self) -> None:
        if self.first < 1:
            raise UsageError(f"a canary of {self.first} jobs shows nothing; take 1 or more")
        if not 0 <= self.stop_at <= 1:
            raise UsageError(f"the share of failures to stop at must be 0% to 100%, not {self.stop_at:.0%}")
        durations.in_seconds(self, "patience_s")
        if self.patience_s is not None and not self.patience_s > 0:
            raise UsageError(f"the patience of a canary must be more than 0 seconds, not {self.patience_s:g}")


class CanaryRun:
    """One run of an operation with a canary: it counts the jobs that were opened, and reads what became of them."""

    def __init__(
        self, canary: Canary, store: "Store", sleep: Callable[[float], None], clock: Callable[[], int]
    ) -> None:
        self.canary, self._store, self._sleep, self._clock = canary, store, sleep, clock
        self._open: set[int] = set()
        self.rested = 0
        self.bad = 0

    @property
    def begun(self) -> int:
        """Return how many jobs have been opened."""
        return len(self._open) + self.rested

    def room(self) -> int:
        """Return how many more jobs may be opened before the next check."""
        if self.begun < self.canary.first:
            return self.canary.first - self.begun
        return max(0, self.rested - len(self._open)) if self.rested >= self.canary.first else 0

    def add(self, job_ids: Sequence[int]) -> None:
        """Count these jobs as opened."""
        self._open.update(job_ids)

    def watch(self, on_canary_check: Callable[["CanaryRun"], None]) -> str | None:
        """Wait until more jobs may be opened, reading their states every ``LOOK_S`` seconds. Returns None then, or the
        sentence that says why no more will be opened. ``on_canary_check`` is called after each look; what it raises
        ends the wait."""
        patience_s = self.canary.patience_s
        give_up = None if patience_s is None else self._clock() + round(patience_s * 1e6)
        while True:
            self._look()
            on_canary_check(self)
            if self._too_many():
                return f"{self._progress()}, and it goes on only below {100 * self.canary.stop_at:.3g}%"
            if self.room() > 0:
                return None
            if give_up is not None and self._clock() >= give_up:
                return f"{self._progress()}, and after {patience_s:g} s {len(self._open):,} are still open"
            self._sleep(LOOK_S)

    def _look(self) -> None:
        if not self._open:
            return
        job_ids = tuple(sorted(self._open))
        find = self._store.job_lists.find
        rested = find(Filter(ids=job_ids, states=AT_REST), limit=len(job_ids))
        self.bad += len(find(Filter(ids=tuple(rested), states=BAD), limit=len(job_ids)))
        self._open.difference_update(rested)
        self.rested += len(rested)

    def _too_many(self) -> bool:
        """Return whether too many have failed. Failures count against all of the first few jobs, finished or not, so
        that a share of failures that the others cannot lower is seen at once."""
        whole = max(self.rested, min(self.canary.first, self.begun))
        return self.bad > 0 and self.bad / whole >= self.canary.stop_at

    def _progress(self) -> str:
        if not self.rested:
            return "none has come to rest"
        return f"{self.bad:,} of the first {self.rested:,} that came to rest failed or are held"
