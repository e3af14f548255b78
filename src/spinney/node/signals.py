"""What the parts of a node tell each other, so that they need not know each other.

A part takes the signals when it is made, connects its own functions to those that concern it, and calls the others when
something has happened. Everything runs in the node's event loop.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


class Signal:
    """Something that happens, and the functions that are called when it does, in the order of their connection."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[Callable[..., object]] = []

    def connect(self, listener: Callable[..., object]) -> None:
        """Have ``listener`` called with the values of the signal."""
        self._listeners.append(listener)

    def __call__(self, *values: object) -> None:
        for listener in self._listeners:
            listener(*values)


@dataclass(frozen=True, slots=True)
class NodeSignals:
    """All signals of one node."""

    committed: Signal = field(default_factory=Signal)
    """Another process has committed something; found by polling."""
    woken: Signal = field(default_factory=Signal)
    """The same, told by a wake-up as it happens."""
    claimable: Signal = field(default_factory=Signal)
    """Something may have become claimable."""
    work_for_peers: Signal = field(default_factory=Signal)
    """There may be work for other nodes."""
    wake_due: Signal = field(default_factory=Signal)
    """Something becomes due by itself, at this time (µs since 1970)."""
    last_hold: Signal = field(default_factory=Signal)
    """The number of the last hold that was made, as an exchange with the store shows it; often the same."""
    round_begins: Signal = field(default_factory=Signal)
    """It is time to look what has become due."""


@dataclass(slots=True)
class NodeStatus:
    """The state of a node: each field is set by one part and read by others."""

    is_leader: bool = False
    """Whether this node does what one node does for all, as far as it knows; set by ``Maintenance``."""
    draining: bool = False
    """Whether the node is ending and takes nothing new; set by the supervisor."""
    drained_by_operator: bool = False
    """Whether an operator has drained it: it takes nothing new until it is resumed; set by ``OrderWatcher``."""

    @property
    def takes_jobs(self) -> bool:
        """Whether the node asks for new jobs, and keeps the next stages of those that it has."""
        return not (self.draining or self.drained_by_operator)
