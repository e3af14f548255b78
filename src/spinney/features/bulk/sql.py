"""Bulk verbs: one verb applied to many jobs, in bounded transactions, one for each step.

Each job is changed under a savepoint of its own: a job for which the verb is refused gets its sentence and
keeps its state, and the others go through. The caller decides about the order of the jobs and the end of the
run (``spinney.features.bulk.service``); nothing is remembered here between two steps.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import takewhile
from typing import Any

from spinney.model.access import AccessScope
from spinney.model.errors import Refused, SpinneyError
from spinney.model.jobs import JOB_ID_MAX, Filter
from spinney.model.lineage import ancestors
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.bulk_runs import BulkStep
from spinney.model.rights.actor import Actor
from spinney.model.states import SETTLED, State
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.read import access_paths, filter_queries
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.session import Session
from spinney.store.sql.transitions import hold_rows, placement
from spinney.store.sql.transitions.cascades import BAD
from spinney.store.sql.transitions.job_operations import Operation

BELOW = 100
"""How many jobs below the requested ones a step deletes or cancels with them."""
TRIED_S = 0.03
"""How long, in seconds, a trial keeps others from writing before it is rolled back, and how long it lets them write
before it continues in another transaction."""
TRIED = 500
"""How many jobs below one a trial deletes with it; where there are more, they are only counted."""
_NAMED_BY = 1_000
"""From how many of the newest visible jobs a caller with limits learns the names of collections and
submitters."""
ENOUGH_S = 0.02
"""After how long, in seconds, a step takes no further job, so that it ends well within 50 ms."""


class SqlBulk:
    """Operators' verbs on many jobs, one bounded step at a time, and the queries with which such runs are
    planned."""

    def __init__(self, session: Session, clock: Callable[[], float] = time.perf_counter) -> None:
        self._session, self._clock = session, clock

    def find(
        self,
        job_filter: Filter,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> list[int]:
        """Return the ids of matching jobs, at most ``limit``, ascending, after ``after`` and up to ``until``.

        With ``newest`` they are descending, from below ``after`` (0: from the last) and down to ``until``.
        """
        with self._session.look() as tx:
            return filter_queries.ids(
                tx.all, job_filter, after=after, until=until, limit=limit, newest=newest
            )

    def count(self, job_filter: Filter, *, most: int) -> int:
        """Count the matching jobs, but no further than ``most``."""
        with self._session.look() as tx:
            return filter_queries.count(tx.all, job_filter, most=most)

    def apply(
        self,
        order: Order,
        job_ids: Sequence[int],
        actor: Actor,
        *,
        job_filter: Filter | None = None,
        named: Collection[int] = (),
        now_us: int,
    ) -> BulkStep:
        """Apply the order to each of these jobs (at most about 50) that allows it, and report why the others
        do not.

        ``job_filter``: the filter that found them. Jobs that do not match it any more are skipped, as are
        jobs (retry, rerun) that are superseded since a stage above them ran again, and jobs (cancel, hold) to
        which the verb was applied already. With a filter, the cancel of a job with open children is not
        refused: the job is cancelled when they have settled. ``named``: jobs that the caller named, so that they and
        the jobs below them count although they, or jobs above them, are superseded.

        The result names in ``instead``, for jobs of a retry that failed because of their children, the
        children to retry, and in ``unfinished`` the jobs that did not fit into the transaction. A step that
        changed something has one audit entry.
        """
        with self._session.write() as tx:
            working = _Working(tx, self._session, order, actor, job_filter, named, now_us, self._clock)
            step = working.run(job_ids)
            if step.touched or working.moved:
                details = _given_fields(order, "verb", "reason") | {"jobs": step.touched}
                if job_filter is not None:
                    details["which"] = _given_fields(job_filter, "ids")
                note(tx, now_us, actor, order.verb, details, len(step.touched))
        return step

    @contextmanager
    def trial(self) -> Iterator[Callable[[], bool]]:
        """Undo at the end of the block everything that was done with this store object within it.

        Other writers wait meanwhile, so call the function that the block receives between two steps: when
        others have waited for long, it rolls back what was done until then, lets them in, and returns True. A
        deletion that would take long is counted, not done.
        """
        begun = self._clock()
        with ExitStack() as trying:
            trying.enter_context(self._session.trial())

            def let_others() -> bool:
                nonlocal begun
                if self._clock() - begun <= TRIED_S:
                    return False
                trying.close()
                # With one transaction between two trials, a node beside a long dry run kept an eighth of its pace.
                time.sleep(TRIED_S)
                trying.enter_context(self._session.trial())
                begun = self._clock()
                return True

            yield let_others

    def failed_children(self, job_id: int, *, after: int = 0, limit: int = 50) -> list[int]:
        """Return the ids of the children because of which a job failed, or will fail, and which are to be retried in
        its place."""
        with self._session.look() as tx:
            return Operation(tx, self._session.registry, 0, "").failed_children(
                job_id, after=after, limit=limit
            )

    def trees(self, *, before: int = 0, limit: int = 100) -> list[int]:
        """Return roots of trees with more than one job, the newest first, from below ``before`` (0: from the
        last)."""
        root_ids: list[int] = []
        with self._session.look() as tx:
            while len(root_ids) < limit:
                # One entry of the index each, however many children a tree has.
                last = tx.value(
                    "select max(root_id) from jobs where parent_id is not null and root_id < ?",
                    (before or JOB_ID_MAX + 1,),
                )
                if last is None:
                    break
                before = last
                root_ids.append(last)
        return root_ids

    def stages_left(self, job_ids: Iterable[int]) -> Mapping[int, tuple[str, Sequence[str]]]:
        """Return the type of each of these jobs that is open, and the stages that it will run. Jobs of unknown types
        are left out."""
        left = {}
        with self._session.look() as tx:
            types = self._session.registry.types
            for row in (job_rows.find(tx, job_id) for job_id in job_ids):
                if row.state not in SETTLED and (spec := types.get(row.type)) is not None:
                    passed = job_rows.passed_stages(tx, row.id, spec)
                    left[row.id] = row.type, [s.name for s in spec.stages if s.name not in passed]
        return left

    def first_failure_us(self, root_id: int) -> int | None:
        """Return when the first of a tree's failed jobs settled; None where none has failed. Superseded jobs
        do not count."""
        with self._session.look() as tx:
            at_us: int | None = tx.value(
                "select min(settled_us) from jobs where state = 'failed' and superseded is null and "
                "(id = ? or (parent_id is not null and root_id = ?))",
                (root_id, root_id),
            )
            return at_us

    def names(self, kind: str, *, within: AccessScope | None = None) -> Collection[str]:
        """Return the values that a filter may have for ``queue``, ``node``, ``collection`` or ``submitter``.

        They are those of all jobs, and the declared queues. This reads all jobs, and is meant for the message
        about a filter that matched nothing. ``within``: the queues of these limits, and the collections and
        submitters of the newest thousand jobs within them.
        """
        with self._session.look() as tx:
            if kind == "queue":
                queues = None if within is None else within.queues
                return {q for q in self._session.registry.queue_names() if queues is None or q in queues}
            if kind == "node":
                return tx.column("select distinct name from nodes")
            if kind not in ("collection", "submitter"):
                raise ValueError(kind)
            if within is not None and not within.everywhere:
                newest = filter_queries.ids(tx.all, Filter(within=within), limit=_NAMED_BY, newest=True)
                listed = list_text(newest)
                sql = f"select distinct {kind} from jobs where id in (select j.value from json_each(?) j)"
                return {name for name in tx.column(sql, (listed,)) if name is not None}
            return set(access_paths.distinct(tx.all, kind, f"{kind} is not null", []))


def _given_fields(of: Order | Filter, *but: str) -> dict[str, Any]:
    """Return the fields of an order or filter that are set, without those named in ``but``, for the audit
    log."""
    return {k: v for k, v in asdict(of).items() if v is not None and v is not False and k not in but}


class _Undone(Exception):
    """Raised to undo the retry of a job that was tried."""

    def __init__(self, needs_children: bool) -> None:
        super().__init__()
        self.needs_children = needs_children
        """Whether the job could not go on without its failed children."""


class _Working:
    """One step: created for a transaction, and run once."""

    def __init__(
        self,
        tx: Tx,
        session: Session,
        order: Order,
        actor: Actor,
        job_filter: Filter | None,
        named: Collection[int],
        now_us: int,
        clock: Callable[[], float],
    ) -> None:
        """Prepare a step in a transaction of the session."""
        self.tx, self.registry, self.order, self.actor = tx, session.registry, order, actor
        self.job_filter, self.named, self.now_us, self.clock = job_filter, named, now_us, clock
        self.trial = session.trying
        """Whether it is rolled back in the end, so that nothing may be left to a later step."""
        self.moved = False
        """Something was changed on a job that ``touched`` does not hold."""
        self._room = BELOW
        self._touched: dict[int, None] = {}
        self._reopened: dict[int, None] = {}
        self._refused: dict[int, SpinneyError] = {}
        self._passed_over: list[int] = []
        self._instead: list[int] = []
        self._unfinished: list[int] = []

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
            if job_id not in fits or self._needless(job_id):
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
            unfinished=[*self._unfinished, *job_ids[done:]],
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
        if not operation.ids and job_id not in self._instead and job_id not in self._unfinished:
            self._passed_over.append(job_id)  # it was as the verb would make it
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
            operation.retry(job_id, self.order.stage)
            self._require_open(operation, job_id)

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
        if job_rows.find(self.tx, job_id).state in BAD:
            reason = self.tx.value("select reason from inactive_jobs where job_id = ?", (job_id,))
            first = "retry that one first"
            # A child cannot be retried while this job is cancelled.
            if operation.failed_children(job_id, limit=1):
                first = "retry it without a stage first, which retries its subjobs"
            raise Refused(f"job {job_id} would fail again at once, since {reason}; {first}")

    def _cancel(self, operation: Operation, job_id: int) -> None:
        """Cancel a job, with ``tree`` also jobs below it, as many as the step has room for; maintenance
        cancels the rest."""
        top = operation.cancel(
            job_id, tree=self.order.tree, reason=self.order.reason, patient=self.job_filter is not None
        )
        left = True
        if self.order.tree and operation.cancel_below(top, "", self._room) is None:
            operation.cancel_top(top.id)
            left = operation.left_open
            if not left:
                operation.forget_cancel_request(top.id)
        # While a job below is open, the cancel request stays, and maintenance goes on with it.
        self._room -= len(operation.ids)
        # A settled top is reported only where its cancel request stays; an open one ends now, or after its subjobs.
        if left or top.state not in SETTLED:
            operation.ids[:] = dict.fromkeys([*operation.ids, top.id])

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
            self._unfinished.append(job_id)
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


_VERBS: Mapping[Verb, Callable[[_Working, Operation, int], None]] = {
    Verb.RETRY: _Working._retry,
    Verb.RERUN: _Working._rerun,
    Verb.CANCEL: _Working._cancel,
    Verb.HOLD: _Working._hold,
    Verb.RELEASE: _Working._release,
    Verb.DELETE: _Working._delete,
    Verb.MOVE: _Working._move,
    Verb.PRIORITY: _Working._prioritize,
}
