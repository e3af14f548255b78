"""Below which place of a lane nothing stands in ``ready``, and below which fence nothing in ``leases``.

A row that is deleted stays in PostgreSQL's indexes until it is vacuumed, and none can be while anybody's transaction
is open that began before: an export, a dump, a forgotten session. Every claim looks for the first row that is alive,
and would walk through all that have gone since. So every few thousand jobs the claim writes down what it found first,
a **low mark** a lane, and claims begin there.

Whoever puts a row into ``ready`` compares its place with the mark, and lowers the mark first where the row comes below
(``entered``, ``entered_among``): so a mark is never above a row. Marks change in the order of the writers' turns, and
each transaction reads them anew when ``counters.watermarks`` has moved. A file has no such rows, and no marks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from spinney.model.types import QueueSpec
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry.ready_order import POSITIONS, share_sql

Key = tuple[int, int, str]
"""(priority, share, position): where a row stands in its lane."""
EVERY = 5_000
"""So many jobs are granted between two marks: through so many rows that are gone a claim may walk."""
LEAST_SHARE = -(2**62)
_LEASES = 0
"""The row that says it of ``leases``; no lane has that number."""


class Watermarks:
    """As the current transaction sees them."""

    def __init__(self) -> None:
        self.fence = 0
        """No lease has a fence below it."""
        self._ready: dict[int, Key] = {}
        self._before: Mapping[int, Key] = {}
        """As they were when the transaction began: what a savepoint takes back is compared with these."""
        self._lowered = False
        self._version = 0
        self._granted = 0

    def forget(self) -> None:
        """What a rolled-back transaction had marked must not be believed."""
        self._version = -1

    def refresh(self, tx: Tx, version: int) -> None:
        """Read them if they have moved."""
        if version == self._version:
            if self._lowered:
                self._before, self._lowered = dict(self._ready), False
            return
        self._ready = {
            lane: (priority, share, position)
            for lane, priority, share, position in tx.all(
                "select lane, priority, share, position from low_watermarks"
            )
        }
        self.fence = self._ready.pop(_LEASES, (0, 0, ""))[1]
        self._before, self._lowered = dict(self._ready), False
        self._version = version

    # --- for who claims -------------------------------------------------------------------

    def start(self, lane: int, above: int) -> Key:
        """From where on a lane is to be looked through for what is less urgent than ``above``."""
        return max(self._ready.get(lane, (-1, LEAST_SHARE, "")), (above + 1, LEAST_SHARE, ""))

    def start_of(self, lane: int, priority: int, after: int) -> tuple[int, str]:
        """The same within one priority, for shares behind ``after``: (share, position)."""
        mark = self._ready.get(lane)
        behind = (after + 1, "")
        return behind if mark is None or mark[0] != priority else max(mark[1:], behind)

    def low(self, lane: int, priority: int, share: int) -> str:
        """The same within one share: a position."""
        mark = self._ready.get(lane)
        return mark[2] if mark is not None and mark[:2] == (priority, share) else ""

    def granted(self, jobs: int) -> None:
        """So many more."""
        self._granted += jobs

    def note(self, tx: Tx, first: dict[int, Key]) -> None:
        """Of these lanes this is what stands first now."""
        if self._granted < EVERY or not tx.postgresql:
            return
        self._granted = 0
        self._ready |= first
        self._before = {**self._before, **first}
        self.fence = tx.value(
            "select coalesce((select fence from leases where fence >= ? order by fence limit 1), "
            "(select value + 1 from counters where name = 'fence'))",
            (self.fence,),
        )
        rows = [(lane, *key) for lane, key in first.items()]
        for row in [*rows, (_LEASES, 0, self.fence, "")]:
            tx.run(
                "insert into low_watermarks (lane, priority, share, position) values (?, ?, ?, ?) on conflict (lane) "
                "do update set priority = excluded.priority, share = excluded.share, position = excluded.position",
                row,
            )
        self._version = tx.take("watermarks")

    # --- for who puts something into ready ------------------------------------------------

    def entered(self, tx: Tx, lane: int, key: Key) -> None:
        """A row is put there."""
        before = self._before.get(lane)
        if before is None or key >= before:
            return
        self._ready[lane], self._lowered = min(key, self._ready[lane]), True
        tx.run(
            "update low_watermarks set priority = ?, share = ?, position = ? "
            "where lane = ? and (priority, share, position) > (?, ?, ?)",
            (*key, lane, *key),
        )
        self._version = tx.take("watermarks")

    def entered_among(self, tx: Tx, lane: int, queue: QueueSpec, jobs: str, args: Sequence[Any]) -> None:
        """Rows of these jobs (a source that has ``jobs`` in it) are put there."""
        if lane not in self._before:
            return
        lowest = tx.one(
            f"select min(jobs.priority), min({share_sql(queue)}), min({POSITIONS[queue.order]}) from {jobs}",
            args,
        )
        if lowest[0] is not None:
            self.entered(tx, lane, (int(lowest[0]), int(lowest[1]), lowest[2]))
