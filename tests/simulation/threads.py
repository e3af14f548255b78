"""Threads of a simulated process that own a store: what a node calls through ``StoreThread``, and its heart.

Both have the interface of the real ones, and the heartbeat is the real one but for its thread. A call is served a
while after it was made, in the order made, each store by a strand of its own; what the process that made it has
become meanwhile decides whether anything of it happens.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from spinney.model.errors import SpinneyError
from spinney.node.lifecycle.heartbeat import Heartbeat
from spinney.node.store_thread import StoreThread, _Call, _set
from spinney.store.parts import Store

from . import strands
from .loop import PROCESS, Process
from .oracle import Violation


class StoreLane:
    """One store, one thread."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self.process: Process = PROCESS.get()
        self._store: Any = open_store()
        self._lane = self.process.lane()
        self._calls: deque[tuple[Callable[[Any], Any], Callable[[Any, BaseException | None], object]]] = (
            deque()
        )
        self._strand: strands.Strand | None = None
        self._answer: tuple[Any, BaseException | None] = (None, None)
        self.process.on_death.append(self.kill)

    def call(self, verb: Callable[[Any], Any], done: Callable[[Any, BaseException | None], object]) -> None:
        """Do it when those before are done; ``done(value, error)`` is called in this thread."""
        self._calls.append((verb, done))
        if len(self._calls) == 1:
            self._later(self._begin)

    def kill(self) -> None:
        """What it is at goes no further; but a call that was on its way to the server may still arrive there."""
        if self._strand is not None:
            self._strand.kill()
            self._let_go()
        elif self._calls and self.process.loop.world.chance("late_write"):
            self.process.loop.world.wire.send(self.process, self._store, self._calls[0][0])

    def _later(self, what: Callable[[], None]) -> None:
        self.process.post(what, lane=self._lane, delay_s=self.process.loop.world.latency_s())

    def _begin(self) -> None:
        verb, _ = self._calls[0]
        context, store = PROCESS.get().context.copy(), self._store

        def work() -> None:
            try:
                store.begin_verb()
                self._answer = context.run(verb, store), None
            except strands.Killed:
                return
            except Exception as error:  # noqa: BLE001 - handed to the caller
                self._answer = None, error
            except BaseException as error:  # noqa: BLE001 - it is the world that is wrong
                self.process.loop.world.failed("a store call", error)

        self._strand = strands.take()
        self._with_baton(lambda: self._strand.start(work))  # type: ignore[union-attr]

    def _go_on(self) -> None:
        if self._strand is not None:
            self._with_baton(self._strand.resume)

    def _with_baton(self, run: Callable[[], None]) -> None:
        world, strand = self.process.loop.world, self._strand
        assert strand is not None
        world.strand = strand
        run()
        world.strand = None
        if not strand.done:
            strike, world.at_gate = world.at_gate, None
            if strike is not None:
                verb = self._calls[0][0]
                strike()
                if self.process.dead:
                    if self._store.untouched and world.chance("late_write"):
                        world.wire.send(self.process, self._store, verb)
                    return
            self._later(self._go_on)
            return
        self._let_go()
        _, done = self._calls.popleft()
        done(*self._answer)
        if self._calls:
            self._later(self._begin)

    def _let_go(self) -> None:
        assert self._strand is not None
        strands.give_back(self._strand)
        self._strand = None


class Wire:
    """Between clients and their server: what a client sent just before it died arrives all the same, later. Nobody
    hears of it, and of a verb only the first transaction happens."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def send(self, sender: Process, store: Any, verb: Callable[[Any], Any]) -> None:
        world = self._process.loop.world

        def work() -> None:
            with contextlib.suppress(strands.Killed, SpinneyError, Violation):
                store.begin_verb()
                sender.context.copy().run(verb, store)

        def arrives() -> None:
            world.note(sender, "sent something before it died, which arrives now")
            strand = world.strand = strands.take()
            strand.start(work)
            world.strand = None
            strand.kill()
            strands.give_back(strand)

        self._process.post(arrives, delay_s=world.draw(0.0, world.rng.choice((0.1, 1.0, 4.0))))


class SimStoreThread(StoreThread):
    """The real one, but for the thread."""

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._calls = _Calls(StoreLane(self._open_store))  # type: ignore[assignment]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.sleep(0)


class _Calls:
    """In the place of the queue before the thread."""

    def __init__(self, lane: StoreLane) -> None:
        self._lane = lane

    def put(self, call: _Call) -> None:
        self._lane.call(call.verb, lambda value, error: _set(call.answer, value, error, call.then))


class SimHeartbeat(Heartbeat):
    """The real heartbeat, beating on a lane instead of in a thread."""

    def __enter__(self) -> Self:
        self._lane = StoreLane(self._open_store)
        self._beat_later(0.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave.set()

    def _beat_later(self, delay_s: float) -> None:
        process = self._lane.process
        process.post(lambda: self._lane.call(self._checked_beat, self._beaten), delay_s=delay_s)

    def _checked_beat(self, store: Any) -> bool:
        return not self._leave.is_set() and self._beat(store)

    def _beaten(self, goes_on: bool | None, error: BaseException | None) -> None:
        if error is not None:
            self._on_dead(f"the heartbeat has stopped: {error}")
        elif goes_on:
            self._beat_later(self._beat_s)
