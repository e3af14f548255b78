"""Delays between retries: they grow, and are random, so that nodes do not retry at the same time.

Each delay is twice the one before, up to a most, and each is multiplied by a random factor. Whoever retries
makes one ``RetryDelays`` for each operation and calls ``next_s`` after each failure."""

import random
from collections.abc import Callable

FIRST_S = 0.05
"""The first delay by default, in seconds: a lost connection is mostly there again at once."""
MOST_S = 2.0
"""The longest delay by default, in seconds, before the random factor."""


class RetryDelays:
    """The delays of one operation that is retried."""

    def __init__(
        self, first_s: float = FIRST_S, most_s: float = MOST_S, draw: Callable[[], float] = random.random
    ) -> None:
        self._first_s, self._most_s, self._draw = first_s, most_s, draw
        self._s = first_s

    def next_s(self) -> float:
        """Return the seconds to wait after another failure, drawn between half and one and a half of the step, so that
        all clients of one lost database do not come back to it at the same moment."""
        step_s = self._s
        self._s = min(2 * step_s, self._most_s)
        return step_s * (0.5 + self._draw())

    def reset(self) -> None:
        """Start again with the shortest delay, after a success."""
        self._s = self._first_s
