"""When a node itself vacuums the two hot tables of a PostgreSQL database.

Every job leaves a dead row in ``ready`` and one in ``leases``, and every claim looks for the first live one: after
300,000 jobs a claim takes four times as long. Autovacuum runs once a minute, which is a million jobs too late. So a
node that grants leases vacuums both tables from time to time, for a small part of its time. A role that may not vacuum
(because it does not own the tables) gets a warning from the server, and relies on autovacuum.
"""

import time
from collections.abc import Callable

EVERY = 10_000
"""The number of granted leases after which a vacuum is worth it."""
SHARE = 0.02
"""The largest part of its time that a node spends on it. Beside a million pending jobs a vacuum takes longer, and is
run less often."""


def statement(schema: str) -> str:
    """Return the statement. ``truncate off``, because returning pages to the system would lock others out;
    ``skip_locked``, because another node may vacuum at the same time. The tables are named with their schema, because
    no setting of a session outlasts a transaction behind a pooler."""
    return f'vacuum (skip_locked, truncate off) "{schema}".ready, "{schema}".leases'


class VacuumSchedule:
    """Counts granted leases, and measures how long the last vacuum took. Each node counts its own, so all
    nodes together vacuum once for about so many jobs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._granted = 0
        self._not_before = 0.0

    def granted(self, jobs: int) -> None:
        """Count jobs that were granted: each leaves two dead rows."""
        self._granted += jobs

    def due(self) -> bool:
        """Return whether enough jobs were granted since the last vacuum, and the pause after it is over."""
        return self._granted >= EVERY and self._clock() >= self._not_before

    def run(self, vacuum: Callable[[], object]) -> None:
        """Run the vacuum, and begin to count anew."""
        began = self._clock()
        vacuum()
        ended = self._clock()
        self._granted = 0
        self._not_before = ended + (ended - began) / SHARE
