"""Threads for requests, each with a store of its own.

A store belongs to one thread and blocks it, so the event loop must not call it. Short and long calls have separate
threads: an action on a million jobs must not delay the page of one job. So have calls that also look at the folder
root: where that is a network share which does not answer, only these wait for it.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Self, TypeVar

from spinney.model.errors import StoreReplaced, StoreUnavailable, StoreUnusable
from spinney.store.parts import Store
from spinney.web.stats_cache import StatsCache

T = TypeVar("T")

LONG_THREADS = 2
"""How many threads there are for calls that take long."""
DISK_THREADS = 4
"""How many threads there are for short calls that also use the folder root."""
CACHE_KIB = 2_048
"""The page cache of each SQLite connection, in KiB; the operating system's cache holds the rest for all of them."""
QUEUED_MAX = 500
"""The maximum number of calls of one kind that wait; more are refused at once, so that those that wait are answered in
time. Each kind has its own, because clients repeat uploads to a folder root that does not answer."""


LOGGED_EVERY_S = 10.0
"""While the store does not answer, how many seconds pass between two lines of the log, since every request meets the
same error."""

log = logging.getLogger(__name__)


class ServerBusy(StoreUnavailable):
    """More calls wait than this server can answer in time; try again in a moment."""

    is_public = True


class StorePool:
    """Runs calls in threads within ``async with``; leaving closes their stores. Stores are opened when a
    thread needs its first one."""

    def __init__(self, open_: Callable[[], Store], *, threads: int) -> None:
        self._open = open_
        self._mine = threading.local()
        self._opened: list[Store] = []
        self._lock = threading.Lock()
        self._pools = {
            (False, False): ThreadPoolExecutor(threads, thread_name_prefix="store"),
            (True, False): ThreadPoolExecutor(LONG_THREADS, thread_name_prefix="store-long"),
            (False, True): ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="store-disk"),
            (True, True): ThreadPoolExecutor(LONG_THREADS, thread_name_prefix="store-long-disk"),
        }
        """The threads by whether a call takes long, and whether it also uses the folder root."""
        self._waiting: Counter[ThreadPoolExecutor] = Counter()
        self._log_again_s = 0.0
        self.on_error: Callable[[StoreUnusable], None] = lambda error: None
        """Called with each error of the database."""
        self.replaced: StoreReplaced | None = None
        """The error by which a call found that the store is another one now: no store of this pool works again."""
        self.on_replaced: Callable[[], None] = lambda: None
        """Called when ``replaced`` is set, perhaps more than once."""
        self.stats_cache = StatsCache()
        """Statistics that requests share."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for pool in self._pools.values():
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)
        for store in self._opened:
            store.close()

    async def run(self, call: Callable[[Store], T], *, long: bool = False, disk: bool = False) -> T:
        """Return or raise what ``call`` does with the store of a thread. Short calls share ``threads`` threads, long
        ones ``LONG_THREADS``; those that use the folder root have threads of their own. A call waits for a free one.
        One that has begun ends even when the caller is cancelled.

        ``long``: it may take more than some 100 ms. ``disk``: it also uses the folder root. Raises ServerBusy when
        ``QUEUED_MAX`` calls of its kind are waiting or running."""
        pool = self._pools[long, disk]
        if self._waiting[pool] >= QUEUED_MAX:
            raise ServerBusy("this server is overloaded; try again in a moment")
        self._waiting[pool] += 1
        try:
            inside = copy_context()  # jobs that are submitted are in the trace of the request
            return await asyncio.get_running_loop().run_in_executor(
                pool, lambda: inside.run(call, self._store())
            )
        except StoreUnusable as error:
            self._failed(error)
            if isinstance(error, StoreReplaced):
                self.replaced = error
                self.on_replaced()
            raise
        finally:
            self._waiting[pool] -= 1

    def _failed(self, error: StoreUnusable) -> None:
        """Report an error of the database. The log gets the message of a store that does not answer, because callers
        who are not known do not get it."""
        self.on_error(error)
        now_s = time.monotonic()
        if isinstance(error, StoreUnavailable) and now_s >= self._log_again_s:
            self._log_again_s = now_s + LOGGED_EVERY_S
            log.error("%s", error)

    def _store(self) -> Store:
        """Return the store of this thread; open it at the first call."""
        store: Store | None = getattr(self._mine, "store", None)
        if store is None:
            store = self._mine.store = self._open()
            with self._lock:
                self._opened.append(store)
        return store
