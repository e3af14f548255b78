"""Measure how long an event loop is blocked, and by which attempt.

While a coroutine calls what blocks, no other one gets on, and the time limits of all go on. So a thread asks the loop
again and again to call it back. As long as the loop does not, the thread looks for which attempt it is working. Code
that also keeps the interpreter's lock (a long call of a C library) stops this thread, too, and is not noticed."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable

from spinney.node.worker.attempt_output import current_output

LOOK_S = 0.2
"""Seconds between two looks at the loop."""
BLOCKED_S = 0.5
"""From how many seconds on a loop that does not call back counts as blocked."""


class LoopWatch:
    """Watches one event loop, which runs in a thread of its own."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        thread: threading.Thread,
        *,
        is_busy: Callable[[], bool],
        on_blocked: Callable[[float, int], object],
    ) -> None:
        """``thread``: where the loop runs. ``is_busy`` returns whether there is still something to watch.
        ``on_blocked`` is called, in the watching thread, with the seconds for which the attempt with this fence has
        blocked the loop since the last call, or since the loop has turned."""
        self._loop, self._thread, self._is_busy, self._on_blocked = loop, thread, is_busy, on_blocked
        self._wanted = threading.Event()
        self._has_turned = True
        threading.Thread(target=self._run, name="event loop watch", daemon=True).start()

    def begin(self) -> None:
        """Watch from now on, until the loop is not busy any more."""
        self._wanted.set()

    def working_for(self) -> int | None:
        """Return the fence of the attempt for which the loop is working at this moment; None: there is none. It is
        recognized by the context of the callback at which the loop's thread stands, which tasks and callbacks inherit
        from the attempt that has started them."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        while frame is not None and frame.f_code is not asyncio.Handle._run.__code__:
            frame = frame.f_back
        # The callback may have ended meanwhile: the method forgets its handle then.
        handle = None if frame is None else frame.f_locals.get("self")
        output = None if handle is None else handle._context.get(current_output)
        return None if output is None else int(output.fence)

    def _run(self) -> None:
        while self._wanted.wait():
            self._wanted.clear()
            self._watch()

    def _watch(self) -> None:
        since_s, least_s = 0.0, BLOCKED_S
        blocker: int | None = None
        while True:
            now_s = time.monotonic()
            if self._has_turned:
                if not self._is_busy():
                    return
                self._has_turned, since_s, least_s, blocker = False, now_s, BLOCKED_S, None
                self._loop.call_soon_threadsafe(self._turn)
            else:
                last_blocker, blocker = blocker, self.working_for()
                if blocker is None or last_blocker not in (None, blocker):
                    # The loop gets on, with many callbacks in one turn: it is busy, but nobody blocks it.
                    since_s, least_s = now_s, BLOCKED_S
                elif now_s - since_s >= least_s:
                    self._on_blocked(now_s - since_s, blocker)
                    since_s, least_s = now_s, 0.0
            time.sleep(LOOK_S)

    def _turn(self) -> None:
        self._has_turned = True
