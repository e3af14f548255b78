"""What the node knows about each lane (a type's stage): how it is run, and how long it takes."""

from collections.abc import Iterable, Mapping

from spinney.model.jobs import LaneRequest
from spinney.model.types import Isolation, StageSpec, TypeSpec

MIN_RUN_US = 10.0
"""No attempt is taken to be shorter: handing it out and recording it costs about as much."""

CHARS_A_US = 50
"""What parameters cost on their way from the store to the worker counts as run time: a slot that is given a tenth of
a second ahead is given some megabytes then, and not a gigabyte."""

_MEMORY = 4
"""So many attempts of old weigh as much as the same number of new ones."""
_NEWS = 1.25
"""A run time is told to the store again when it has changed by this factor."""


class Lane:
    """One lane. Mutable: the recorder adds what it measured."""

    __slots__ = (
        "ahead",
        "attempts",
        "claim_request",
        "concurrent",
        "key",
        "orphan",
        "run_us",
        "stage",
        "total_us",
        "warm",
    )

    def __init__(self, spec: TypeSpec, stage: StageSpec) -> None:
        self.key = (spec.name, stage.name)
        self.stage = stage
        self.concurrent = stage.isolation in (Isolation.THREAD, Isolation.ASYNC)
        """It runs beside others in the one child that all slots share."""
        self.warm = stage.isolation in (Isolation.PROCESS, Isolation.PROGRAM)
        """It runs in the warm worker of its slot."""
        self.orphan = spec.on_lost == "orphan"
        self.ahead = stage.isolation is Isolation.PROCESS and not stage.locks and not self.orphan
        """Whether its jobs may wait in a worker behind others."""
        self.run_us: float | None = None
        """Measured run time; None: none has ended yet."""
        self.attempts, self.total_us = 0, 0
        """Measured since the last ``learn``."""
        self.claim_request = LaneRequest(
            locks=tuple((lock.template, lock.until) for lock in stage.locks), warm=self.warm
        )

    def add_run_times(self, attempts: int, run_us: int, *, chars: int) -> None:
        """So many attempts took so long together; ``chars``: of their parameters."""
        self.attempts += attempts
        self.total_us += run_us + chars // CHARS_A_US

    def learn(self) -> None:
        """Take what was measured since the last time into the average."""
        n = self.attempts
        if not n:
            return
        mean = max(self.total_us / n, MIN_RUN_US)
        weight = 1.0 if self.run_us is None else n / (n + _MEMORY)
        self.run_us = mean if self.run_us is None else self.run_us + weight * (mean - self.run_us)
        self.attempts, self.total_us = 0, 0
        told = self.claim_request.run_us
        if self.ahead and (told is None or not told / _NEWS <= self.run_us <= told * _NEWS):
            self.claim_request = LaneRequest(
                run_us=self.run_us, locks=self.claim_request.locks, warm=self.warm
            )


class Lanes:
    """All lanes that this node serves, by (type, stage). Those that external workers run are none of its business."""

    def __init__(self, types: Iterable[TypeSpec]) -> None:
        self._lanes = {
            (t.name, s.name): Lane(t, s)
            for t in types
            for s in t.stages
            if s.isolation is not Isolation.EXTERNAL
        }
        self._claim_requests: dict[tuple[str, str], LaneRequest] = {}
        self.any_cold = any(not lane.warm for lane in self._lanes.values())
        """Whether some lane needs no warm worker."""
        self.any_orphan = any(lane.orphan for lane in self._lanes.values())

    def get(self, type_: str, stage: str) -> Lane | None:
        return self._lanes.get((type_, stage))

    def lane(self, key: tuple[str, str]) -> Lane:
        """One of those in ``claim_requests``."""
        return self._lanes[key]

    def claim_requests(self) -> Mapping[tuple[str, str], LaneRequest]:
        """How the node would serve each lane now."""
        for key, lane in self._lanes.items():
            self._claim_requests[key] = lane.claim_request
        return self._claim_requests
