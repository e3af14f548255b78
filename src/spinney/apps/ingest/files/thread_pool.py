"""Threads that a process keeps: to start one takes longer than to fetch or sync a small file."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

MOST = 64
"""Beyond what one call asks for; what finds no thread waits for one."""


def hands() -> ThreadPoolExecutor:
    """For short tasks that wait for disk or network, and never for one another."""
    return _hands(os.getpid())


@lru_cache(maxsize=1)
def _hands(_pid: int) -> ThreadPoolExecutor:
    # By process, for threads do not cross a fork.
    return ThreadPoolExecutor(MOST, thread_name_prefix="spinney-ingest")
