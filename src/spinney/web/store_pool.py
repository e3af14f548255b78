"""Threads that each have a store of their own, and answer for requests.

A store belongs to one thread and waits while it works, so that no event loop may call it. What is short and what is
long have threads apart: who waits for a verb over a million jobs keeps nobody from looking at one.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from spinney.model.errors import StoreUnavailable
from spinney.store.contract import Store
from spinney.web.stats_cache import StatsCache

T = TypeVar("T")

LONG_THREADS = 2
CACHE_KIB = 2_048
"""Of a file each connection of each thread keeps so much; the operating system keeps the rest for all of them."""
QUEUED_MAX = 500
"""So many calls may wait; more are refused at once, so that those that wait are still answered in time."""


class ServerBusy(StoreUnavailable):
    """More is asked than can be answered; wait a moment and ask again."""


class StorePool:
    """``async with`` opens the threads; leaving closes what they opened."""

    def __init__(self, open_: Callable[[], Store], *, threads: int) -> None:
        self._open = open_
        self._mine = threading.local()
        self._opened: list[Store] = []
        self._lock = threading.Lock()
        self._short = ThreadPoolExecutor(threads, thread_name_prefix="store")
        self._long = ThreadPoolExecutor(LONG_THREADS, thread_name_prefix="store-long")
        self._waiting = 0
        self.stats_cache = StatsCache()
        """For all who look at them."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for pool in (self._short, self._long):
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)
        for store in self._opened:
            store.close()

    async def run(self, call: Callable[[Store], T], *, long: bool = False) -> T:
        """What ``call`` returns, or raises, with the store of a thread. It is not cut off when nobody waits any more.

        ``long``: it may take more than some 100 ms. Raises Busy.
        """
        if self._waiting >= QUEUED_MAX:
            raise ServerBusy("more is asked of this server than it can answer; wait a moment and ask again")
        self._waiting += 1
        try:
            pool = self._long if long else self._short
            return await asyncio.get_running_loop().run_in_executor(pool, lambda: call(self._store()))
        finally:
            self._waiting -= 1

    def _store(self) -> Store:
        store: Store | None = getattr(self._mine, "store", None)
        if store is None:
            store = self._mine.store = self._open()
            with self._lock:
                self._opened.append(store)
        return store
