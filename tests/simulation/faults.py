"""What befalls a simulated world. Each seed has kinds of its own, so that some worlds know one kind alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .loop import Process

_KINDS = (
    "crash",
    "crash_at_gate",
    "freeze_at_gate",
    "pause",
    "freeze",
    "partition",
    "clock",
    "supervisor_dies",
    "drain",
    "same_name",
    "operator_crash",
)
_RATES: Mapping[str, float] = {
    "unusable": 0.01,
    "answer_lost": 0.01,
    "late_write": 0.5,
    "lost_wakeup": 0.5,
    "worker_dies": 0.3,
    "no_start": 0.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """What a world is mostly about. Some things hardly happen where all things happen."""

    kinds: tuple[str, ...]
    longest_s: float | None = None
    """User code often takes so long; None: as it is drawn."""
    at_records: bool = False
    """What strikes at a gate strikes where something is recorded."""
    verbs: tuple[str, ...] = ()
    """What operators do, and they do much; none: as it is drawn."""
    types: tuple[str, ...] = ()
    """What is submitted; none: anything."""


FOCI: Mapping[str, Focus] = {
    # Nodes that were given up go on, and tell what they have done.
    "zombies": Focus(kinds=("freeze_at_gate",), longest_s=2.5, at_records=True),
    # Nodes that run on and cannot say that they live.
    "silence": Focus(kinds=("partition", "pause"), longest_s=6.0),
    # Nodes that start under the name of one which cannot say that it lives, and often with another lease.
    "successors": Focus(kinds=("same_name", "same_name", "partition", "pause"), longest_s=6.0),
    # Nobody knows what time it is.
    "clocks": Focus(kinds=("clock",)),
    # Operators who change their minds.
    "meddling": Focus(
        kinds=("operator_crash", "drain"),
        verbs=("cancel", "cancel", "retry", "rerun", "cancel_tree"),
        types=("three", "three", "parent", "batch", "line"),
    ),
}
_LEASES: tuple[tuple[float, ...], ...] = ((2.0,), (2.0, 5.0), (2.0, 5.0), (2.0, 3.0, 6.0))
"""Leases (s) that the nodes of a world have: each start draws one of them, so that a node which comes again, with
``--replace`` or without, often has another than before."""
LEASE_MAX_S = 8.0
"""The longest lease that a node may have, which is what a node is judged by that does not say its own."""
_UNTOLD = 0.5
"""So many nodes do not say their lease, in some worlds: those are of an older version."""
_FOCUSED = 0.4
"""So many worlds have a focus."""


class Faults:
    """``begin`` starts them, ``end`` mends everything."""

    def __init__(self, world: Any, focus: str | None) -> None:
        self.world, rng = world, world.rng
        if focus is None and rng.random() < _FOCUSED:
            focus = rng.choice(sorted(FOCI))
        self._focus = None if focus is None else FOCI[focus]
        self.active = True
        self.until = world.loop.now + rng.choice((2.0, 4.0, 4.0, 8.0))
        self.jobs = rng.choice((4, 8, 20))
        self.meddling = rng.choice((0.0, 0.3, 0.8))
        self.longest_s = rng.choice((0.6, 2.0, 6.0))
        """The longest that user code may take."""
        # Few kinds together come to more than all of them, of which each undoes what the others have prepared.
        self._kinds: tuple[str, ...] = tuple(rng.sample(_KINDS, rng.choice((1, 1, 2, 3, 5))))
        self._rates = {what: rate for what, rate in _RATES.items() if rng.random() < 0.3}
        self._slow_s = rng.choice((0.01, 0.1, 2.0))
        self._every_s = rng.choice((0.3, 0.8))
        self._leases = rng.choice(_LEASES)
        self._untold = rng.choice((0.0, 0.0, _UNTOLD))
        self._names = ["n1", "n2", "n3"][: rng.choice((1, 2, 2, 2, 3))]
        self.verbs: tuple[str, ...] = ()
        """What operators do; none: anything."""
        self.types: tuple[str, ...] = ()
        """What is submitted; none: anything."""
        if self._focus is not None:
            self.types = self._focus.types
            self._kinds, self.verbs = self._focus.kinds, self._focus.verbs
            self.longest_s = self._focus.longest_s or self.longest_s
            self.meddling = 0.9 if self.verbs else self.meddling
            self._names, self._every_s = ["n1", "n2"], 0.8
            self.until = world.loop.now + rng.choice((4.0, 8.0))
        self._slots = {name: rng.choice((1, 2, 3)) for name in self._names}
        self.hosts = 2 if self._focus is not None else rng.choice((1, 1, 2, 2, 3))
        """How many machines there are. Where one stands still, another is needed to notice."""
        if self._focus is not None and self._focus.longest_s:
            # What comes back must find a free slot, so that somebody is at it when the first owner tells.
            self.jobs, self._slots = 5, dict.fromkeys(self._names, 3)

    def chance(self, what: str) -> bool:
        rate = self._rates.get(what)
        return rate is not None and self.active and not self.world.calm and self.world.rng.random() < rate

    def lease_s(self) -> float:
        """The lease of a node that starts now."""
        return float(self.world.rng.choice(self._leases))

    def says_lease(self) -> bool:
        """Whether a node that starts now says its lease; else it is one of an older version."""
        return bool(self.world.rng.random() >= self._untold)

    @property
    def at_records(self) -> bool:
        """Whether what strikes at a gate waits for one where something is recorded."""
        return self._focus is not None and self._focus.at_records

    @property
    def long(self) -> float:
        """How much of user code takes long."""
        return 0.6 if self._focus is not None and self._focus.longest_s else 0.15

    def slow_s(self) -> float:
        return 0.01 if self.world.calm else float(self._slow_s)

    def begin(self) -> None:
        self._process = Process(self.world.loop, "fate")
        for name in self._names:
            self._start(name, delay_s=self.world.rng.random() * 0.5)
        self._process.post(self._strike, delay_s=self._every_s)

    def end(self) -> None:
        """The clocks are right, nobody stands still, everybody can reach the database, and a node is there."""
        world = self.world
        self._process.die()
        for host in world.hosts:
            host.wrong_us = 0
        for node in world.alive():
            node.go_on()
            node.unreachable_until = 0.0
            node.strike_in = None
        for operator in world.operators:
            operator.strike_in = None
        world.start_node(world.rng.choice(world.hosts), "calm", slots=2)

    # --- striking -------------------------------------------------------------------------

    def _strike(self) -> None:
        rng = self.world.rng
        self._process.post(self._strike, delay_s=rng.random() * 2 * self._every_s)
        for name in self._names:
            if not any(node.name == name for node in self.world.alive()):
                self._start(name, delay_s=rng.random())
        if self._kinds:
            kind = rng.choice(self._kinds)
            getattr(self, f"_{kind}")()

    def _start(self, name: str, *, delay_s: float, replace: bool = False) -> None:
        world = self.world
        hosts = world.hosts if self._focus is None else [world.hosts[self._names.index(name)]]
        self._process.post(
            lambda: world.start_node(world.rng.choice(hosts), name, slots=self._slots[name], replace=replace),
            delay_s=delay_s,
        )

    def _one(self) -> Any:
        """A node; rather one that is at work, whose death somebody can feel."""
        alive = self.world.alive()
        busy = [node for node in alive if node.busy]
        if busy and self.world.rng.random() < 0.7:
            return self.world.rng.choice(busy)
        return self.world.rng.choice(alive) if alive else None

    def _crash(self) -> None:
        if node := self._one():
            self.world.note(None, f"kills {node}")
            node.kill()

    def _crash_at_gate(self) -> None:
        if node := self._one():
            node.strike_in = self.world.rng.randint(1, 15)

    def _freeze_at_gate(self) -> None:
        if self.at_records and any(node.frozen or node.strike_in for node in self.world.alive()):
            return  # the others are to find out
        if node := self._one():
            node.strike_in = self.world.rng.randint(1, 2 if self.at_records else 15)
            node.frozen_by_strike_s = self.world.rng.choice((0.25, 1.5, 1.75)) * node.lease_s

    def _operator_crash(self) -> None:
        self.world.operators[-1].strike_in = self.world.rng.randint(1, 10)

    def _supervisor_dies(self) -> None:
        if node := self._one():
            self.world.note(None, f"kills the supervisor of {node}")
            node.supervisor.die()

    def _drain(self) -> None:
        if node := self._one():
            self.world.note(None, f"TERM to {node}")
            node.term()

    def _same_name(self) -> None:
        self._start(self.world.rng.choice(self._names), delay_s=0.0, replace=self.world.rng.random() < 0.6)

    def _pause(self) -> None:
        self._stand_still(whole=False)

    def _freeze(self) -> None:
        self._stand_still(whole=True)

    def _stand_still(self, *, whole: bool) -> None:
        if node := self._one():
            seconds = self.world.rng.choice((0.15, 0.6, 1.25, 2.0)) * node.lease_s
            self.world.note(None, f"{'freezes' if whole else 'stops'} {node} for {seconds:g} s")
            node.stop(whole=whole)
            self._process.post(node.go_on, delay_s=seconds)

    def _partition(self) -> None:
        if node := self._one():
            seconds = self.world.rng.choice((0.25, 0.75, 1.75)) * node.lease_s
            self.world.note(None, f"{node} cannot reach the database for {seconds:g} s")
            node.unreachable_until = self.world.loop.now + seconds

    def _clock(self) -> None:
        host = self.world.rng.choice(self.world.hosts)
        host.wrong_us = int((self.world.rng.random() - 0.5) * 20e6)
        self.world.note(None, f"the clock of {host.name} is wrong by {host.wrong_us / 1e6:.3f} s")
