"""Engines that are broken on purpose: each lacks one thing that a promise rests on, and the suite has to notice.

A variant is the same world with one piece of the engine replaced for as long as it lasts.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest import mock

from spinney.model.jobs import ClaimRequest, FlushResult, Lease, NodeInfo, Record
from spinney.model.outcomes import Outcome
from spinney.node.lifecycle.recovery import LivenessWatch
from spinney.store.contract import SweepResult
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.record import next_stages
from spinney.store.sql.record.recorder import Recorder
from spinney.store.sql.recover.sweep_step import SweepStep
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import locks, placement
from spinney.store.sql.transitions.cascades import Cascade

from .loop import PROCESS
from .nodes import SimNode
from .stores import SimStore


@contextmanager
def no_fence() -> Iterator[type[SimStore]]:
    """A record is taken whoever owns the job by now."""
    found_by_fence = Recorder._leases

    def leases(self: Recorder, records: Sequence[Record]) -> Any:
        by_job = {lease[0]: lease for lease in found_by_fence(self, records).values()}
        return {record.fence: by_job[record.job_id] for record in records if record.job_id in by_job}

    with mock.patch.object(Recorder, "_leases", leases):
        yield SimStore


class LimitOutside(SimStore):
    """How many slots a queue occupies is looked up before the claim's transaction."""

    def flush_and_claim(
        self, records: Sequence[Record], want: ClaimRequest | None, *, now_us: int
    ) -> FlushResult:
        if want is not None and want.slots:
            with self._look() as tx:
                stale = {name: self._registry.occupied(tx, name) for name in ("narrow",)}
            self._registry.occupied = lambda tx, queue: set(stale.get(queue, ()))  # type: ignore[method-assign]
            self._registry.occupied_by_limited = (  # type: ignore[method-assign]
                lambda tx: {name: set(slots) for name, slots in stale.items()}
            )
            self._sim_database.calls += 1  # others may go first now
        return super().flush_and_claim(records, want, now_us=now_us)


class ByElapsedTime(SimStore):
    """A lease that is older than a lease period is taken to be lost."""

    def sweep(self, *, now_us: int, limit: int = 500) -> SweepResult:
        with self._look() as tx:
            old = tx.all("select job_id, fence from leases where claimed_us < ?", (now_us - 300_000,))
        if old:
            super().flush_and_claim(
                [Record(j, f, Outcome.LOST, 1, now_us) for j, f in old], None, now_us=now_us
            )
        return super().sweep(now_us=now_us, limit=limit)


@contextmanager
def by_the_wall_clock() -> Iterator[type[SimStore]]:
    """A node is dead when its last beat is long ago by the observer's wall clock."""

    def look(
        self: LivenessWatch, nodes: Sequence[NodeInfo], asked_s: float, answered_s: float
    ) -> list[NodeInfo]:
        now_us = PROCESS.get().machine.host.wall_us()
        return [node for node in nodes if now_us - node.seen_us > node.dead_after_s * 1e6]

    with mock.patch.object(LivenessWatch, "look", look):
        yield SimStore


@contextmanager
def by_the_lease_of_the_observer() -> Iterator[type[SimStore]]:
    """A node is dead when it has been silent for the lease of whoever looks."""
    look_at_each = LivenessWatch.look

    def look(
        self: LivenessWatch, nodes: Sequence[NodeInfo], asked_s: float, answered_s: float
    ) -> list[NodeInfo]:
        own_s = PROCESS.get().machine.lease_s
        return look_at_each(self, [replace(node, lease_s=own_s) for node in nodes], asked_s, answered_s)

    with mock.patch.object(LivenessWatch, "look", look):
        yield SimStore


@contextmanager
def untold_means_usual() -> Iterator[type[SimStore]]:
    """A node that does not say its lease is taken to have the shortest there is."""
    with mock.patch.object(NodeInfo, "dead_after_s", property(lambda node: node.lease_s or 2.0)):
        yield SimStore


@contextmanager
def no_guard() -> Iterator[type[SimStore]]:
    """Nobody ends a node that cannot renew its lease."""
    with mock.patch.object(SimNode, "_look", return_value=None):
        yield SimStore


@contextmanager
def deaf_to_wishes() -> Iterator[type[SimStore]]:
    """The next stage is kept in its slot although the job is to be cancelled."""
    keep = next_stages.keep

    def keep_anyway(*args: Any, **options: Any) -> Lease | None:
        with mock.patch.object(placement, "cancel_reason", return_value=None):
            return keep(*args, **options)

    with mock.patch.object(next_stages, "keep", keep_anyway):
        yield SimStore


@contextmanager
def locks_never_told() -> Iterator[type[SimStore]]:
    """Who waits for a lock is not woken when it comes free, and housekeeping does not look."""
    with (
        mock.patch.object(Cascade, "_lock_freed", return_value=None),
        mock.patch.object(SweepStep, "free_locks", return_value=None),
    ):
        yield SimStore


@contextmanager
def amounts_as_one() -> Iterator[type[SimStore]]:
    """Whoever wants some of a lock gets it where there is room for 1."""
    look = locks.look

    def look_for_one(
        tx: Tx, registry: Registry, wanted: locks.LockRequest, *args: Any, **how: Any
    ) -> locks.LockState:
        return look(tx, registry, wanted._replace(amount=min(wanted.amount, 1)), *args, **how)

    with mock.patch.object(locks, "look", look_for_one):
        yield SimStore


def _just(store: type[SimStore]) -> Callable[[], AbstractContextManager[type[SimStore]]]:
    return lambda: contextlib.nullcontext(store)


class Variant(NamedTuple):
    """How to break the engine, and in which worlds that comes to light soon."""

    engine: Callable[[], AbstractContextManager[type[SimStore]]]
    focus: str | None = None
    first: int = 1
    """The seed to begin with: as things are, that one finds it, which spares those that do not."""


VARIANTS: dict[str, Variant] = {
    "no fence": Variant(no_fence, "zombies", 51),
    "limit checked outside the transaction": Variant(_just(LimitOutside), first=4),
    "recovery by elapsed time": Variant(_just(ByElapsedTime), first=4),
    "recovery by the wall clock": Variant(by_the_wall_clock, "clocks"),
    "judged by the observer's lease": Variant(by_the_lease_of_the_observer, "successors", 7),
    "an untold lease is a short one": Variant(untold_means_usual, "successors", 62),
    "no guard": Variant(no_guard, "silence", 10),
    "next stage in spite of a cancel": Variant(deaf_to_wishes, "meddling", 10),
    "freed locks tell nobody": Variant(locks_never_told, first=4),
    "amounts of locks count as one": Variant(amounts_as_one, first=49),
}
