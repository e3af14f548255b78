"""What a worker process reports to the supervisor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spinney.model.settings.capacities import LockCapacity
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.schedules import Schedule
from spinney.model.types import TypeSpec
from spinney.node.workers.shared_page import Running
from spinney.node.workers.termination import killed_text

Row = Sequence[Any]
"""A worker's report of an attempt; see ``spinney.node.workers``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first message of a worker, after it has loaded the application, or why it could not."""

    store: str | None = None
    """The store that the application's code names, if it does."""
    types: tuple[TypeSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()
    locks: tuple[LockCapacity, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    error: str | None = None
    """The sentence that says why the application cannot be loaded. The worker ends after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a worker process ended, and what it ran then."""

    code: int | None
    """Its exit code; None when a signal ended it."""
    signal: str | None
    """The signal that ended it (``SIGKILL``, or ``signal 40`` for one without a name), if one did."""
    running: tuple[Running, ...]
    """The attempts that had begun and not ended."""
    forced: bool
    """Whether ``kill_attempt`` was called before it ended."""
    unreported: int = 0
    """How many attempts had ended without being reported."""

    def __str__(self) -> str:
        if self.signal is not None:
            return f"its worker {killed_text(self.signal)}"
        return f"its worker exited with code {self.code}"
