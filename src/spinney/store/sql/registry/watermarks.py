"""Low watermarks: no row of ``ready`` is below a lane's mark, and no row of ``leases`` below a fence.

A row that is deleted stays in PostgreSQL's indexes until it is vacuumed, which is impossible while an older transaction
is open: an export, a dump, a forgotten session. Every claim searches the first live row, and would scan all dead rows
before it. So every few thousand jobs the claim stores the first rows that it found, as a **low mark** for each lane,
and claims begin there.

Code that inserts a row into ``ready`` compares its key with the mark, and lowers the mark first where the row is below
it (``entered``, ``entered_among``): so a mark is never above a row. Marks change in the order of the writers, and each
transaction reads them again when ``counters.watermarks`` has changed. A database file has no dead rows, and no marks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from spinney.model.settings.queues import QueueSpec
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry.ready_order import POSITIONS, share_sql

Key = tuple[int, int, str]
"""(priority, share, position): the key of a row in its lane."""
EVERY = 5_000
"""How many jobs are granted between two marks: a claim may have to scan so many dead rows."""
LEAST_SHARE = -(2**62)
_LEASES = 0
"""The row for ``leases``; no lane has this id."""


class Watermarks:
    """The watermarks, as the current transaction sees them.

    A lane without a mark is searched from its beginning. In a savepoint that is rolled back marks may have
    been lowered that the database has not: ``_before`` has those that are certainly stored, by which
    ``entered`` decides."""

    def __init__(self) -> None:
        self.fence = 0
        """No lease has a lower fence."""
        self._ready: dict[int, Key] = {}
        self._before: Mapping[int, Key] = {}
        """The marks at the start of the transaction, which are valid also after a savepoint is rolled back."""
        self._lowered = False
        self._version = 0
        self._granted = 0

    def forget(self) -> None:
        """Drop the marks after a rollback, because they may be of that transaction."""
        self._version = -1

    def refresh(self, tx: Tx, version: int) -> None:
        """Read the marks if they have changed."""
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

    # --- for claims -------------------------------------------------------------------

    def start(self, lane: int, above: int) -> Key:
        """Return the key from which on a lane is to be searched for jobs less urgent than ``above``."""
        return max(self._ready.get(lane, (-1, LEAST_SHARE, "")), (above + 1, LEAST_SHARE, ""))

    def start_of(self, lane: int, priority: int, after: int) -> tuple[int, str]:
        """Return the start within one priority, for shares after ``after``: (share, position)."""
        mark = self._ready.get(lane)
        behind = (after + 1, "")
        return behind if mark is None or mark[0] != priority else max(mark[1:], behind)

    def low(self, lane: int, priority: int, share: int) -> str:
        """Return the start within one share: a position."""
        mark = self._ready.get(lane)
        return mark[2] if mark is not None and mark[:2] == (priority, share) else ""

    def granted(self, jobs: int) -> None:
        """Count jobs that were granted, after some thousands of which the low marks are stored anew."""
        self._granted += jobs

    def note(self, tx: Tx, first: dict[int, Key]) -> None:
        """Store the first rows of these lanes as marks, when enough jobs were granted. The caller has read
        them in this transaction, so no row can be before them. The lowest fence of ``leases`` is stored with
        them, or the next one when there are no leases."""
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
        tx.many(
            "insert into low_watermarks (lane, priority, share, position) values (?, ?, ?, ?) on conflict (lane) "
            "do update set priority = excluded.priority, share = excluded.share, position = excluded.position",
            [*rows, (_LEASES, 0, self.fence, "")],
        )
        self._version = tx.take("watermarks")

    # --- for inserts into ready ------------------------------------------------

    def entered(self, tx: Tx, lane: int, key: Key) -> None:
        """Lower the mark if needed, because a row is inserted there. Usually a new row is behind the mark,
        and nothing is written; a more urgent one, or a returned one, may be before it."""
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
        """Lower the mark if needed, because rows of these jobs (an SQL source with ``jobs``) are inserted."""
        if lane not in self._before:
            return
        lowest = tx.one(
            f"select min(jobs.priority), min({share_sql(queue)}), min({POSITIONS[queue.order]}) from {jobs}",
            args,
        )
        if lowest[0] is not None:
            self.entered(tx, lane, (int(lowest[0]), int(lowest[1]), lowest[2]))
