"""Store calls that can be stopped between two transactions.

A store is synchronous, so a verb of several transactions cannot be left in its midst by a coroutine. Each call
runs on a strand: a thread that has the baton, or waits for it. Exactly one strand, or the loop, runs at a time,
so the whole remains one thread of execution with an order that the seed decides. Strands are kept for reuse.
"""

import threading
from collections.abc import Callable
from typing import Any


class Killed(BaseException):
    """The process of this strand has died. Nothing may catch it and go on."""


class Strand:
    """One thread. ``resume`` runs it until it pauses or is done."""

    def __init__(self) -> None:
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._work: Callable[[], Any] | None = None
        self._killed = False
        self.done = True
        threading.Thread(target=self._run, daemon=True, name="strand").start()

    # --- the loop's side ------------------------------------------------------------------

    def start(self, work: Callable[[], Any]) -> None:
        self._work, self.done, self._killed = work, False, False
        self.resume()

    def resume(self) -> None:
        self._go.release()
        self._back.acquire()

    def kill(self) -> None:
        """Unwind what it does; nothing of it reaches the store any more."""
        if not self.done:
            self._killed = True
            self.resume()

    # --- the strand's side ----------------------------------------------------------------

    def pause(self) -> None:
        """Let others go first. Raises Killed when the process died meanwhile."""
        if self._killed:
            raise Killed
        self._back.release()
        self._go.acquire()
        if self._killed:
            raise Killed

    def _run(self) -> None:
        while True:
            self._go.acquire()
            assert self._work is not None
            self._work()
            self._work, self.done = None, True
            self._back.release()


_idle: list[Strand] = []


def take() -> Strand:
    return _idle.pop() if _idle else Strand()


def give_back(strand: Strand) -> None:
    _idle.append(strand)
