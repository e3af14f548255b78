"""Database trouble of a node: it is logged once when it begins, now and then while it lasts, and once when it is over.

Every loop of a node meets the same trouble, and each retries by itself. So none of them logs its own retries: the
threads that own the stores (``store_thread``) report the outcome of each call to this module. A node is *degraded*
while the last call of any of them has failed; it keeps its leases, its workers continue, and their records are held
back."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from spinney.model.errors import StoreReplaced, StoreUnavailable, StoreUnusable
from spinney.model.fleet import OVER
from spinney.node.retry_delays import MOST_S

log = logging.getLogger(__name__)

AGAIN_S = 10.0
"""Seconds between two log lines while it lasts."""
QUIET_S = 2 * MOST_S
"""Seconds without a failure before it counts as over: longer than the longest pause of an operation that is retried,
because others may succeed meanwhile, as reading does where nothing can be written."""
REMEMBERED_S = 60.0
"""Seconds for which ``spinney nodes`` shows trouble that is over: while it lasts, the node cannot report it."""


class NodeHealth:
    """The health of one node. Everything runs in its event loop, except ``text``, which any thread may call."""

    def __init__(
        self,
        *,
        held_back: Callable[[], int] = lambda: 0,
        on_error: Callable[[StoreUnusable], object] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """``held_back``: how many records wait for the database. ``on_error`` is called with each error."""
        self._held_back, self._on_error, self._monotonic, self._wall = held_back, on_error, monotonic, wall
        self._failing: set[str] = set()
        self._degraded = False
        self._has_begun = False
        """Whether a call has succeeded."""
        self._why = ""
        self._failed_at = 0.0
        self._since = self._since_wall = self._say_at = 0.0
        self._most_held = 0
        self._past: tuple[str, float] | None = None
        """Trouble that is over, and until when (monotonic) it is shown."""
        self._lasting: dict[str, str] = {}
        """What is wrong beside the database, by part of the node."""

    @property
    def is_degraded(self) -> bool:
        """Return whether the last call of some thread has failed, or another trouble lasts."""
        return self._degraded or bool(self._lasting)

    def failed(self, thread: str, error: StoreUnusable) -> None:
        """Note that a call of this thread has failed because of the database. The first failure begins the
        trouble, and each is passed to ``on_error``. A node that has not begun ends with an error that is not
        retried, which it prints, and every node ends when its store was replaced; nothing is logged of these here."""
        if self._on_error is not None:
            self._on_error(error)
        ends = not self._has_begun and not isinstance(error, StoreUnavailable)
        if ends or isinstance(error, StoreReplaced):
            return
        now = self._monotonic()
        held = self._held_back()
        self._why = str(error)
        if not self._degraded:
            self._since, self._since_wall, self._most_held = now, self._wall(), held
            # The heartbeat's thread may call ``text`` from here on: what it reads is set before.
            self._degraded = True
            self._say_at = now + AGAIN_S
            log.error("degraded: %s; running attempts continue, and are recorded when that is fixed", error)
        elif now >= self._say_at:
            self._say_at = now + AGAIN_S
            log.error("degraded for %.0f s, %d records held back: %s", now - self._since, held, error)
        self._failing.add(thread)
        self._failed_at = now
        self._most_held = max(self._most_held, held)

    def worked(self, thread: str) -> None:
        """Note that a call of this thread has succeeded. The trouble is over when the last call of each
        thread has succeeded, and none has failed for ``QUIET_S`` seconds."""
        self._has_begun = True
        if not self._degraded:
            return
        self._failing.discard(thread)
        now = self._monotonic()
        if self._failing or now - self._failed_at < QUIET_S:
            return
        self._degraded = False
        lasted_s = self._failed_at - self._since
        log.warning(
            "%s, after %.1f s in which up to %d records were held back",
            "the store works again, but the node is still degraded"
            if self._lasting
            else "no longer degraded",
            lasted_s,
            self._most_held,
        )
        text = f"{OVER} {_clock(self._since_wall)} to {_clock(self._since_wall + lasted_s)} UTC: {self._why}"
        self._past = (text, now + REMEMBERED_S)

    def lasts(self, part: str, problem: str | None) -> None:
        """Set another trouble of this part of the node, which degrades it while it lasts, such as a folder root that
        cannot be written to; None: there is none. It is logged when it begins or changes, and when it is over."""
        # Replaced, not changed, because the heartbeat's thread may be reading it.
        others = {other: text for other, text in self._lasting.items() if other != part}
        before = self._lasting.get(part)
        if problem is None:
            if before is not None:
                still = "still" if others or self._degraded else "no longer"
                log.warning("%s degraded; resolved: %s", still, before)
            self._lasting = others
            return
        if problem != before:
            log.error("degraded: %s", problem)
        self._lasting = others | {part: problem}

    def text(self) -> str | None:
        """Return the trouble for ``spinney nodes``, also one that was over not long ago. None: there is none."""
        past, lasting = self._past, self._lasting
        if lasting:
            return "; ".join(lasting.values())
        if self._degraded:
            return f"is cut off since {_clock(self._since_wall)} UTC: {self._why}"
        return past[0] if past is not None and self._monotonic() < past[1] else None


def _clock(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, UTC).strftime("%H:%M:%S")
