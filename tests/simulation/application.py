"""The application that simulated nodes serve: a type for each rule of the engine that interleavings can hurt."""

from collections.abc import Mapping
from typing import Any

from spinney.model.settings.capacities import LockCapacity
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.schedules import Overlap, Schedule
from spinney.model.types import Backoff, Isolation, LockSpec, StageSpec, TypeSpec
from spinney.node.workers.worker_reports import Hello

SHORT = Backoff(base_s=0.3, factor=2.0, cap_s=1.0, jitter=0.5)


def _stage(name: str, **policy: Any) -> StageSpec:
    return StageSpec(name=name, **{"backoff": SHORT, "grace_s": 0.3} | policy)


def _kind(name: str, *stages: str | StageSpec, **policy: Any) -> TypeSpec:
    return TypeSpec(name=name, stages=tuple(_stage(s) if isinstance(s, str) else s for s in stages), **policy)


TYPES = (
    _kind("one", _stage("work", max_attempts=2)),
    _kind("three", "first", "second", _stage("third", max_attempts=2, timeout_s=0.8)),
    _kind("batch", "expand", _stage("report", again=True), children="settled"),
    _kind("parent", "expand", _stage("merge", again=True), "publish"),
    _kind("line", "expand", "merge", serial=True, children="settled"),
    _kind("fragile", "work", on_lost="orphan"),
    _kind("locked", "before", _stage("work", locks=(LockSpec(template="place:{place}"),))),
    _kind("keeper", _stage("work", locks=(LockSpec(template="place:{place}", until="job"),)), "after"),
    _kind("cold", _stage("work", isolation=Isolation.COLD)),
    _kind("thread", _stage("work", isolation=Isolation.THREAD, timeout_s=1.0), "then"),
    _kind("watched", _stage("work", max_attempts=2), breaker=3),
)
LEAVES = ("one", "three", "fragile", "locked", "keeper", "cold", "thread", "watched")
"""What is spawned: types that bear nothing themselves."""
QUEUES = ("default", "narrow", "quota")
WIDE = 6
"""The capacity of a lock of which stages take amounts."""


class Application:
    """As it was loaded by one world's nodes."""

    def __init__(self, narrow: int) -> None:
        self.types = TYPES
        self.queues = (
            QueueSpec(name="narrow", limit=narrow, sharing="none"),
            QueueSpec(name="quota", sharing="quota"),
        )
        self.locks = (LockCapacity(name="wide:*", capacity=WIDE),)
        self.schedules = (Schedule(name="ticking", type="one", every_s=2.0, overlap=Overlap.QUEUE),)

        self.declared = (self.types, self.queues, self.locks)

    def hello(self) -> Hello:
        return Hello(types=self.types, queues=self.queues, locks=self.locks, schedules=self.schedules)

    @property
    def by_name(self) -> Mapping[str, TypeSpec]:
        return {spec.name: spec for spec in self.types}
