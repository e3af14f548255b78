"""One way to wait in tests: for a condition, with a deadline that only a fault reaches."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
DEADLINE_S = 60.0
"""Only for what never happens: on a busy machine everything may take many times as long as on an idle one."""


def until(look: Callable[[], T], what: str | Callable[[], object] = "", deadline_s: float = DEADLINE_S) -> T:
    """Return what ``look`` returns, as soon as it is true.

    ``what`` is waited for, or a function that returns what to show where it does not come. Raises AssertionError
    behind the deadline; an error of ``look`` passes, so that it may check what must hold meanwhile.
    """
    began_s = time.monotonic()
    while True:
        looked_s = time.monotonic()
        if value := look():
            return value
        now_s = time.monotonic()
        if now_s - began_s > deadline_s:
            shown = (what() if callable(what) else what) or look
            raise AssertionError(f"did not happen in {deadline_s:g} s: {shown}")
        # A look that is expensive, such as a command, must not keep a processor from what is waited for.
        time.sleep(max(2 * (now_s - looked_s), min(0.005 + (now_s - began_s) / 20, 0.1)))
