"""Cascades: the effects of a job's change on other jobs, in the same transaction.

A ``Cascade`` collects what a flush has changed: parents whose last child may have settled, dependants of settled jobs,
freed locks, serial orders that advance. ``drain`` processes them until none is left; each may settle further jobs, so
it is a work list and no recursion.

A caller writes the facts first (the attempt, the row of the job), then tells the cascade what has changed,
and drains it before its transaction ends. So no reader ever sees a last child that has settled beside a
parent that still waits.

Two kinds of effects may reach any number of jobs, and are bounded in each transaction: dependants (the rest
is left in ``met_needs``, which ``regrowth`` works off) and jobs that wait for one lock (the sweep looks for
free locks with waiting jobs). Parents need no bound: a job has one."""

from collections.abc import Container, Mapping
from typing import Any

from spinney.model.states import UNSUCCESSFUL, State
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.registry.webhook_events import SettledJob, tell
from spinney.store.sql.transitions import deadlocks, locks, placement
from spinney.store.sql.transitions.placement import Placement

DEPENDANTS_STEP = 50
"""How many dependants of a settled or reopened job one transaction updates; the rest follow in steps."""
PASSED_BY_MOST = 50
"""How many jobs that wait for a lock one transaction wakes, or skips because a hold covers them."""
_FOR_ITS_TURN = "waits for an earlier job of its serial tree"


class Cascade(Placement):
    """The cascade of one transaction: add changes, then ``drain``.

    What is still to be looked at is kept in dictionaries without values: sets whose order does not depend on
    the hashes of a process. Whatever is looked at is checked again then, because another change may have
    settled it meanwhile."""

    def __init__(self, tx: Tx, registry: Registry, now_us: int) -> None:
        super().__init__(tx, registry, now_us)
        self._parents: dict[int, None] = {}
        self._dependants: dict[int, None] = {}
        self._locks: dict[str, None] = {}
        self._preferred: dict[str, int] = {}
        """The job that gets a lock before others, by lock."""
        self._lines: dict[int, None] = {}
        self._waiters: dict[int, None] = {}
        self._broken = 0
        """The number of deadlocks that were broken."""
        self.left_locks = False
        """Whether a lock has room while jobs that wait for it were not checked yet."""

    # --- changes -----------------------------------------------------------------

    def settle(
        self,
        row: Row,
        state: State,
        *,
        reason: str | None = None,
        because: str | None = None,
        fingerprint: str | None = None,
        leased: bool = False,
        also: Mapping[str, Any] | None = None,
    ) -> None:
        """Settle the job in this state, with all that follows from it for others (``settled``).

        A completed job is in none of the narrow tables, and has no stage any more. Any other keeps its stage, and has a
        row in ``inactive_jobs`` that says why it settled. ``because``: children or needs, when they are the cause;
        ``fingerprint``: that of its own failure. ``reason``: for people. ``leased``: its lease has just been taken
        away. ``also``: the values of further columns of its row. Raises UnlawfulTransition."""
        if row.state is State.PENDING and not leased:
            self.leave_ready(row)
        columns = {"settled_us": self.now_us, **(also or {})}
        if state is State.COMPLETED:
            self.tx.run("delete from inactive_jobs where job_id = ?", (row.id,))
            job_rows.set_state(self.tx, row, state, leased=leased, also={"stage": None, **columns})
        else:
            self._leave_queue_of_lock(row)
            self.set_aside(
                row,
                state,
                waits_for=because,
                reason=reason,
                fingerprint=fingerprint,
                leased=leased,
                also=columns,
            )
        self.settled(row, state)

    def settled(self, row: Row, state: State) -> None:
        """Update other jobs after the job's row was set to a settled state.

        That is its parent, its dependants, the jobs that wait for its locks and the next one of its serial
        tree. Its key becomes free unless it was taken for ever, a cancel request for it alone has had its
        effect, and webhooks get their events."""
        tx = self.tx
        if row.parent_id is not None:
            self.child_settled(row.id, row.parent_id, bad=state in UNSUCCESSFUL)
        dependant_ids = dependants(tx, row.id, 0, DEPENDANTS_STEP + 1)
        self._dependants.update(dict.fromkeys(dependant_ids[:DEPENDANTS_STEP]))
        if len(dependant_ids) > DEPENDANTS_STEP:
            leave_dependants(tx, row.id, dependant_ids[-1])
        tx.run("delete from keys where job_id = ? and forever = 0", (row.id,))
        self.free_locks(row.id, None)
        self._leave_line(row)
        tx.run("delete from cancel_requests where job_id = ? and tree = 0", (row.id,))
        if self.registry.subscriptions:
            settled_job = SettledJob(row.id, row.type, row.queue, row.parent_id is None)
            tell(tx, self.registry.subscriptions, [settled_job], state, self.now_us)

    def child_settled(self, child_id: int, parent_id: int, *, bad: bool) -> None:
        """Note that a child has settled, well or badly, and check whether its parent may continue."""
        self.tx.run(
            "delete from children_left where parent_id = ? and bad = 0 and child_id = ?",
            (parent_id, child_id),
        )
        if bad:
            # A superseded child, whose stage runs again without it, does not count any more.
            self.tx.run(
                "insert into children_left (parent_id, bad, child_id) "
                "select ?, 1, ? from jobs where id = ? and superseded is null",
                (parent_id, child_id, child_id),
            )
        self._parents[parent_id] = None

    def parent_changed(self, parent_id: int) -> None:
        """Check whether a parent may continue, because its children changed."""
        self._parents[parent_id] = None

    def free_locks(self, job_id: int, fence: int | None) -> None:
        """Release the locks of an attempt, with reserved ones that it did not take, or (fence None) all locks of the
        job."""
        where = "job_id = ?" if fence is None else "job_id = ? and fence in (?, ?)"
        args = (job_id,) if fence is None else (job_id, fence, locks.RESERVED)
        names = self.tx.column(f"delete from locks where {where} returning name", args)
        self._locks.update(dict.fromkeys(names))

    @property
    def freed_locks(self) -> Container[str]:
        """Return the locks that may have room, and were not offered to waiting jobs yet."""
        return self._locks.keys()

    def place(self, row: Row, *, leased: bool = False) -> None:
        """Determine the state of an open job (see ``placement``). A cancel request is applied first.

        The first reason to wait decides; when that is over, the job is placed again and meets the next one. A
        need or a child that has failed makes the job fail here, and one without a stage to run settles: its type
        may have lost those that it had not run. The caller has taken it out of ``ready``; ``leased``: its lease
        has just been taken away."""
        tx = self.tx
        cancel_reason = placement.cancel_reason(tx, row)
        if cancel_reason is not None:
            self.settle(row, State.CANCELLED, reason=cancel_reason, leased=leased)
            return
        if row.at_us is not None and row.at_us > self.now_us:
            self.set_aside(
                row, State.SCHEDULED, wake_us=row.at_us, reason="waits for its start time", leased=leased
            )
            return
        still_open, broken = placement.needs_left(tx, row.id)
        if broken is not None:
            message = f"job {broken[0]}, which it needs, {placement.ending(broken[1])}"
            self.fail(row, message, because="needs", leased=leased)
        elif still_open:
            self._stand_aside(row, "needs", "waits for jobs that it needs", leased=leased)
        elif placement.older_open(self.tx, row):
            self.wait_for_children(row, leased=leased)
        elif (
            placement.is_strict(self.registry, row) and (bad := placement.older_bad(self.tx, row)) is not None
        ):
            self.fail(row, placement.because_of(tx, bad), because="children", leased=leased)
        elif placement.is_serial(tx, self.registry, row) and not self._first_in_line(row):
            # An earlier job may wait for locks that it keeps over stages; it takes them again.
            self.free_locks(row.id, None)
            self.wait(row, "serial", _FOR_ITS_TURN, leased=leased)
        elif row.stage is None:
            self.proceed(row, leased=leased)
        else:
            # A held job keeps its place in the serial order, which a hold must not change. Those behind it wait for it,
            # and its message names the hold.
            self.to_ready(row, leased=leased)

    def return_to_ready(self, row: Row) -> None:
        """Make a job claimable again that was taken out of ``ready`` to change its row. Locks that are reserved for it
        stay so, unless a hold covers it now."""
        self.to_ready(row)
        if hold_coverage.stands_held(self.tx, row.id):
            self.free_locks(row.id, locks.RESERVED)

    def fail(
        self,
        row: Row,
        reason: str,
        *,
        because: str | None = None,
        mark: str | None = None,
        leased: bool = False,
    ) -> None:
        """Fail a job that cannot continue: ``because`` of others, or by a cause of its own (``mark``). The caller has
        removed it from ``ready``."""
        if row.state is not State.WAITING and not leased:
            row = job_rows.set_state(self.tx, row, State.WAITING)
        self.settle(row, State.FAILED, reason=reason, because=because, fingerprint=mark, leased=leased)

    def withdraw(self, row: Row) -> None:
        """Remove a pending job from ``ready``, and release the locks that are reserved for it."""
        self.leave_ready(row)
        self.free_locks(row.id, locks.RESERVED)

    def wait(
        self,
        row: Row,
        waits_for: str,
        reason: str,
        *,
        lock_request: tuple[int, int | None] | None = None,
        leased: bool = False,
    ) -> None:
        """Let the job wait (see ``set_aside``), and check for a deadlock."""
        self.set_aside(
            row, State.WAITING, waits_for=waits_for, reason=reason, lock_request=lock_request, leased=leased
        )
        self.began_to_wait(row.id)

    def wait_for_children(self, row: Row, *, leased: bool) -> None:
        """Let the job wait for the children of its passed stage; it continues when the last of them has settled."""
        self._stand_aside(row, "children", "waits for its subjobs", leased=leased)

    def only_for_children(self, row: Row) -> None:
        """Let a job with a cancel request wait for its open children and for nothing else, whatever it waited for, so
        that it is not claimed any more, and is cancelled when the last of them has settled."""
        if row.state is State.WAITING and job_rows.waits_for(self.tx, row.id) == "children":
            return
        if row.state is State.PENDING:
            self.withdraw(row)
        self._leave_queue_of_lock(row)
        self.wait_for_children(row, leased=False)

    def began_to_wait(self, job_id: int) -> None:
        """Check for a deadlock, because the job waits, or has another place among those that wait, and others may wait
        for it, by a lock that it keeps or otherwise."""
        self._waiters[job_id] = None

    def closes_no_ring(self, job_id: int) -> None:
        """Do not check a new job for a deadlock: nobody waits for it yet."""
        self._waiters.pop(job_id, None)

    def drain(self) -> None:
        """Process all changes, until there are no more. Deadlocks are searched last, when every other job has
        the state that this transaction leaves it in: what has begun to wait may have been woken since."""
        self.drain_jobs()
        while self._locks or self._waiters:
            while self._locks:
                self._lock_freed(self._locks.popitem()[0])
            self.drain_jobs()
            if self._waiters and not self._locks:  # when all other jobs have their state
                self._look_for_rings()
                self.drain_jobs()

    def drain_jobs(self) -> None:
        """Process the changes of jobs alone, so that those that have waited for others are where they belong; freed
        locks are not given to others yet."""
        while self._parents or self._dependants or self._lines:
            while self._parents:
                self._go_on(self._parents.popitem()[0])
            while self._dependants:
                self._need_settled(self._dependants.popitem()[0])
            while self._lines:
                self._advance(self._lines.popitem()[0])

    def _look_for_rings(self) -> None:
        """Break one deadlock, and look again: the victim's locks may have let some of the others go on."""
        waiters, self._waiters = self._waiters, {}
        if self._broken < deadlocks.BROKEN_AT_ONCE and deadlocks.break_ring(self, list(waiters)[::-1]):
            self._broken += 1
            self._waiters = waiters | self._waiters

    # --- parents --------------------------------------------------------------------------

    def _go_on(self, parent_id: int) -> None:
        """Let a parent continue that waits for its children, when none of them is open any more. One that
        waits for something else is not concerned: it is placed when that is over, and its children are
        checked then."""
        tx = self.tx
        row = job_rows.existing(tx, parent_id)
        if row is None or row.state is not State.WAITING or placement.open_children(tx, parent_id):
            return
        if job_rows.waits_for(tx, parent_id) == "children":
            self.proceed(row)

    def proceed(self, row: Row, *, leased: bool = False) -> None:
        """Move a job to its next stage, or settle it, after its children have settled (``go_to``). The next stage is
        computed from the attempts, because some may have been superseded meanwhile."""
        spec = self.registry.types.get(row.type)
        stage = row.stage if spec is None else job_rows.next_stage(self.tx, row.id, spec)
        self.go_to(row, stage, leased=leased)

    def go_to(self, row: Row, stage: str | None, *, leased: bool = False) -> None:
        """Move a job to this stage, its next one, or settle it (None: it has passed them all).

        When a child has failed, a strict job fails at once. One that takes any outcome of its children still
        runs its later stages, so that it can report, and fails after the last. A cancel request makes it
        cancelled instead."""
        tx = self.tx
        cancel_reason = placement.cancel_reason(tx, row)
        strict = placement.is_strict(self.registry, row)
        bad = placement.bad_child(tx, row.id, cancelled_too=strict)
        if bad is not None and (stage is None or strict):
            reason = cancel_reason or placement.because_of(tx, bad)
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
        """Check whether the job may continue, because one that it needs has settled."""
        self._dependants[job_id] = None

    def _need_settled(self, job_id: int) -> None:
        """Place a dependant that waits for its needs. One that is not published yet is placed when it is."""
        if job_rows.is_hidden(self.tx, job_id):
            return
        row = job_rows.existing(self.tx, job_id)
        if row is None or row.state is not State.WAITING or job_rows.waits_for(self.tx, job_id) != "needs":
            return
        began = job_id in self._waiters
        self.place(row)
        if not began and job_id in self._waiters and job_rows.waits_for(self.tx, job_id) == "needs":
            del self._waiters[job_id]  # it waits for fewer than before, which closes no ring

    # --- locks ----------------------------------------------------------------------------

    def lock_freed(self, name: str) -> None:
        """Wake waiting jobs, because a lock may have room."""
        self._locks[name] = None

    def _leave_queue_of_lock(self, row: Row) -> None:
        """Wake the next jobs of the queue for a lock that this job stops waiting for. It may have been the first, and
        have wanted more than there was room for."""
        if row.state is State.WAITING and (name := job_rows.lock_waited_for(self.tx, row.id)) is not None:
            self.lock_freed(name)

    def wait_for_no_lock(self, row: Row) -> None:
        """Place a job anew that waits for a lock, because it goes on at another stage."""
        if row.state is State.WAITING and job_rows.lock_waited_for(self.tx, row.id) is not None:
            self._leave_queue_of_lock(row)
            self.place(row)

    def prefer(self, job_id: int, lock: str) -> None:
        """Give the lock, as soon as it has room, to this waiting job before those that come before it in the queue."""
        self._preferred[lock] = job_id

    def _lock_freed(self, name: str) -> None:
        """Make waiting jobs claimable, as far as the lock has room; the claim takes it.

        A job that has another reason to wait by now (such as a hold) lets the next one go. Where there are many, the
        rest is left to housekeeping, which searches free locks with waiting jobs."""
        for _ in range(PASSED_BY_MOST):
            candidate = locks.next_of(self.tx, self.registry, name, self._preferred.get(name))
            if candidate is None:
                return
            waiter, room = candidate
            self.place(job_rows.find(self.tx, waiter.job_id))
            if job_rows.find(self.tx, waiter.job_id).state is State.PENDING:
                # A job that wants more than there can be is woken for its error, with no more reserved than
                # there is.
                amount = min(waiter.amount, room.capacity)
                locks.reserve(self.tx, locks.LockRequest(name, amount), waiter.job_id, self.now_us)
                # Where its stage names a capacity, the room is that by this capacity, and others may still
                # fit.
                if waiter.capacity is None and room.left(amount) <= 0:
                    return
        self.left_locks = True

    # --- serial order ------------------------------------------------------------------

    def _first_in_line(self, row: Row) -> bool:
        """Add the job to its tree's serial order; return whether it may start now.

        Only the first of the order may be in ``ready``. When this one comes before a job that was first until
        now, that one steps back, unless it runs already: then this one waits until it ends."""
        tx = self.tx
        tx.run(
            "insert into serial_order (root_id, lineage, job_id) values (?, ?, ?) on conflict do nothing",
            (row.root_id, row.lineage, row.id),
        )
        line = tx.column(
            "select job_id from serial_order where root_id = ? order by lineage limit 2", (row.root_id,)
        )
        if line[0] != row.id or placement.another_of_tree_runs(tx, row):
            return False
        if len(line) == 2:
            self._step_back(line[1])
        return True

    def _step_back(self, job_id: int) -> None:
        """Remove a later job from ``ready``, because an earlier one has come."""
        later = job_rows.existing(self.tx, job_id)
        if later is not None and later.state is State.PENDING:
            self.withdraw(later)
            self.set_aside(later, State.WAITING, waits_for="serial", reason=_FOR_ITS_TURN)

    def _leave_line(self, row: Row) -> None:
        """Remove the job from its tree's serial order if it is there, so that the next one is checked."""
        if row.parent_id is None:
            return
        self.tx.run("delete from serial_order where root_id = ? and lineage = ?", (row.root_id, row.lineage))
        if self.tx.changed():
            self._lines[row.root_id] = None

    def line_moved(self, root_id: int) -> None:
        """Check whether the next job of a serial tree may run now."""
        self._lines[root_id] = None

    def _advance(self, root_id: int) -> None:
        """Place the first job of a serial order if it waits for its turn. Any other state means that it has
        had it."""
        first = self.tx.value(
            "select job_id from serial_order where root_id = ? order by lineage limit 1", (root_id,)
        )
        if first is None or job_rows.is_hidden(self.tx, first):
            return
        row = job_rows.existing(self.tx, first)
        if row is not None and row.state is State.WAITING and job_rows.waits_for(self.tx, first) == "serial":
            self.place(row)

    # --- helpers --------------------------------------------------------------------------

    def _stand_aside(self, row: Row, waits_for: str, reason: str, *, leased: bool) -> None:
        self.wait(row, waits_for, reason, leased=leased)
        self._leave_line(row)


def dependants(tx: Tx, need_id: int, first: int, limit: int) -> list[int]:
    """Return the jobs that need it, by id, from ``first`` on."""
    sql = "select job_id from needs where need_id = ? and job_id >= ? order by job_id limit ?"
    return tx.column(sql, (need_id, first, limit))


def leave_dependants(tx: Tx, need_id: int, next_id: int) -> None:
    """Leave the dependants from this one on to later steps (``regrowth.Regrowth.step``). Where earlier steps
    are pending, the lower of the two positions counts: to update a dependant twice does no harm."""
    tx.run(
        "insert into met_needs (need_id, next_id) values (?, ?) on conflict (need_id) do update "
        "set next_id = case when met_needs.next_id < excluded.next_id then met_needs.next_id else excluded.next_id end",
        (need_id, next_id),
    )
