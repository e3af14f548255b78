"""What a change of one job means for others, in the same transaction.

A ``Cascade`` collects what a flush has touched: parents whose last child may have settled,
jobs that need one that settled, locks that came free, serial lines that move. ``drain`` works them
off until nothing is left; each may settle further jobs, so it is a work list and no recursion.
"""

import logging

from spinney.model.attempts.progress import next_stage
from spinney.model.errors import NoSuchJob
from spinney.model.states import State
from spinney.store.sql.connection import rows
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.connection.rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.registry.webhook_events import SettledJob, tell
from spinney.store.sql.transitions import deadlocks, locks, placement

log = logging.getLogger(__name__)

NEEDERS_STEP = 200
"""Jobs that need one that settled, or was opened again, are told so many a transaction; the rest follow in steps."""
PASSED_BY_MOST = 50
"""So many that wait for a lock are let go, or passed over because they may not (a hold covers them), a transaction."""
BAD = frozenset({State.FAILED, State.CANCELLED, State.ORPHANED})


class Cascade:
    """One per transaction. Add what happened, then ``drain``."""

    def __init__(self, tx: Tx, registry: Registry, now_us: int) -> None:
        self.tx, self.registry, self.now_us = tx, registry, now_us
        self._parents: dict[int, None] = {}
        self._needers: dict[int, None] = {}
        self._locks: dict[str, None] = {}
        self._lines: dict[int, None] = {}
        self._waiters: dict[int, None] = {}
        self._broken = 0
        """Rings."""
        self.left_locks = False
        """A lock has room, and somebody who waits for it has not been looked at yet."""

    # --- what callers say -----------------------------------------------------------------

    def settle(
        self,
        row: Row,
        state: State,
        *,
        reason: str | None = None,
        because: str | None = None,
        fingerprint: str | None = None,
        leased: bool = False,
    ) -> None:
        """The job ends in this state. ``because``: children or needs, when it is not its own doing;
        ``fingerprint``: of its failure, when it is."""
        tx = self.tx
        if row.state is State.PENDING and not leased:
            placement.leave_ready(tx, self.registry, row)
        if state is State.COMPLETED:
            tx.run("delete from inactive_jobs where job_id = ?", (row.id,))
            rows.set_state(tx, row, state, leased=leased)
            tx.run("update jobs set stage = null, settled_us = ? where id = ?", (self.now_us, row.id))
        else:
            placement.set_aside(
                tx,
                row,
                state,
                now_us=self.now_us,
                waits_for=because,
                reason=reason,
                fingerprint=fingerprint,
                leased=leased,
            )
            tx.run("update jobs set settled_us = ? where id = ?", (self.now_us, row.id))
        self.settled(row, state)

    def settled(self, row: Row, state: State) -> None:
        """The job's row says so already; only others still have to hear of it."""
        tx = self.tx
        if row.parent_id is not None:
            self.child_settled(row.id, row.parent_id, bad=state in BAD)
        found = needers(tx, row.id, 0, NEEDERS_STEP + 1)
        self._needers.update((n, None) for n in found[:NEEDERS_STEP])
        if len(found) > NEEDERS_STEP:
            tell_later(tx, row.id, found[-1])
        tx.run("delete from keys where job_id = ? and forever = 0", (row.id,))
        self.free_locks(row.id, None)
        self._leave_line(row)
        tx.run("delete from cancel_requests where job_id = ? and tree = 0", (row.id,))
        if self.registry.subscriptions:
            told = SettledJob(row.id, row.type, row.queue, row.parent_id is None)
            tell(tx, self.registry.subscriptions, [told], state, self.now_us)

    def child_settled(self, child_id: int, parent_id: int, *, bad: bool) -> None:
        self.tx.run(
            "delete from children_left where parent_id = ? and bad = 0 and child_id = ?",
            (parent_id, child_id),
        )
        if bad:
            self.tx.run(
                "insert into children_left (parent_id, bad, child_id) "
                "select ?, 1, ? from jobs where id = ? and superseded is null",
                (parent_id, child_id, child_id),
            )
        self._parents[parent_id] = None

    def parent_changed(self, parent_id: int) -> None:
        """Something about its children changed: look whether it may go on."""
        self._parents[parent_id] = None

    def free_locks(self, job_id: int, fence: int | None) -> None:
        """Give back the locks of an attempt, with what was kept for it and not taken, or (fence None) all that the job
        still has."""
        where = "job_id = ?" if fence is None else "job_id = ? and fence in (?, ?)"
        args = (job_id,) if fence is None else (job_id, fence, locks.RESERVED)
        names = self.tx.all(f"delete from locks where {where} returning name", args)
        self._locks.update((name, None) for (name,) in names)

    def place(self, row: Row, *, leased: bool = False) -> None:
        """Put an open job where it belongs now (see ``placement``). Its own wish is honoured first.

        The caller has taken it out of ``ready``; ``leased``: its lease has just been taken away."""
        tx = self.tx
        cancel_reason = placement.cancel_reason(tx, row)
        if cancel_reason is not None:
            self.settle(row, State.CANCELLED, reason=cancel_reason, leased=leased)
            return
        if row.at_us is not None and row.at_us > self.now_us:
            placement.set_aside(
                tx,
                row,
                State.SCHEDULED,
                now_us=self.now_us,
                wake_us=row.at_us,
                reason="for its time",
                leased=leased,
            )
            return
        still_open, broken = placement.needs_left(tx, row.id)
        if broken is not None:
            self.fail(row, f"job {broken[0]}, which it needs, is {broken[1]}", because="needs", leased=leased)
        elif still_open:
            self._stand_aside(row, "needs", "for jobs that it needs", leased)
        elif self.older_children_open(row):
            self._stand_aside(row, "children", "for its subjobs", leased)
        elif (bad := self._older_bad_child(row)) is not None:
            self.fail(row, _because_of_child(tx, bad), because="children", leased=leased)
        elif self.is_serial(row) and not self._first_in_line(row):
            # Locks that it keeps over stages might be what the earlier one waits for; it takes them again.
            self.free_locks(row.id, None)
            placement.set_aside(
                tx,
                row,
                State.WAITING,
                now_us=self.now_us,
                waits_for="serial",
                reason="for an earlier job of its serial tree",
                leased=leased,
            )
        else:
            # A held job keeps its place in a serial line: an order that a hold could turn round would be none.
            # Those behind it say that they wait for it, and it says which hold keeps it.
            placement.to_ready(tx, self.registry, row, now_us=self.now_us, leased=leased)

    def older_children_open(self, row: Row) -> bool:
        """Whether children that earlier stages bore are open (those of the stage to be run are no reason
        to wait: an attempt of it bore them by key and did not pass)."""
        return (
            placement.open_children(self.tx, row.id)
            and self.tx.value(
                "select 1 from children_left join jobs on jobs.id = child_id where children_left.parent_id = ? "
                "and bad = 0 and jobs.spawn_stage is distinct from ? limit 1",
                (row.id, row.stage),
            )
            is not None
        )

    def _older_bad_child(self, row: Row) -> int | None:
        """A child of an earlier stage past which a strict job must not go, opened again or not."""
        spec = self.registry.types.get(row.type)
        if (spec is not None and spec.children != "completed") or placement.bad_child(
            self.tx, row.id
        ) is None:
            return None
        found: int | None = self.tx.value(
            "select child_id from children_left join jobs on jobs.id = child_id where children_left.parent_id = ? "
            "and bad = 1 and jobs.spawn_stage is distinct from ? limit 1",
            (row.id, row.stage),
        )
        return found

    def fail(
        self,
        row: Row,
        reason: str,
        *,
        because: str | None = None,
        mark: str | None = None,
        leased: bool = False,
    ) -> None:
        """It cannot go on: ``because`` of others, or by a cause of its own (``mark``). The caller has taken it out of
        ``ready``."""
        if row.state is not State.WAITING and not leased:
            row = rows.set_state(self.tx, row, State.WAITING)
        self.settle(row, State.FAILED, reason=reason, because=because, fingerprint=mark, leased=leased)

    def wait_for_children(self, row: Row, *, leased: bool) -> None:
        """Its stage has passed and bore children: it goes on when the last of them has settled."""
        self._stand_aside(row, "children", "for its subjobs", leased)
        if self.tx.value("select 1 from locks where job_id = ? limit 1", (row.id,)) is not None:
            self.began_to_wait(row.id)

    def began_to_wait(self, job_id: int) -> None:
        """The job waits for a lock, or keeps one while it waits for its subjobs: look whether that closes a ring."""
        self._waiters[job_id] = None

    def drain(self) -> None:
        """Work off everything, until nothing moves any more."""
        while self._parents or self._needers or self._locks or self._lines or self._waiters:
            while self._parents:
                self._go_on(self._parents.popitem()[0])
            while self._needers:
                self._need_settled(self._needers.popitem()[0])
            while self._locks:
                self._lock_freed(self._locks.popitem()[0])
            while self._lines:
                self._advance(self._lines.popitem()[0])
            if self._waiters:  # when all others stand where they belong
                self._look_for_rings()

    def _look_for_rings(self) -> None:
        waiters, self._waiters = self._waiters, {}
        if self._broken < deadlocks.BROKEN_AT_ONCE and deadlocks.break_ring(self, list(waiters)[::-1]):
            self._broken += 1
            self._waiters = waiters | self._waiters

    # --- parents --------------------------------------------------------------------------

    def _go_on(self, parent_id: int) -> None:
        tx = self.tx
        row = there(tx, parent_id)
        if row is None or row.state is not State.WAITING or placement.open_children(tx, parent_id):
            return
        waits = tx.value("select waits_for from inactive_jobs where job_id = ?", (parent_id,))
        if waits != "children":
            return
        self.proceed(row)

    def proceed(self, row: Row, *, leased: bool = False) -> None:
        """Its children have settled (or it has none): to its next stage, or to its end."""
        tx = self.tx
        cancel_reason = placement.cancel_reason(tx, row)
        spec = self.registry.types.get(row.type)
        if spec is None:
            stage = row.stage
        else:
            stage = next_stage(spec, rows.passed_stages(tx, row.id, [s.name for s in spec.stages]))
        strict = spec is None or spec.children == "completed"
        bad = placement.bad_child(tx, row.id, cancelled_too=strict)
        if bad is not None and (stage is None or strict):
            reason = cancel_reason or _because_of_child(tx, bad)
            state = State.CANCELLED if cancel_reason else State.FAILED
            self.settle(
                row, state, reason=reason, because=None if cancel_reason else "children", leased=leased
            )
        elif stage is None:
            self.settle(row, State.COMPLETED, leased=leased)
        else:
            if stage != row.stage:
                tx.run("update jobs set stage = ?, attempts = 0 where id = ?", (stage, row.id))
                row = row._replace(stage=stage, attempts=0)
            self.place(row, leased=leased)

    # --- needs ----------------------------------------------------------------------------

    def need_settled(self, job_id: int) -> None:
        """A job that this one needs has settled: look whether it may go on."""
        self._needers[job_id] = None

    def _need_settled(self, job_id: int) -> None:
        if rows.hidden(self.tx, job_id):
            return
        row = there(self.tx, job_id)
        waits = self.tx.value("select waits_for from inactive_jobs where job_id = ?", (job_id,))
        if row is not None and row.state is State.WAITING and waits == "needs":
            self.place(row)

    # --- locks ----------------------------------------------------------------------------

    def lock_freed(self, name: str) -> None:
        """A lock may have room: let whoever waits for it try."""
        self._locks[name] = None

    def _lock_freed(self, name: str) -> None:
        """Those that wait for it, as far as they have room, go back to where they can be claimed; the claim takes it.

        One that has other reasons to stand aside by now (a hold among them) lets the next one go. Where that
        are many, the rest is left to housekeeping, which looks for free locks that somebody waits for.
        """
        for _ in range(PASSED_BY_MOST):
            found = locks.next_of(self.tx, self.registry, name)
            if found is None:
                return
            waiter, room = found
            self.place(rows.find(self.tx, waiter.job_id))
            if rows.find(self.tx, waiter.job_id).state is State.PENDING:
                amount = min(waiter.amount, room.capacity)
                locks.reserve(self.tx, locks.LockRequest(name, amount), waiter.job_id, self.now_us)
                if waiter.capacity is None and room.left(amount) <= 0:
                    return
        self.left_locks = True

    # --- the serial line ------------------------------------------------------------------

    def is_serial(self, row: Row) -> bool:
        if row.parent_id is None:
            return False
        root_type = self.tx.value("select type from jobs where id = ?", (row.root_id,))
        spec = self.registry.types.get(root_type)
        return spec is not None and spec.serial

    def _first_in_line(self, row: Row) -> bool:
        """Enter the job into its tree's line; whether it may go now."""
        tx = self.tx
        tx.run(
            "insert into serial_order (root_id, lineage, job_id) values (?, ?, ?) on conflict do nothing",
            (row.root_id, row.lineage, row.id),
        )
        line = tx.all(
            "select job_id from serial_order where root_id = ? order by lineage limit 2", (row.root_id,)
        )
        if line[0][0] != row.id:
            return False
        if self._somebody_runs(row):
            return False
        if len(line) == 2:
            self._step_back(line[1][0])
        return True

    def _somebody_runs(self, row: Row) -> bool:
        """Whether a later one runs already (this one was opened again meanwhile): it is waited for."""
        found = self.tx.value(
            "select 1 from leases l where l.parent_id is not null and l.job_id <> ? "
            "and (select root_id from jobs where id = l.job_id) = ? limit 1",
            (row.id, row.root_id),
        )
        return found is not None

    def _step_back(self, job_id: int) -> None:
        """A later one that was put into ``ready`` before an earlier one came gives way to it."""
        later = there(self.tx, job_id)
        if later is not None and later.state is State.PENDING:
            self.free_locks(job_id, locks.RESERVED)
            placement.leave_ready(self.tx, self.registry, later)
            placement.set_aside(
                self.tx,
                later,
                State.WAITING,
                now_us=self.now_us,
                waits_for="serial",
                reason="for an earlier job of its serial tree",
            )

    def _leave_line(self, row: Row) -> None:
        if row.parent_id is None:
            return
        self.tx.run("delete from serial_order where root_id = ? and lineage = ?", (row.root_id, row.lineage))
        if self.tx.changed():
            self._lines[row.root_id] = None

    def line_moved(self, root_id: int) -> None:
        self._lines[root_id] = None

    def _advance(self, root_id: int) -> None:
        first = self.tx.value(
            "select job_id from serial_order where root_id = ? order by lineage limit 1", (root_id,)
        )
        if first is None or rows.hidden(self.tx, first):
            return
        row = there(self.tx, first)
        waits = self.tx.value("select waits_for from inactive_jobs where job_id = ?", (first,))
        if row is not None and row.state is State.WAITING and waits == "serial":
            self.place(row)

    # --- helping --------------------------------------------------------------------------

    def _stand_aside(self, row: Row, waits_for: str, reason: str, leased: bool) -> None:
        placement.set_aside(
            self.tx, row, State.WAITING, now_us=self.now_us, waits_for=waits_for, reason=reason, leased=leased
        )
        self._leave_line(row)


def _because_of_child(tx: Tx, child_id: int) -> str:
    state = tx.value("select state from jobs where id = ?", (child_id,))
    return f"its subjob {child_id} is {state}"


def there(tx: Tx, job_id: int) -> Row | None:
    """A job that another's row names. None where the database is damaged and it is not there: it is passed over,
    for what others have done must be recorded all the same."""
    try:
        return rows.find(tx, job_id)
    except NoSuchJob:
        log.warning("job %d is named by others, but is not there; 'spinney doctor' tells by which", job_id)
        return None


def needers(tx: Tx, need_id: int, first: int, limit: int) -> list[int]:
    """Those that need it, by number, from ``first`` on."""
    sql = "select job_id from needs where need_id = ? and job_id >= ? order by job_id limit ?"
    return [job_id for (job_id,) in tx.all(sql, (need_id, first, limit))]


def tell_later(tx: Tx, need_id: int, next_id: int) -> None:
    """Those that need it, from this one on, hear in later steps how it stands (``regrowth.Regrowth.step``)."""
    tx.run(
        "insert into met_needs (need_id, next_id) values (?, ?) on conflict (need_id) do update "
        "set next_id = case when met_needs.next_id < excluded.next_id then met_needs.next_id else excluded.next_id end",
        (need_id, next_id),
    )
