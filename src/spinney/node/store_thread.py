"""A thread that owns a store: the event loop uses the store by ``call``.

A store is synchronous and belongs to one thread at a time. Calls are served in order. A thread that dies (by an
unexpected error of its store) fails every call from then on, so that nothing waits for it for ever: the supervisor ends
and the guard cleans up."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from spinney.model.errors import CommitUncertain, SpinneyError, StoreLocked, StoreUnavailable, StoreUnusable
from spinney.node.health import NodeHealth
from spinney.node.retry_delays import RetryDelays
from spinney.store.parts import Store

T = TypeVar("T")


class StoreThreadEnded(SpinneyError):
    """A thread that owned a store has died, which ends the node; start it again."""


_Then = Callable[[Any], object]


class _Call(NamedTuple):
    """A call of the store that waits for the thread, or runs in it."""

    verb: Callable[[Store], Any]
    answer: asyncio.Future[Any]
    then: _Then | None


class StoreThread:
    """``async with StoreThread(name, open_store) as db: await db.call(lambda store: ...)``."""

    def __init__(self, name: str, open_store: Callable[[], Store], health: NodeHealth | None = None) -> None:
        """The outcomes of calls are reported to ``health``."""
        self._name, self._open_store = name, open_store
        self._health = health or NodeHealth()
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._dead: StoreThreadEnded | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(target=self._serve, args=(opened,), name=self._name, daemon=True).start()
        await opened
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.put(None)
        await self._ended

    async def call(self, verb: Callable[[Store], T], *, then: Callable[[T], object] | None = None) -> T:
        """Run ``verb`` in the store's thread; return what it returns, raise what it raises. Calls run in the
        order in which they were made. One whose caller is cancelled runs all the same, and its result is
        dropped.

        ``then`` is called in the event loop with the result, one turn of the loop before the caller continues. What it
        raises is raised here. Raises StoreThreadEnded when the thread has died."""
        if self._dead is not None:
            raise self._dead
        answer: asyncio.Future[T] = self._loop.create_future()
        self._calls.put(_Call(verb, answer, then))
        try:
            value = await answer
        except StoreUnusable as error:
            self._health.failed(self._name, error)
            raise
        self._health.worked(self._name)
        return value

    async def insist(
        self, verb: Callable[[Store], T], *, for_s: float, twice: bool = True, outlast_lock: bool = False
    ) -> T:
        """Retry ``call`` while the store is unavailable, for at most ``for_s`` seconds; then raise its error.
        Other errors are raised at once.

        ``twice=False``: do not retry when the call may have been committed. ``outlast_lock``: wait for as
        long as it takes while another program has the database locked; the seconds count from the end of
        that."""
        give_up, delays = time.monotonic() + for_s, RetryDelays()
        while True:
            try:
                return await self.call(verb)
            except StoreUnavailable as error:
                if isinstance(error, CommitUncertain) and not twice:
                    raise
                pause_s = delays.next_s()
                if outlast_lock and isinstance(error, StoreLocked):
                    give_up = time.monotonic() + for_s
                elif time.monotonic() + pause_s > give_up:
                    raise
                await asyncio.sleep(pause_s)

    def _serve(self, opened: asyncio.Future[None]) -> None:
        """Open the store, serve calls until the end, and close it; this is the thread. An ``Exception`` of a
        call is its caller's. Anything else (``BaseException``) ends the thread, since nobody knows in which
        state the store is then."""
        try:
            store = self._open_store()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits for the thread
            self._resolve(opened, None, error)
            return
        self._resolve(opened, None, None)
        try:
            while (call := self._calls.get()) is not None:
                verb, answer, then = call
                try:
                    value = verb(store)
                except Exception as error:  # noqa: BLE001 - handed to the caller
                    self._resolve(answer, None, error)
                else:
                    self._resolve(answer, value, None, then)
        except BaseException as error:  # noqa: BLE001 - the thread ends, and all calls fail
            # In the loop's own thread, so that no call slips in between the look and the end.
            self._loop.call_soon_threadsafe(self._abandon, answer, error)
        finally:
            store.close()
            self._resolve(self._ended, None, None)

    def _abandon(self, answer: asyncio.Future[Any], error: BaseException) -> None:
        """Fail the call that ended the thread, all that wait, and all that follow. It runs in the event
        loop."""
        self._dead = StoreThreadEnded(f"the {self._name} thread has ended: {error!r}; start the node again")
        self._dead.__cause__ = error
        _set(answer, None, self._dead)
        while not self._calls.empty():
            if (call := self._calls.get()) is not None:
                _set(call.answer, None, self._dead)

    def _resolve(
        self, answer: asyncio.Future[Any], value: Any, error: BaseException | None, then: _Then | None = None
    ) -> None:
        with suppress(RuntimeError):  # the loop has closed: nobody waits for it any more
            self._loop.call_soon_threadsafe(_set, answer, value, error, then)


def _set(
    answer: asyncio.Future[Any], value: Any, error: BaseException | None, then: _Then | None = None
) -> None:
    if answer.done():
        return  # its caller was cancelled
    if error is None and then is not None:
        try:
            then(value)
        except Exception as failure:  # noqa: BLE001 - handed to the caller
            error = failure
    if error is None:
        answer.set_result(value)
    else:
        answer.set_exception(error)
