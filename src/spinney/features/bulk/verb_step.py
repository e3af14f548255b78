"""One step of a bulk verb, in its transaction: the verb applied to some jobs, each under a savepoint of its own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from spinney.model.errors import Refused, SpinneyError
from spinney.model.jobs import Filter
from spinney.model.lineage import ancestors, subtree
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.bulk_runs import BulkStep, TreePosition
from spinney.model.rights.actor import Actor
from spinney.model.states import SETTLED, UNSUCCESSFUL, State
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.read import filter_queries
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.session import Session
from spinney.store.sql.transitions import hold_rows, placement
from spinney.store.sql.transitions.job_operations import Operation

BELOW = 100
"""How many jobs below the requested ones a step deletes or cancels with them."""
TRIED = 500
"""How many jobs below one a trial deletes with it; where there are more, they are only counted."""
ENOUGH_S = 0.02
"""After how long, in seconds, a step takes no further job, so that it ends well within 50 ms."""


class _Undone(Exception):
    """Raised to undo the retry of a job that was tried."""

    def __init__(self, needs_children: bool) -> None:
        super().__init__()
        self.needs_children = needs_children
        """Whether the job could not go on without its failed children."""


class VerbStep:
    """One step: created for a transaction, and run once."""

    def __init__(
        self,
        tx: Tx,
        session: Session,
        order: Order,
        actor: Actor,
        job_filter: Filter | None,
        named: Collection[int],
        positions: Mapping[int, TreePosition],
        now_us: int,
        clock: Callable[[], float],
        retried: Filter | None = None,
    ) -> None:
        """Prepare a step in a transaction of the session. ``retried``: the jobs that the run retries, of those in
        ``named`` if there are any; ``job_filter`` may be that of jobs that are retried in place of others."""
        self.tx, self.registry, self.order, self.actor = tx, session.registry, order, actor
        self.job_filter, self.named, self.now_us, self.clock = job_filter, named, now_us, clock
        self.retried = retried
        self.positions = positions
        """Where to go on in the trees that earlier steps did not finish."""
        self.trial = session.trying
        """Whether it is rolled back in the end, so that nothing may be left to a later step."""
        self.moved = False
        """Something was changed on a job that ``touched`` does not hold."""
        self.unfinished: list[int] = []
        """Tops of trees of which jobs are left to the next step."""
        self._room = BELOW
        self._touched: dict[int, None] = {}
        self._reopened: dict[int, None] = {}
        self._refused: dict[int, SpinneyError] = {}
        self._passed_over: list[int] = []
        self._instead: list[int] = []
        self._reached: dict[int, TreePosition] = {}

    def run(self, job_ids: Sequence[int]) -> BulkStep:
        """Apply the verb to these jobs, one after the other, until all are done, or jobs below them or time
        have used up the bounds of a step. The first job is taken in any case, so that each step makes
        progress."""
        begun = self.clock()
        fits = (
            set(job_ids)
            if self.job_filter is None
            else filter_queries.still(self.tx.all, self.job_filter, job_ids)
        )
        done = 0
        for job_id in job_ids:
            if done and (self._room <= 0 or self.clock() - begun > ENOUGH_S):
                break
            done += 1
            if job_id in self._touched or job_id in self._reopened:
                continue
            if job_id not in self.positions and (job_id not in fits or self._needless(job_id)):
                self._passed_over.append(job_id)
            else:
                self._try(job_id)
        return BulkStep(
            touched=list(self._touched),
            reopened=[j for j in self._reopened if j not in self._touched],
            refused={job_id: str(refusal) for job_id, refusal in self._refused.items()},
            errors=self._refused,
            skipped=self._passed_over,
            instead=self._instead,
            unfinished=[*self.unfinished, *job_ids[done:]],
            positions=self._reached,
        )

    def _try(self, job_id: int) -> None:
        """Apply the verb to one job under a savepoint: all of it, or nothing. After a rollback the registry is read
        anew, because it may contain what was rolled back."""
        operation = Operation(self.tx, self.registry, self.now_us, self.actor.by)
        try:
            with self.tx.savepoint():
                _VERBS[self.order.verb](self, operation, job_id)
                operation.cascade.drain()
        except SpinneyError as refusal:
            self.registry.refresh(self.tx)
            self._refused[job_id] = refusal
            return
        if not operation.ids and job_id not in self._instead and job_id not in self.unfinished:
            self._passed_over.append(job_id)  # the job is already as the verb would make it
        self._touched.update(dict.fromkeys(operation.ids))
        self._reopened.update(dict.fromkeys(operation.reopened))

    def _needless(self, job_id: int) -> bool:
        """Return whether a job that a filter found is skipped: the verb would change nothing, or the job no longer
        counts."""
        if self.job_filter is None:
            return False
        if self.order.verb in (Verb.RETRY, Verb.RERUN):
            return self._counts_no_more(job_id)
        if self.order.verb is Verb.CANCEL:
            request = self.tx.one("select tree from cancel_requests where job_id = ?", (job_id,))
            return request is not None and (bool(request[0]) or not self.order.tree)
        if self.order.verb is Verb.HOLD:
            laid = (str(job_id), self.actor.by, self.order.reason or "", self.order.until_us or 0)
            sql = "select 1 from holds where scope = 'job' and name = ? and by = ? and reason = ?"
            return self.tx.exists(f"{sql} and coalesce(until_us, 0) = ?", laid)
        return False

    def _counts_no_more(self, job_id: int) -> bool:
        """Return whether the job, or one above it, is superseded, because a stage above has run again: no job waits for
        it. Where the caller named one of them, only those below that one matter."""
        upwards = [job_id, *reversed(ancestors(job_rows.find(self.tx, job_id).lineage))]
        line = list_text(takewhile(lambda j: j not in self.named, upwards))
        sql = "select 1 from jobs where id in (select j.value from json_each(?) j) and superseded is not null"
        return self.tx.exists(sql, (line,))

    # --- the verbs ------------------------------------------------------------------------------

    def _retry(self, operation: Operation, job_id: int) -> None:
        """Retry a job. One that failed because of its children is only moved into the queue of the order, if
        that names one, and its children are to be retried instead. The same is done with a job that would only fail
        again because of its children, such as most jobs that were cancelled together with them; it is marked as failed
        first, because no job below a cancelled one can be opened."""
        failed_by_them = self.order.stage is None and bool(operation.failed_children(job_id, limit=1))
        self._into_queue(operation, job_id)
        if failed_by_them:
            self.moved |= self.order.queue is not None
            self._instead.append(job_id)
        elif self.order.stage is None and self._needs_its_children(job_id):
            operation.fail_because_of_children(job_id)
            self.moved = True
            self._instead.append(job_id)
        else:
            if self.order.stage is None:
                self._let_cancelled_above_wait(operation, job_id)
            operation.retry(job_id, self.order.stage)
            self._require_open(operation, job_id)

    def _let_cancelled_above_wait(self, operation: Operation, job_id: int) -> None:
        """Let the cancelled jobs above this one wait for it if the caller has them retried, too, and their stage that
        spawned it has passed: a batch that is opened before its subjobs would go on, and report that they are
        cancelled."""
        row = job_rows.find_visible(self.tx, job_id)
        while row.parent_id is not None and (parent := job_rows.existing(self.tx, row.parent_id)) is not None:
            if parent.state not in (State.CANCELLED, State.FAILED):
                return
            superseded, spawned_by = self.tx.one(
                "select superseded, spawn_stage from jobs where id = ?", (row.id,)
            )
            if superseded:
                return
            if parent.state is State.CANCELLED:
                spec = self.registry.types.get(parent.type)
                passed = spec is not None and spawned_by in job_rows.passed_stages(self.tx, parent.id, spec)
                if not (passed and self._is_retried(parent.id)):
                    return
                self._into_queue(operation, parent.id)
                operation.fail_because_of_children(parent.id)
            elif job_rows.waits_for(self.tx, parent.id) != "children":
                return
            row = parent

    def _is_retried(self, job_id: int) -> bool:
        """Return whether the caller may change the job, and has named it, or its filter matches it."""
        if self.retried is None:
            return False
        listed = self.named or self.retried.ids
        if listed and job_id not in listed:
            return False
        return bool(filter_queries.matching(self.tx.all, replace(self.retried, ids=None), [job_id]))

    def _needs_its_children(self, job_id: int) -> bool:
        """Return whether a job that is opened again could not go on without its failed children. It is opened to find
        out, which is undone. Raises the refusals of a retry."""
        if placement.bad_child(self.tx, job_id) is None:
            return False
        attempt = Operation(self.tx, self.registry, self.now_us, self.actor.by)
        try:
            with self.tx.savepoint():
                attempt.retry(job_id, None)
                attempt.cascade.drain()
                raise _Undone(attempt.children_in_the_way(job_id))
        except _Undone as undone:
            self.registry.refresh(self.tx)
            return undone.needs_children

    def _rerun(self, operation: Operation, job_id: int) -> None:
        self._into_queue(operation, job_id)
        operation.rerun(job_id, self.order.stage)
        self._require_open(operation, job_id)

    def _into_queue(self, operation: Operation, job_id: int) -> None:
        """Move a job into the queue of the order, if that names one, before it is opened."""
        queue = self.order.queue
        if queue is not None and job_rows.find_visible(self.tx, job_id).state is not State.DELETED:
            operation.into(job_id, queue)

    def _require_open(self, operation: Operation, job_id: int) -> None:
        """Raise Refused when the job has failed again within the same step, because of another job that keeps it from
        going on."""
        operation.cascade.drain()
        if job_rows.find(self.tx, job_id).state in UNSUCCESSFUL:
            reason = self.tx.value("select reason from inactive_jobs where job_id = ?", (job_id,))
            _, bad_need = placement.needs_left(self.tx, job_id)
            first = "retry that one first"
            if bad_need is not None and bad_need[1] == State.DELETED:
                first = "submit a new job in place of both"
            # A child cannot be retried while this job is cancelled.
            if operation.failed_children(job_id, limit=1):
                first = "retry it without a stage first, which retries its subjobs"
            raise Refused(f"job {job_id} would fail again at once, since {reason}; {first}")

    def _run_now(self, operation: Operation, job_id: int) -> None:
        operation.run_now(job_id)

    def _cancel(self, operation: Operation, job_id: int) -> None:
        """Cancel a job, with ``tree`` also jobs below it, as many as the step has room for; the rest is left to the
        next step, or to maintenance if there is none. The job itself is cancelled and reported last. Raises Refused
        when maintenance has come to the end of the tree since the step before, and somebody has opened the job again
        after that."""
        position = self.positions.get(job_id)
        if position is None or self.trial:  # a trial may have undone the request of the step before
            patient = self.job_filter is not None
            top = operation.cancel(job_id, tree=self.order.tree, reason=self.order.reason, patient=patient)
            position = position or TreePosition("", self.now_us)
        else:
            top = job_rows.find_visible(self.tx, job_id)
        left = True
        if self.order.tree:
            requested = self.tx.exists("select 1 from cancel_requests where job_id = ?", (job_id,))
            if not requested and top.state not in SETTLED:
                raise Refused(
                    f"job {job_id} was opened again while its tree was being cancelled; what was opened goes on, "
                    f"unless it is cancelled once more"
                )
            reached = operation.cancel_below(top, position.lineage, self._room)
            if position.lineage:
                operation.ids[:] = dict.fromkeys([*operation.ids, *self._cancelled(top, position, reached)])
            if reached is not None:
                self._reached[job_id] = TreePosition(reached, position.since_us)
                self.unfinished.append(job_id)
                self._room = 0
                return
            operation.cancel_top(top.id)
            # Whether all jobs of earlier steps have ended is for maintenance to find out.
            left = operation.left_open or bool(position.lineage)
            if not left:
                operation.forget_cancel_request(top.id)
        # While a job below is open, the cancel request stays, and maintenance goes on with it.
        self._room -= len(operation.ids)
        # A settled top is reported only where its cancel request stays; an open one ends now, or after its subjobs.
        if left or top.state not in SETTLED:
            operation.ids[:] = dict.fromkeys([*operation.ids, top.id])

    def _cancelled(self, top: Row, position: TreePosition, reached: str | None) -> list[int]:
        """Return the jobs of one step through a tree that have been cancelled since the first step: maintenance, which
        goes through the tree as well, may have come to them before."""
        return self.tx.column(
            "select id from jobs where parent_id is not null and root_id = ? and lineage > ? and lineage <= ? "
            "and state = ? and settled_us >= ?",
            (
                top.root_id,
                position.lineage,
                reached or subtree(top.lineage)[1],
                State.CANCELLED,
                position.since_us,
            ),
        )

    def _hold(self, operation: Operation, job_id: int) -> None:
        """Place a hold on a job; one that runs is held when its stage has ended."""
        row = job_rows.find_visible(self.tx, job_id)
        hold_rows.hold_one(
            self.tx, self.registry, row, self.order.reason or "", self.actor, self.order.until_us, self.now_us
        )
        operation.ids.append(job_id)

    def _release(self, operation: Operation, job_id: int) -> None:
        operation.release(job_id)

    def _delete(self, operation: Operation, job_id: int) -> None:
        """Delete a tree with the job at its top, as many jobs as the step has room for; the rest is left to
        the next step."""
        top = operation.require_deletable(job_id)
        if self.trial:
            self._delete_whole(operation, top)
        elif operation.delete_step(top, max(1, self._room)):
            self._room -= len(operation.ids)
        else:
            self.unfinished.append(job_id)
            self._room = 0

    def _delete_whole(self, operation: Operation, top: Row) -> None:
        """Delete a whole tree in a trial, which is rolled back; where the tree would take long, count its jobs
        instead."""
        if len(operation.left_below(top, TRIED + 1)) > TRIED:
            operation.ids += [*operation.left_below(top), top.id]
            return
        while not operation.delete_step(top, TRIED + 1):
            pass

    def _move(self, operation: Operation, job_id: int) -> None:
        assert self.order.queue is not None
        operation.move(job_id, self.order.queue)

    def _prioritize(self, operation: Operation, job_id: int) -> None:
        assert self.order.priority is not None
        operation.prioritize(job_id, self.order.priority)


_VERBS: Mapping[Verb, Callable[[VerbStep, Operation, int], None]] = {
    Verb.RETRY: VerbStep._retry,
    Verb.RERUN: VerbStep._rerun,
    Verb.RUN_NOW: VerbStep._run_now,
    Verb.CANCEL: VerbStep._cancel,
    Verb.HOLD: VerbStep._hold,
    Verb.RELEASE: VerbStep._release,
    Verb.DELETE: VerbStep._delete,
    Verb.MOVE: VerbStep._move,
    Verb.PRIORITY: VerbStep._prioritize,
}
