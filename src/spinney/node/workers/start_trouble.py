"""Whether workers can be started: a pause after a start that failed, and the report of trouble that lasts."""

import asyncio
import time
from collections.abc import Callable

START_PAUSE_S = 1.0
"""How long no worker is started after one could not be started, in seconds."""
START_TROUBLE_S = 60.0
"""How long it counts as trouble that a worker could not be started, when none was needed since, in seconds."""
_SLACK_S = 0.01
"""How much a timer may fire early by another clock, in seconds."""


class StartTrouble:
    """What keeps the workers of a node from being started, in the event loop."""

    def __init__(self, report: Callable[[str | None], None], claim_again: Callable[[], None]) -> None:
        """``report`` is called with why workers cannot be started, and with None when they can; ``claim_again`` is
        called after each pause."""
        self._report, self._claim_again = report, claim_again
        self.not_before = 0.0
        """No worker is started before this time of the monotonic clock."""
        self._failed_at: float | None = None
        """When the last start failed; None: that was long ago, or one has succeeded since."""

    def pause(self) -> None:
        """Start no worker for ``START_PAUSE_S`` seconds, because one could not be started or did not become ready: a
        broken application or a full disk must not turn the node into a loop of dying processes. Then claim again."""
        self.not_before = time.monotonic() + START_PAUSE_S
        # Only then lanes that need a start are claimed from again, and no other event may trigger that.
        asyncio.get_running_loop().call_later(START_PAUSE_S + _SLACK_S, self._claim_again)

    def failed(self, why: str) -> None:
        """Note that workers cannot be started. Only the first cause is reported: further ones come every second."""
        if self._failed_at is None:
            self._report(f"the node cannot start a worker: {why}")
        self._failed_at = time.monotonic()

    def ended(self) -> None:
        """Note that workers can be started, if it was thought that they cannot."""
        if self._failed_at is not None:
            self._failed_at = None
            self._report(None)

    def forget_old(self, now: float) -> None:
        """End the trouble when no start has failed for ``START_TROUBLE_S`` seconds. ``now``: the time of the
        monotonic clock."""
        if self._failed_at is not None and now - self._failed_at > START_TROUBLE_S:
            self.ended()
