"""What a worker process reports to the supervisor."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from spinney.model.settings.capacities import LockCapacity
from spinney.model.settings.schedules import Schedule
from spinney.model.types import QueueSpec, TypeSpec
from spinney.node.workers.shared_page import Running

if TYPE_CHECKING:
    from spinney.node.workers.child import Child


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first message of a worker, after it has loaded the application, or why it could not."""

    pid: int
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
    """The name of the signal that ended it (``SIGKILL``), if one did."""
    running: tuple[Running, ...]
    """The attempts that had begun and not ended."""
    forced: bool
    """Whether ``kill_attempt`` was called before it ended."""
    unreported: int = 0
    """How many attempts had ended without being reported."""

    def __str__(self) -> str:
        if self.signal is not None:
            return f"its worker was killed by {self.signal}"
        return f"its worker exited with code {self.code}"


class Events(Protocol):
    """Events of a worker, called in the loop's thread. Implementations must not block."""

    def hello(self, child: "Child", hello: Hello) -> None:
        """The worker is ready, or it ends with this error."""

    def done(self, child: "Child", rows: list[list[Any]]) -> None:
        """Attempts have ended; the package's docstring describes the rows."""

    def back(self, child: "Child", fences: list[int]) -> None:
        """Attempts are handed back without having begun."""

    def ask(self, child: "Child", number: int, fence: int, verb: str, args: dict[str, Any]) -> None:
        """A running attempt has sent a request, to be answered by ``child.answer(number, …)`` or ``child.refuse``."""

    def output(self, child: "Child", fence: int, stream: str, text: str) -> None:
        """An attempt in a ``--concurrent`` worker has printed something, which is for ``Pump.put``."""

    def exited(self, child: "Child", how: Exit) -> None:
        """The worker has ended and no process of it is left. This is the last event, and comes once.

        Its page is still mapped: when ``Pump.remove`` is done and its attempts are recorded, close the page
        (``child.page.close()``) and remove its file."""
