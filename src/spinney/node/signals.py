"""Signals between the parts of a node, so that they need not know each other.

A part gets the signals at its creation, connects its own functions to some of them, and calls the others when
something has happened. Everything runs in the node's event loop: a call returns when all listeners have
returned, so listeners only set a flag or an event. What a listener raises is raised to the caller."""

from collections.abc import Callable
from dataclasses import dataclass, field


class Signal:
    """An event, and the functions that are called when it happens, in the order of their connection."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[Callable[..., object]] = []

    def connect(self, listener: Callable[..., object]) -> None:
        """Call ``listener`` with the values of the signal whenever it happens."""
        self._listeners.append(listener)

    def __call__(self, *values: object) -> None:
        for listener in self._listeners:
            listener(*values)


@dataclass(frozen=True, slots=True)
class NodeSignals:
    """The signals by which the services of one node tell each other that something may have changed."""

    committed: Signal = field(default_factory=Signal)
    """Another process has committed something; detected by polling."""
    woken: Signal = field(default_factory=Signal)
    """Another process has committed something; a wake-up reports it at once."""
    claimable: Signal = field(default_factory=Signal)
    """Jobs may have become claimable."""
    work_for_peers: Signal = field(default_factory=Signal)
    """There may be work for other nodes."""
    wake_due: Signal = field(default_factory=Signal)
    """Something becomes due at this time (µs since 1970)."""
    last_hold: Signal = field(default_factory=Signal)
    """The id of the newest hold, as returned by an exchange with the store; often the same."""
    round_begins: Signal = field(default_factory=Signal)
    """It is time to check what has become due."""


@dataclass(slots=True)
class NodeStatus:
    """The state of a node: each field is set by one part and read by others."""

    is_leader: bool = False
    """Whether this node is the leader, as far as it knows; set by ``Maintenance``."""
    draining: bool = False
    """Whether the node is ending and takes no new jobs; set by the supervisor."""
    drained_by_operator: bool = False
    """Whether an operator has drained it: it takes no new jobs until it is resumed; set by ``OrderWatcher``."""
    root_is_wrong: bool = False
    """Whether the folder root is gone, not the store's or read-only: jobs would fail, or lose their files; set by
    ``FolderWatch``."""

    @property
    def takes_jobs(self) -> bool:
        """Return whether the node claims new jobs, and keeps the next stages of its own."""
        return not (self.draining or self.drained_by_operator or self.root_is_wrong)
