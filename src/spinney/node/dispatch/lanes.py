"""The lanes of a node (stages of types): how each is run, and how long its attempts take.

Measured run times have two uses. The dispatcher gives a slot as many quick jobs as fill its look-ahead; and
the store, which gets them with each claim request, decides by them whether a free slot gets one job or a
list."""

from collections.abc import Iterable, Iterator, Mapping

from spinney.model.jobs import LaneRequest
from spinney.model.types import Isolation, StageSpec, TypeSpec

MIN_RUN_US = 10.0
"""The least run time that is assumed: dispatching and recording an attempt costs about as much."""

CHARS_A_US = 50
"""The cost of passing parameters from the store to the worker, which counts as run time: with a look-ahead of a tenth
of a second, a slot gets some megabytes, and not a gigabyte."""

_MEMORY = 4
"""The weight of the average, in attempts."""
_NEWS = 1.25
"""A run time is sent to the store again when it has changed by this factor."""


class Lane:
    """One lane. It is mutable: measured run times are added."""

    def __init__(self, spec: TypeSpec, stage: StageSpec) -> None:
        self.key = (spec.name, stage.name)
        self.stage = stage
        self.concurrent = stage.isolation in (Isolation.THREAD, Isolation.ASYNC)
        """Whether its attempts run beside others in the one worker that all slots share."""
        self.warm = stage.isolation in (Isolation.PROCESS, Isolation.PROGRAM)
        """Whether its attempts run in the warm worker of their slot."""
        self.orphan = spec.on_lost == "orphan"
        self.ahead = stage.isolation is Isolation.PROCESS and not stage.locks and not self.orphan
        """Whether its jobs may wait behind others in a worker."""
        self.run_us: float | None = None
        """The measured run time; None: no attempt has ended yet."""
        self.attempts, self.total_us = 0, 0
        """The measurements since the last ``learn``."""
        self.claim_request = LaneRequest(
            locks=tuple((lock.template, lock.until) for lock in stage.locks), warm=self.warm
        )

    def add_run_times(self, attempts: int, run_us: int, *, chars: int) -> None:
        """Add the run time of some attempts together, in microseconds; ``chars``: the length of their
        parameters, which counts as run time (``CHARS_A_US``). ``learn`` takes them into the average."""
        self.attempts += attempts
        self.total_us += run_us + chars // CHARS_A_US

    def learn(self) -> None:
        """Take the measurements since the last call into a moving average: the first ones count as they are,
        later ones the more the more attempts they are of.

        The claim request gets the new average only for lanes whose jobs may wait behind others, and only when
        it has changed by the factor ``_NEWS``."""
        n = self.attempts
        if not n:
            return
        mean = max(self.total_us / n, MIN_RUN_US)
        weight = 1.0 if self.run_us is None else n / (n + _MEMORY)
        self.run_us = mean if self.run_us is None else self.run_us + weight * (mean - self.run_us)
        self.attempts, self.total_us = 0, 0
        sent_us = self.claim_request.run_us
        if self.ahead and (sent_us is None or not sent_us / _NEWS <= self.run_us <= sent_us * _NEWS):
            self.claim_request = LaneRequest(
                run_us=self.run_us, locks=self.claim_request.locks, warm=self.warm
            )


class Lanes:
    """All lanes that this node serves, by (type, stage). External stages are not among them."""

    def __init__(self, types: Iterable[TypeSpec]) -> None:
        self._lanes = {
            (t.name, s.name): Lane(t, s)
            for t in types
            for s in t.stages
            if s.isolation is not Isolation.EXTERNAL
        }
        self.any_cold = any(not lane.warm for lane in self._lanes.values())
        """Whether some lane needs no warm worker."""
        self.any_orphan = any(lane.orphan for lane in self._lanes.values())

    def get(self, type_: str, stage: str) -> Lane | None:
        """Return a lane; None: this node does not serve it."""
        return self._lanes.get((type_, stage))

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    def claim_requests(self) -> Mapping[tuple[str, str], LaneRequest]:
        """Return how the node serves each lane now."""
        return {key: lane.claim_request for key, lane in self._lanes.items()}
