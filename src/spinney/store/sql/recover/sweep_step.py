"""Housekeeping in bounded steps; any process may do it at any time, also several at once.

What waits for a time is found here, since nobody else looks: scheduled jobs, locks that were reserved in
vain, jobs whose stage no application has any more. What is found is checked again in the transaction that
changes it, so a second sweeper finds nothing left to do. ``SqlStore.sweep`` calls the steps in order and adds
those of other modules."""

from collections.abc import Collection, Sequence

from spinney.model.states import State
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.registry import Lane, Registry
from spinney.store.sql.transitions import locks, ready_moves
from spinney.store.sql.transitions.cascades import Cascade

PLAIN_LEAST = 10
"""Fewer due jobs are placed one by one, which takes fewer statements then."""
RESERVED_US = 60_000_000
"""How long a lock is reserved for a job that was woken for it; after that its lane sleeps or its queue is stopped."""


class SweepStep:
    """One bounded step of housekeeping in one transaction; ``more``: another step would find something to do.
    ``limit``: how many jobs it changes one by one; ``plain_limit``: how many due jobs it places."""

    def __init__(self, tx: Tx, registry: Registry, now_us: int, limit: int, plain_limit: int) -> None:
        self.tx, self.registry, self.now_us, self.limit = tx, registry, now_us, limit
        self._plain_limit = plain_limit
        self.cascade = Cascade(tx, registry, now_us)
        self.more = False

    def due(self) -> int:
        """Place jobs whose time has come, the earliest first, up to the limits; return how many.

        They are found by the partial index on ``wake_us``, which only jobs that wait for a time are in. Those that
        nothing else keeps are moved by set statements."""
        job_ids = self.tx.column(
            "select job_id from inactive_jobs where wake_us is not null and wake_us <= ? order by wake_us limit ?",
            (self.now_us, self._plain_limit),
        )
        moved = self._move_plain(job_ids)
        others = [job_id for job_id in job_ids if job_id not in moved]
        for job_id in others[: self.limit]:
            row = job_rows.existing(self.tx, job_id)
            if row is not None:
                self.cascade.place(row)
            else:  # otherwise it would be due for ever, before all others
                self.tx.run("update inactive_jobs set wake_us = null where job_id = ?", (job_id,))
        self.cascade.drain()
        self.more = self.more or len(job_ids) == self._plain_limit or len(others) > self.limit
        return len(moved) + min(len(others), self.limit)

    def _move_plain(self, job_ids: Sequence[int]) -> Collection[int]:
        """Make those of these due jobs claimable that only their time has kept, and return them."""
        if len(job_ids) < PLAIN_LEAST:
            return ()
        covered = hold_coverage.covered(self.tx, self.registry.holds, job_ids)
        free = [job_id for job_id in job_ids if job_id not in covered]
        groups = ready_moves.plain(self.tx, self.registry, free, self.now_us, State.SCHEDULED)
        ready_moves.to_ready(self.tx, self.registry, groups, State.SCHEDULED)
        return {job_id for group in groups.values() for job_id in group}

    def vanished_stages(self) -> None:
        """Hold jobs whose next stage their registered type does not have any more, with the reason. No node
        would ever claim them. Jobs of a type that nobody registers (any more) stay pending: a node with it
        may start."""
        lanes = [lane for lane in self.registry.lanes.values() if self._has_vanished(lane)]
        if not lanes:
            return
        rows = self.tx.all(
            "select lane, priority, share, position, job_id from ready "
            "where lane in (select j.value from json_each(?) j) limit ?",
            (list_text(lane.id for lane in lanes), self.limit),
        )
        for *key, job_id in rows:
            row = job_rows.existing(self.tx, job_id)
            if row is None:
                ready_moves.out_of_ready(self.tx, [tuple(key)])
                continue
            self.cascade.withdraw(row)
            reason = f"its next stage {row.stage!r} has vanished from job type {row.type!r}"
            self.cascade.set_aside(row, State.HELD, reason=reason)
        self.more = self.more or len(rows) == self.limit

    def _has_vanished(self, lane: Lane) -> bool:
        spec = self.registry.types.get(lane.type)
        return spec is not None and spec.stage(lane.stage) is None

    def free_locks(self, after: str) -> str:
        """Grant locks that have room while jobs wait, because a job that was woken for one may not have taken it, and
        because a larger capacity wakes jobs of the first locks of a family only. Return the position at which the next
        step goes on; empty: from the beginning. ``after``: the position that the step before has returned."""
        # A reservation that led to no claim for so long keeps the lock from others.
        reserved = self.tx.column(
            "select job_id from locks where fence = ? and since_us < ? limit ?",
            (locks.RESERVED, self.now_us - RESERVED_US, self.limit),
        )
        for job_id in reserved:
            self.cascade.free_locks(job_id, locks.RESERVED)
        # Then the locks that jobs wait for, by one seek in the partial index for each: as many as the limit allows,
        # from where the last call ended.
        position = after or "lock:"
        for _ in range(self.limit):
            waits_for = self.tx.value(
                "select min(waits_for) from inactive_jobs where waits_for > ? and waits_for like 'lock:%'",
                (position,),
            )
            if waits_for is None:
                position = ""
                break
            position = waits_for
            self.cascade.lock_freed(position[5:])
        self.cascade.drain()
        self.more = self.more or self.cascade.left_locks
        # A lock of which only some jobs were woken is continued by the next step.
        return after if self.cascade.left_locks else position

    def trees_to_cancel(self) -> list[int]:
        """Return the roots of cancel requests for trees. A missing one (in a damaged database) is left to the doctor;
        jobs below it are cancelled when they are placed or recorded."""
        sql = (
            "select job_id from cancel_requests where tree = 1 and exists (select 1 from jobs where "
            "jobs.id = cancel_requests.job_id)"
        )
        return self.tx.column(sql)


def next_wake_us(tx: Tx, registry: Registry, now_us: int) -> tuple[int | None, bool]:
    """Return the earliest time at which something becomes due, and whether deferred steps are left to do now: accepted
    jobs that are not placed yet, or dependants that are not updated yet."""
    unplaced, due = tx.one(_DUE)
    asleep = (lane.asleep_until_us for lane in registry.lanes.values())
    times = [at_us for at_us in asleep if at_us is not None and at_us > now_us]
    times += [at_us for at_us in (registry.holds.ends_us, due) if at_us is not None]
    return min(times, default=None), bool(unplaced)


# Whether deferred steps are left, and the earliest time of a job or a schedule: the first entry of an index
# each.
_DUE = (
    "select exists (select 1 from staging where published = 1) or exists (select 1 from met_needs), "
    "(select min(at_us) from (select min(wake_us) as at_us from inactive_jobs where wake_us is not null union all "
    "select min(next_us) from schedules where next_us is not null and paused = 0) as due)"
)
