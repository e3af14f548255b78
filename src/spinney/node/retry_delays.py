"""Pauses between tries that failed: they grow, and no two nodes keep the same ones."""

import random
from collections.abc import Callable

FIRST_S = 0.05
MOST_S = 2.0


class RetryDelays:
    """Of one thing that is tried again and again."""

    def __init__(
        self, first_s: float = FIRST_S, most_s: float = MOST_S, draw: Callable[[], float] = random.random
    ) -> None:
        self._first_s, self._most_s, self._draw = first_s, most_s, draw
        self._s = first_s

    def next_s(self) -> float:
        """It has failed again: how long to wait now, drawn between half and one and a half times what it would be,
        so that all who lost one database do not come back to it in one moment."""
        step_s = self._s
        self._s = min(2 * step_s, self._most_s)
        return step_s * (0.5 + self._draw())

    def reset(self) -> None:
        """It has worked."""
        self._s = self._first_s
