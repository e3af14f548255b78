"""What is done once, when the process of the tests ends."""

import atexit
import os
from collections.abc import Callable

_KEPT: list[Callable[[], object]] = []


def at_process_end(close: Callable[[], object]) -> None:
    """Call ``close`` when this process ends, and not in processes that are forked from it.

    What ``close`` belongs to is kept until then. ``atexit`` alone does not keep it: from Python 3.13 on a child of
    ``multiprocessing`` drops the functions of its parent, and a temporary folder is removed with the last reference to
    it."""
    _KEPT.append(close)
    atexit.register(_in_process, os.getpid(), close)


def _in_process(pid: int, close: Callable[[], object]) -> None:
    if os.getpid() == pid:
        close()
