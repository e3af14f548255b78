"""Operators' verbs on single jobs: cancel, retry, rerun, run now, move, priority, release, delete.

Each verb changes jobs that are not running. It does not touch the attempt of a running job: a cancel request is
written, which the node reads and the record of the attempt obeys; a new queue or priority counts from the next claim
on. Opening a settled job again regrows its ancestors and its dependants (see ``regrowth``).

An ``Operation`` is one transaction's worth of a verb. ``spinney.features.bulk`` runs them, and writes the audit."""

from collections.abc import Collection

from spinney.model.attempts.progress import again_stages, stages_from
from spinney.model.errors import Refused, UnlawfulTransition
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.lineage import ancestors, subtree
from spinney.model.settings.holds import Scope, UnderHold
from spinney.model.states import ENDED, SETTLED, UNSUCCESSFUL, State, require
from spinney.model.types import TypeSpec
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.registry import hold_coverage, job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import cancel_moves, hold_rows, placement, regrowth, removal
from spinney.store.sql.transitions.cascades import Cascade
from spinney.store.sql.transitions.regrowth import Regrowth

PLAIN_FACTOR = 5
"""A step through a tree that is cancelled comes to so many times as many jobs as its limit, where they are plain
(``cancel_moves``)."""


class Operation:
    """One verb in one transaction.

    ``ids`` has the jobs that the verb changed, in the order in which it did, and those that will be cancelled when
    their attempt or their subjobs have ended; ``reopened`` has other jobs that wait again because of them. Unless a
    method says so, the caller drains ``cascade`` before the transaction ends."""

    def __init__(self, tx: Tx, registry: Registry, now_us: int, by: str) -> None:
        self.tx, self.registry, self.now_us, self.by = tx, registry, now_us, by
        self.cascade = Cascade(tx, registry, now_us)
        self.regrowth = Regrowth(self.cascade)
        self.left_open = False
        """Whether a pass over a tree with a cancel request has found an open job."""
        self.ids: list[int] = []

    @property
    def reopened(self) -> list[int]:
        """Return the settled ancestors and dependants that wait again because of the verb."""
        return self.regrowth.reopened

    # --- cancel ---------------------------------------------------------------------------

    def cancel(self, job_id: int, *, tree: bool, reason: str | None, patient: bool = False) -> Row:
        """Write the cancel request, and cancel the job itself when it does not run. ``cancel_below`` cancels the rest
        of a tree.

        ``patient``: a job with open subjobs is not refused; it is cancelled when they have settled. Raises NoSuchJob,
        UnlawfulTransition, and Refused for a job with open subjobs or one that is being removed.
        """
        row = job_rows.find_visible(self.tx, job_id)
        if row.state is State.DELETED or (row.state in SETTLED and not tree):
            require(row.id, row.state, State.CANCELLED)
        if not tree and not patient and placement.open_children(self.tx, row.id):
            raise Refused(
                f"job {job_id} has open subjobs; cancel the whole tree (--tree), or its subjobs one by one"
            )
        removal.require_kept(self.tx, row)
        self.tx.run(
            "insert into cancel_requests (job_id, lineage, tree, by, reason, at_us) values (?, ?, ?, ?, ?, ?) "
            "on conflict (job_id) do update set tree = case when cancel_requests.tree = 1 then 1 else "
            "excluded.tree end",
            (row.id, row.lineage, tree, self.by, reason, self.now_us),
        )
        if not tree:
            self._cancel_one(row)
        self.cascade.drain()
        return row

    def cancel_below(self, top: Row, after: str, limit: int) -> str | None:
        """Do one step of cancelling a tree: up to ``limit`` jobs below ``top`` one by one, and all plain ones before
        these, in lineage order, behind the lineage ``after``. Return the lineage where to continue; None: this was the
        last step. ``left_open`` says afterwards whether any of them is still open, because it runs or waits for
        children."""
        start, until = subtree(top.lineage)
        most = limit * PLAIN_FACTOR
        below = job_rows.below(self.tx, top.root_id, max(after, start), until, most)
        is_last = len(below) < most
        open_ = [r for r in below if r.state not in SETTLED]
        reason = placement.tree_cancel_reason(self.tx, (*ancestors(top.lineage), top.id))
        plain = [] if reason is None else cancel_moves.plain(self.tx, open_)
        plain_ids = {r.id for r in plain}
        others = [r for r in open_ if r.id not in plain_ids]
        if len(others) > limit:
            # Those take many statements each: the step ends with the last that it has room for.
            end, is_last = others[limit - 1].lineage, False
            plain, others = [r for r in plain if r.lineage < end], others[:limit]
        else:
            end = below[-1].lineage if below else ""
        if reason is not None:
            cancel_moves.cancel(self.cascade, plain, reason)
            self.ids += [r.id for r in plain]
        unsettled = [r.id for r in others if not job_rows.is_hidden(self.tx, r.id)]
        for job_id in unsettled:
            # Read again: the cancellation of an earlier one may have settled this one.
            self._cancel_one(job_rows.find(self.tx, job_id))
        self.cascade.drain()
        self.left_open = self.left_open or any(
            job_rows.find(self.tx, j).state not in SETTLED for j in unsettled
        )
        return None if is_last else end

    def cancel_top(self, job_id: int) -> None:
        """Cancel the top of a tree, last; the cancel request is deleted when no job below is open any more."""
        self._cancel_one(job_rows.find(self.tx, job_id))
        self.cascade.drain()

    def forget_cancel_request(self, job_id: int) -> None:
        """Delete the cancel request after a whole pass has found no open job: the tree may be opened again from now
        on."""
        if job_rows.find(self.tx, job_id).state in SETTLED:
            self.tx.run("delete from cancel_requests where job_id = ?", (job_id,))

    def _cancel_one(self, row: Row) -> None:
        """Cancel one open job, if it or its tree has a cancel request. A leased one ends by its node, and one with open
        children when these have settled: its request stays until then."""
        if row.state in SETTLED or (reason := placement.cancel_reason(self.tx, row)) is None:
            return
        self.ids.append(row.id)
        if job_rows.leased_fence(self.tx, row.id) is not None:
            return
        if placement.open_children(self.tx, row.id):
            self.cascade.only_for_children(row)
            return
        self.cascade.settle(row, State.CANCELLED, reason=reason)

    # --- retry, rerun ---------------------------------------------------------------------

    def retry(self, job_id: int, stage: str | None) -> None:
        """Open a failed, orphaned or cancelled job again: it continues with its first stage that has not passed, or
        further back with ``stage``. Raises NoSuchJob, UnlawfulTransition, and Refused when a stage before ``stage`` has
        not passed."""
        row = self._settled(job_id, UNSUCCESSFUL)
        if stage is not None:
            # Stages from ``stage`` on are superseded, so that they run again although they may have passed.
            spec = self._spec(row)
            behind = stages_from(spec, self._stage(row, stage))
            first_open = job_rows.next_stage(self.tx, row.id, spec)
            if first_open is not None and first_open not in behind:
                raise Refused(
                    f"stage {first_open!r} of job {row.id} has not passed, so it cannot continue from {stage!r}"
                )
            job_rows.supersede(self.tx, row.id, behind)
        self._open(row)

    def rerun(self, job_id: int, stage: str | None) -> None:
        """Open a settled job again from ``stage`` (None: from its first), although stages behind it have passed; they
        are superseded. From the first, so are stages that the type has no more. Raises NoSuchJob, UnlawfulTransition,
        Refused."""
        row = self._settled(job_id, ENDED)
        spec = self._spec(row)
        first = self._stage(row, stage) if stage else spec.stages[0].name
        again = stages_from(spec, first)
        if len(again) == len(spec.stages):
            again += job_rows.former_stages(self.tx, row.id, spec)
        job_rows.supersede(self.tx, row.id, again)
        self._open(row)

    def _settled(self, job_id: int, allowed: Collection[State]) -> Row:
        """Return the row of a settled job that is about to be opened again, in one of the ``allowed`` states.
        Its final attempt is moved to ``attempts``, where it can be superseded, and a mark of retention is
        removed.

        Raises NoSuchJob, UnlawfulTransition for any other state, and Refused while retention removes the
        job's tree, or a cancel request for the tree is still at work (which would cancel the job at once)."""
        row = job_rows.find_visible(self.tx, job_id)
        if row.state not in allowed:
            leased = job_rows.leased_fence(self.tx, row.id) is not None
            raise UnlawfulTransition(row.id, State.RUNNING if leased else row.state, State.PENDING)
        removal.require_kept(self.tx, row)
        job_rows.move_final(self.tx, row.id)
        cancel_reason = placement.cancel_reason(self.tx, row)
        if cancel_reason is not None:
            raise Refused(f"job {job_id} is still being {cancel_reason}; try again when that is done")
        return row

    def _spec(self, row: Row) -> TypeSpec:
        return self.registry.type(row.type)

    def _stage(self, row: Row, stage: str) -> str:
        """Return the name of a stage that the job's type has. Raises Refused, with the stages that there
        are."""
        spec = self._spec(row)
        if spec.stage(stage) is None:
            raise Refused(
                f"job type {row.type!r} has no stage {stage!r}; choose one of {', '.join(s.name for s in spec.stages)}"
            )
        return stage

    def failed_children(self, job_id: int, *, after: int = 0, limit: int) -> list[int]:
        """Return the children to retry instead of a job that failed because of them, or waits for some of them: those
        that keep it failed, by id, up to ``limit`` behind the id ``after``. Empty for any other job.

        Cancelled children count only where all must complete: those of a batch stay cancelled, because somebody decided
        that."""
        row = job_rows.find_visible(self.tx, job_id)
        because_of_them = row.state in UNSUCCESSFUL and job_rows.waits_for(self.tx, row.id) == "children"
        if row.state is not State.WAITING and not because_of_them:
            return []
        cancelled_too = self._spec(row).children == "completed"
        return self.tx.column(
            "select child_id from children_left join jobs on jobs.id = child_id where children_left.parent_id = ? "
            f"and bad = 1 and child_id > ? {'' if cancelled_too else 'and jobs.state <> ?'} order by child_id limit ?",
            (row.id, after, *([] if cancelled_too else [State.CANCELLED]), limit),
        )

    def children_in_the_way(self, job_id: int) -> bool:
        """Return whether a job that was opened cannot go on without its failed children: it has failed again because of
        them, or will."""
        row = job_rows.find(self.tx, job_id)
        stopped = row.state in UNSUCCESSFUL or (
            placement.is_strict(self.registry, row) and placement.older_bad(self.tx, row) is not None
        )
        return stopped and bool(self.failed_children(job_id, limit=1))

    def fail_because_of_children(self, job_id: int) -> None:
        """Let a job that has not completed count as failed because of its children, so that it waits again when one of
        them is opened. It stays settled, and nobody is told. Raises as ``retry``."""
        row = job_rows.set_state(self.tx, self._settled(job_id, UNSUCCESSFUL), State.WAITING)
        bad = placement.bad_child(self.tx, row.id)
        reason = None if bad is None else placement.because_of(self.tx, bad)
        self.cascade.set_aside(
            row, State.FAILED, waits_for="children", reason=reason, also={"interruptions": 0, "code": None}
        )

    def _open(self, row: Row) -> None:
        """Open a settled job again, with its ancestors and its dependants.

        It continues with its first stage that has not passed. When all have, as for a job that failed because
        of its children, its stages marked ``again`` run once more; where there are none, it is checked
        whether its children let it complete now. Attempts and interruptions are counted from 0, and its time
        counts as come. Raises UnknownType, DuplicateKey (its key has been taken since), and Refused when
        nothing is left to run or a job above is cancelled."""
        spec = self._spec(row)
        stage = job_rows.next_stage(self.tx, row.id, spec)
        if stage is None:
            again = again_stages(spec)
            if not again and placement.bad_child(self.tx, row.id) is None:
                raise Refused(
                    f"every stage of job {row.id} has passed; use 'rerun' to run some of them again"
                )
            stage = regrowth.supersede_again(self.tx, row, spec)
        regrowth.retake_key(self.tx, self.registry, row)
        self.tx.run(
            "update jobs set stage = ?, attempts = 0, interruptions = 0, started_us = null, settled_us = null, "
            "code = null, at_us = null where id = ?",
            (stage, row.id),
        )
        self.ids.append(row.id)
        self.regrowth.reopen_ancestors(row)
        row = row._replace(stage=stage, attempts=0, interruptions=0, at_us=None)
        if stage is None:
            self.cascade.proceed(job_rows.set_state(self.tx, row, State.WAITING))
        else:
            self.cascade.place(row)
        self.regrowth.reopen_dependants(row.id)

    # --- run now --------------------------------------------------------------------------

    def run_now(self, job_id: int) -> None:
        """Let a scheduled job run without waiting for its time, whether that was set at submission, by a backoff or by
        a stage. What else keeps it, such as a need or a hold, still does. Raises NoSuchJob, and Refused for a job in
        another state."""
        row = job_rows.find_visible(self.tx, job_id)
        if row.state is not State.SCHEDULED:
            state = State.RUNNING if job_rows.leased_fence(self.tx, row.id) is not None else row.state
            raise Refused(
                f"job {job_id} is {state}, not scheduled for later; 'spinney show {job_id}' shows its state"
            )
        self.tx.run("update jobs set at_us = null where id = ?", (row.id,))
        self.cascade.place(row._replace(at_us=None))
        self.ids.append(row.id)

    # --- move, priority -------------------------------------------------------------------

    def into(self, job_id: int, queue: str) -> None:
        """Move a settled job into a queue for when it is opened again, and its future children, too."""
        self.tx.run("update jobs set queue_moved = ?1, queue = ?1 where id = ?2", (queue, job_id))

    def move(self, job_id: int, queue: str) -> None:
        """Move a job into another queue, for this stage and all later ones. A running job moves with its next
        attempt."""
        row = self._require_open(job_id, "moved")
        if row.queue_moved == queue:
            return
        leased = job_rows.leased_fence(self.tx, row.id) is not None
        was_ready = self._remove_from_ready(row, leased)
        if leased:
            # Its lease is of the old queue, and a returned job would go straight back to its old place, unless the
            # lease is not plain.
            self.tx.run("update jobs set queue_moved = ? where id = ?", (queue, row.id))
            self.tx.run("update leases set plain = ? where job_id = ?", (False, row.id))
        else:
            self.into(row.id, queue)
        if was_ready:
            self.cascade.return_to_ready(job_rows.find(self.tx, row.id))
        elif hold_coverage.stands_held(self.tx, row.id):
            self.cascade.place(job_rows.find(self.tx, row.id))  # perhaps no hold covers its new queue
        self.ids.append(row.id)

    def prioritize(self, job_id: int, priority: int) -> None:
        """Set another priority, in any open state. A running job keeps its slot. Raises NoSuchJob, Refused.

        The priority is a part of the key in ``ready``, so a pending job is taken out and put back."""
        row = self._require_open(job_id, "given a priority")
        if row.priority == priority:
            return
        was_ready = self._remove_from_ready(row, job_rows.leased_fence(self.tx, row.id) is not None)
        self.tx.run("update jobs set priority = ? where id = ?", (priority, row.id))
        self.tx.run("update inactive_jobs set priority = ? where job_id = ?", (priority, row.id))
        if was_ready:
            self.cascade.return_to_ready(job_rows.find(self.tx, row.id))
        elif row.state is State.WAITING:
            self._move_in_queue_of_lock(row.id)
        self.ids.append(row.id)

    def _move_in_queue_of_lock(self, job_id: int) -> None:
        """Check a job whose priority has changed for a deadlock, if it waits for a lock: it may be behind another job
        now, or before one. The job that is the first in the queue now may need less than there is room for."""
        if (name := job_rows.lock_waited_for(self.tx, job_id)) is not None:
            self.cascade.lock_freed(name)
            self.cascade.began_to_wait(job_id)

    def _require_open(self, job_id: int, participle: str) -> Row:
        """Return the row of an open job. Raises Refused; ``participle`` says what cannot be done to a settled one."""
        row = job_rows.find_visible(self.tx, job_id)
        if row.state in SETTLED:
            raise Refused(
                f"job {job_id} is {row.state}, and only an open job can be {participle}; open it again first"
            )
        return row

    def _remove_from_ready(self, row: Row, leased: bool) -> bool:
        """Remove the job from ``ready``; return whether it was there (a job of a long submission may not be placed
        yet)."""
        if leased or row.state is not State.PENDING:
            return False
        return self.cascade.leave_ready(row)

    # --- release --------------------------------------------------------------------------

    def release(self, job_id: int) -> None:
        """End the holds on this very job: that of its own stage, and those on it alone. A wider hold that covers it
        keeps it held; where there is no other, the refusal names it."""
        row = job_rows.find_visible(self.tx, job_id)
        ended = hold_rows.end_those_on(self.tx, self.registry, row.id, self.now_us, Scope.JOB)
        if not ended:
            self._require_held(row)
        if row.state is State.HELD:
            self._require_stage(row)
        row = job_rows.find(self.tx, row.id)
        if row.state is State.HELD:
            self.cascade.place(row)
        self.ids.append(row.id)
        self.cascade.drain()

    def _require_held(self, row: Row) -> None:
        if row.state is not State.HELD:
            raise Refused(
                f"job {row.id} is {row.state}, not held; 'spinney show {row.id}' tells what it waits for"
            )
        if hold_coverage.stands_held(self.tx, row.id) and (
            covering := hold_coverage.holds_of(self.tx, self.registry.holds, row)
        ):
            raise UnderHold(row.id, covering[0])

    def _require_stage(self, row: Row) -> None:
        spec = self.registry.types.get(row.type)
        if row.stage is not None and spec is not None and spec.stage(row.stage) is None:
            raise Refused(  # the next sweep would hold it again
                f"job {row.id} cannot continue: job type {row.type!r} has no stage {row.stage!r} any more; start a "
                f"node whose application has that stage and release the job, or cancel it (spinney cancel {row.id}) "
                "and retry it, which continues with the first stage of its type that has not passed"
            )

    # --- delete ---------------------------------------------------------------------------

    def require_deletable(self, job_id: int) -> Row:
        """Return the top of a tree to delete. Raises NoSuchJob, UnlawfulTransition (it is deleted already),
        and Refused while it or a job below is open or its tree is being removed. Held jobs may be deleted:
        nothing of them runs."""
        row = job_rows.find_visible(self.tx, job_id)
        if row.state not in SETTLED and row.state is not State.HELD:
            state = State.RUNNING if job_rows.leased_fence(self.tx, row.id) is not None else row.state
            raise Refused(
                f"job {job_id} is {state}; cancel it first (spinney cancel {job_id}), then delete it"
            )
        if row.state is State.DELETED:
            require(row.id, row.state, State.DELETED)
        removal.require_kept(self.tx, row)
        start, until = subtree(row.lineage)
        blocked = self.tx.one(
            "select id, state from jobs where parent_id is not null and root_id = ? and lineage > ? and lineage < ? "
            f"and state in ('pending', 'scheduled', 'waiting') and {job_rows.VISIBLE} limit 1",
            (row.root_id, start, until),
        )
        if blocked is not None:
            raise Refused(
                f"job {blocked[0]} below it is {blocked[1]}; cancel the tree first (spinney cancel --tree {job_id})"
            )
        return row

    def delete_step(self, top: Row, limit: int) -> bool:
        """Delete the last ``limit`` jobs below, and when those were all, the top; return whether it is deleted.

        Dependants are updated before a job is deleted; where they are many, that is a step by itself.
        """
        below = self.left_below(top, limit)
        last = len(below) < limit
        if not self._needed_no_more([*below, top.id] if last else below):
            self.cascade.drain()
            return False
        for job_id in below:
            self._delete_one(job_rows.find(self.tx, job_id))
        self.cascade.drain()
        if last:
            self._delete_one(self.require_deletable(top.id))
            self.cascade.drain()
        return last

    def left_below(self, top: Row, limit: int = JOB_ID_MAX) -> list[int]:
        """Return the last jobs below it that are not deleted yet, in descending lineage order, so that
        children come before their parents."""
        start, until = subtree(top.lineage)
        return self.tx.column(
            "select id from jobs where parent_id is not null and root_id = ? and lineage > ? and lineage < ? "
            f"and state <> 'deleted' and {job_rows.VISIBLE} order by lineage desc limit ?",
            (top.root_id, start, until, limit),
        )

    def _needed_no_more(self, job_ids: list[int]) -> bool:
        """Delete needs of completed ones of these jobs, which count as met; return False when there are more.

        Dependants that are not updated yet are updated first, because they cannot be found after their need is
        deleted."""
        not_updated = (
            "select m.need_id from json_each(?) j cross join met_needs m cross join jobs "
            "where m.need_id = j.value and jobs.id = m.need_id and jobs.state = 'completed'"
        )
        listed = list_text(job_ids)
        self.regrowth.update_left(self.tx.column(not_updated, (listed,)))
        return not self.tx.all(not_updated, (listed,)) and removal.delete_met_needs(self.tx, job_ids)

    def _delete_one(self, row: Row) -> None:
        """Delete a job whose children are deleted. A tombstone stays: the row in ``jobs``, and one in
        ``inactive_jobs`` that names who deleted it. Its attempts, data and key go, and ``deleted_folders``
        has its folder until that is removed, too."""
        tx, c = self.tx, self.cascade
        held = row.state is State.HELD
        c.set_aside(row, State.DELETED, reason=f"deleted by {self.by}")
        for table in ("attempts", "data", "progress", "keys", "needs", "cancel_requests"):
            tx.run(f"delete from {table} where job_id = ?", (row.id,))  # literals
        tx.run("update jobs set final_fence = null, final_result = null where id = ?", (row.id,))
        if row.parent_id is not None:
            tx.run("delete from children_left where parent_id = ? and child_id = ?", (row.parent_id, row.id))
            c.parent_changed(row.parent_id)
        if self.registry.holds.any:
            hold_rows.end_those_on(tx, self.registry, row.id, self.now_us, Scope.JOB, Scope.TREE)
        if held:
            tx.run("update jobs set settled_us = ? where id = ?", (self.now_us, row.id))
            # It was open: its dependants must not wait for ever.
            c.settled(row, State.DELETED)
        home = self.registry.homes.of(tx, row.node_id)
        tx.run(
            "insert into deleted_folders (job_id, at_us, home) values (?, ?, ?)", (row.id, self.now_us, home)
        )
        self.ids.append(row.id)
