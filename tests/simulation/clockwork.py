"""What node and store reach for in the outside world, while a simulated one takes its place.

Clocks: every module of them that says ``time.…``, or has a name of its own for a clock of ``time``, gets the simulated
clock of whichever process runs, and so do parameters whose default is a clock. Threads: store threads, heartbeat, pump.
Processes: what looks for marked ones, and for guards. Sockets: wake-ups. The room on the disk. Everything else, page
files, lock files, folders, is real, in a directory in memory.
"""

import asyncio
import contextlib
import inspect
import itertools
import logging
import os
import pkgutil
import random
import socket
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import spinney.features
import spinney.node
import spinney.store.sql
import spinney.wakeup
from spinney.node.lifecycle.deadline import boot_ns

from .faults import LEASE_MAX_S
from .loop import PROCESS
from .threads import SimHeartbeat, SimStoreThread
from .workers import SimPump

_INJECTED: dict[Any, str] = {
    time.monotonic: "monotonic",
    time.perf_counter: "monotonic",
    time.time: "time",
    boot_ns: "boot_ns",
    random.random: "random",
}
"""Defaults of parameters through which clocks and chance are handed in."""


class SimTime(ModuleType):
    """In the place of the module ``time``."""

    CLOCK_BOOTTIME = time.CLOCK_BOOTTIME

    @staticmethod
    def monotonic() -> float:
        return PROCESS.get().loop.now

    perf_counter = monotonic

    @staticmethod
    def time() -> float:
        return float(PROCESS.get().machine.host.wall_us() / 1e6)

    @staticmethod
    def time_ns() -> int:
        return int(PROCESS.get().machine.host.wall_us() * 1000)

    @staticmethod
    def clock_gettime_ns(clock: int) -> int:
        return int(PROCESS.get().loop.now * 1e9)

    @staticmethod
    def sleep(seconds: float) -> None:
        raise AssertionError("nothing may sleep in a simulated process")


_CLOCKS = ("monotonic", "perf_counter", "time", "time_ns", "clock_gettime_ns")


@contextmanager
def in_place(world: Any, rng: random.Random) -> Iterator[None]:
    """While it lasts, this world is all there is."""
    numbers = itertools.count(1)
    simulated = SimTime("time")
    boot = lambda: simulated.clock_gettime_ns(0)  # noqa: E731
    instead = {
        "monotonic": simulated.monotonic,
        "time": simulated.time,
        "boot_ns": boot,
        "random": lambda: rng.random(),
    }
    with contextlib.ExitStack() as stack:

        def put(target: Any, name: str, value: Any) -> None:
            stack.enter_context(mock.patch.object(target, name, value))

        for module, clocks, defaults in _clocked():
            for name, clock in clocks:
                put(module, name, simulated if clock is None else getattr(simulated, clock))
            for function, name in defaults:
                value = function.__kwdefaults__[name]
                stack.enter_context(
                    mock.patch.dict(function.__kwdefaults__, {name: instead[_INJECTED[value]]})
                )
        for function in _positional():
            before = function.__defaults__
            stack.callback(setattr, function, "__defaults__", before)
            function.__defaults__ = tuple(instead[_INJECTED[d]] if _is_injected(d) else d for d in before)
        put(sys.modules["spinney.node.supervisor"], "StoreThread", SimStoreThread)
        put(sys.modules["spinney.node.dispatch.worker_pool"], "Pump", SimPump)
        membership = sys.modules["spinney.node.lifecycle.membership"]
        put(membership, "Heartbeat", SimHeartbeat)
        put(membership, "startup_lock", _startup_lock)
        put(membership, "boot_ns", boot)
        put(sys.modules["spinney.node.lifecycle.heartbeat"], "boot_ns", boot)
        put(sys.modules["spinney.node.lifecycle.heartbeat"], "_measure_load", lambda: None)
        instance = sys.modules["spinney.node.instance"]
        put(sys.modules["spinney.host.boot"], "boot_id", lambda: PROCESS.get().machine.host.name)
        # Numbers of simulated processes are those of real ones, too, perhaps of this very process.
        put(
            instance, "guarded", lambda run_dir, instance: world.guarded(PROCESS.get().machine.host, instance)
        )
        put(
            instance,
            "kill_by_instance",
            lambda instance, **_: world.kill_by_instance(PROCESS.get().machine.host, instance),
        )
        wakeup_socket = sys.modules["spinney.wakeup.local"]
        put(wakeup_socket, "received_wakeups", _received_wakeups)
        wakeup = sys.modules["spinney.wakeup"]
        for module in (wakeup_socket, wakeup):
            put(module, "wake_local_nodes", lambda run_dir, but=None: world.wake_nodes(Path(run_dir), but))
            put(module, "run_dir_id", str)
        put(sys.modules["spinney.node.lifecycle.takeover"], "os", _NoSignals(world))
        put(sys.modules["spinney.node.workers.stack_taker"], "descendants", lambda pid: [])
        put(sys.modules["spinney.folders.folders"], "write_problem", lambda root: None)
        put(sys.modules["spinney.model.jobs"], "LEASE_MAX_S", LEASE_MAX_S)
        # The same declarations are read thousands of times.
        registry = sys.modules["spinney.store.sql.registry.registry"]
        put(registry, "read_type", cache(registry.read_type))
        put(socket, "gethostname", lambda: PROCESS.get().machine.host.name)
        put(os, "sched_getaffinity", lambda pid: {0, 1})
        put(uuid, "uuid4", lambda: uuid.UUID(int=next(numbers)))
        put(sys.modules["importlib.metadata"], "version", lambda name: "0")
        yield


class _NoSignals:
    """``os`` for who asks another node's guard to drain: the signal arrives in the simulated world."""

    def __init__(self, world: Any) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def kill(self, pid: int, sig: int) -> None:
        self._world.term(PROCESS.get().machine.host, pid)


@asynccontextmanager
async def _startup_lock(run_dir: Path, name: str) -> AsyncIterator[None]:
    """The real one is a file lock that its holder's death opens."""
    process, doors = PROCESS.get(), PROCESS.get().machine.host.doors
    while name in doors and not doors[name].dead:  # noqa: ASYNC110 - as the real one
        await asyncio.sleep(0.2)
    doors[name] = process
    try:
        yield
    finally:
        if doors.get(name) is process:
            del doors[name]


@asynccontextmanager
async def _received_wakeups(run_dir: Path, name: str, on_wakeup: Callable[[], None]) -> AsyncIterator[None]:
    process = PROCESS.get()
    received_wakeups = process.machine.host.received_wakeups
    received_wakeups[name] = process, on_wakeup
    try:
        yield
    finally:
        del received_wakeups[name]


@cache
def _modules() -> tuple[ModuleType, ...]:
    parts = []
    for package in (spinney.node, spinney.store.sql, spinney.features):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            names = set(info.name.split("."))
            of_the_store = "features" not in names or names & {"sql", "sweep", "preview"}
            if of_the_store and not {"supervisor_main", "migrations", "worker", "postgres"} & names:
                __import__(info.name)
                parts.append(sys.modules[info.name])
    return tuple(parts)


class _Clocked(NamedTuple):
    """What of a module has to do with clocks."""

    module: ModuleType
    clocks: tuple[tuple[str, str | None], ...]
    """Its names for a clock of ``time``, and which; None: for ``time`` itself."""
    defaults: tuple[tuple[Any, str], ...]
    """Its functions with a clock as default of a keyword."""


@cache
def _clocked() -> tuple[_Clocked, ...]:
    return tuple(
        _Clocked(module, tuple(_clocks(module)), tuple(_injections(module))) for module in _modules()
    )


def _clocks(module: ModuleType) -> Iterator[tuple[str, str | None]]:
    for name, value in vars(module).items():
        if value is time:
            yield name, None
        elif any(value is getattr(time, clock) for clock in _CLOCKS):
            yield name, value.__name__


def _injections(module: ModuleType) -> Iterator[tuple[Any, str]]:
    for function in _functions(module):
        for name, default in (function.__kwdefaults__ or {}).items():
            if _is_injected(default):
                yield function, name


@cache
def _positional() -> tuple[Any, ...]:
    return tuple(f for m in _modules() for f in _functions(m) if any(map(_is_injected, f.__defaults__ or ())))


def _is_injected(value: Any) -> bool:
    return callable(value) and any(value == injected for injected in _INJECTED)


def _functions(module: ModuleType) -> Iterator[Any]:
    for thing in vars(module).values():
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(thing):
            yield thing
        elif inspect.isclass(thing):
            yield from (f for f in vars(thing).values() if inspect.isfunction(f))


@contextmanager
def quiet(trace: Callable[[str], None] | None) -> Iterator[None]:
    """Write what the engine logs to the trace, or nowhere without one."""
    root = logging.getLogger("spinney")
    before, level = root.propagate, root.level

    class TraceHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert trace is not None
            trace(f"log: {record.getMessage()}")

    handler = TraceHandler() if trace is not None else logging.NullHandler()
    root.addHandler(handler)
    root.propagate = False
    if trace is None:
        root.setLevel(logging.CRITICAL + 1)
    else:
        root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.propagate = before
        root.setLevel(level)
