"""When the engine itself clears away what its two hot tables shed.

Every job leaves a dead row in ``ready`` and one in ``leases``, and every claim looks for the first that is alive: after
300,000 jobs a claim costs four times as much. Autovacuum comes once a minute, which is a million jobs too late.
So who grants leases vacuums both tables now and then, never for more than a small part of its time. A role that may not
(it does not own the tables) is told so by a warning, and has autovacuum alone.
"""

import time
from collections.abc import Callable

EVERY = 10_000
"""So many jobs are granted before it is worth it."""
SHARE = 0.02
"""The part of its time that a node spends on it at most: beside a million pending jobs it takes longer, and is done
less often."""


def statement(schema: str) -> str:
    """``truncate off``: to give pages back it would lock others out. ``skip_locked``: another node may be at it. The
    tables bear their schema, because behind a pooler no session remembers one."""
    return f'vacuum (skip_locked, truncate off) "{schema}".ready, "{schema}".leases'


class VacuumSchedule:
    """Remembers how much has been granted since, and how long it took."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._granted = 0
        self._not_before = 0.0

    def granted(self, jobs: int) -> None:
        """So many more."""
        self._granted += jobs

    def due(self) -> bool:
        """Whether it is worth it now."""
        return self._granted >= EVERY and self._clock() >= self._not_before

    def run(self, vacuum: Callable[[], object]) -> None:
        """Do it."""
        began = self._clock()
        vacuum()
        ended = self._clock()
        self._granted = 0
        self._not_before = ended + (ended - began) / SHARE
