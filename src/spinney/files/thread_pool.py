"""The threads that a process keeps, since starting one takes longer than fetching or syncing a small file."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

MOST = 64
"""The number of threads, more than one call uses; a task without a free thread waits for one."""


def thread_pool() -> ThreadPoolExecutor:
    """Return the pool for short tasks that wait for disk or network, and never for one another."""
    return _thread_pool(os.getpid())


@lru_cache(maxsize=1)
def _thread_pool(_pid: int) -> ThreadPoolExecutor:
    # By process, for threads do not cross a fork.
    return ThreadPoolExecutor(MOST, thread_name_prefix="spinney-ingest")
