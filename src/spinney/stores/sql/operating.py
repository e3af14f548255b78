"""What people do to jobs: cancel, retry, rerun, release, delete.

Each verb changes what stands still and leaves a wish for what runs. Opening a settled job again
regrows what stands above it and what needed it, in the same transaction.
"""

from spinney.model.errors import DuplicateKey, Refused, UnlawfulTransition
from spinney.model.lineage import subtree
from spinney.model.progress import again_stages, next_stage, stages_from
from spinney.model.states import SETTLED, State, require
from spinney.model.types import TypeSpec
from spinney.stores.sql import placing, rows
from spinney.stores.sql.database import Tx
from spinney.stores.sql.registry import Registry
from spinney.stores.sql.rows import Row
from spinney.stores.sql.settling import Consequences

REOPENABLE = frozenset({State.FAILED, State.ORPHANED, State.CANCELLED})


class Operation:
    """One verb in one transaction. ``ids`` and ``reopened`` say what it touched."""

    def __init__(self, tx: Tx, registry: Registry, now_us: int, by: str) -> None:
        self.tx, self.registry, self.now_us, self.by = tx, registry, now_us, by
        self.consequences = Consequences(tx, registry, now_us)
        self.left_open = False
        """A pass over a tree that is to be cancelled has met a job that is open still."""
        self.ids: list[int] = []
        self.reopened: list[int] = []

    def find(self, job_id: int) -> Row:
        """The job, as one that people can see. Raises NoSuchJob."""
        if rows.hidden(self.tx, job_id):
            return rows.find(self.tx, -1)
        return rows.find(self.tx, job_id)

    # --- cancel ---------------------------------------------------------------------------

    def cancel(self, job_id: int, *, tree: bool, reason: str | None) -> Row:
        """The wish, and the job itself when it stands still. A tree's rest is ``cancel_below``."""
        row = self.find(job_id)
        if row.state in SETTLED and not tree:
            require(row.id, row.state, State.CANCELLED)
        if not tree and placing.open_children(self.tx, row.id):
            raise Refused(
                f"job {job_id} has open subjobs; cancel the whole tree (--tree), or its subjobs one by one"
            )
        if row.state is State.DELETED:
            require(row.id, row.state, State.CANCELLED)
        self.tx.run(
            "insert into wishes (job_id, lineage, tree, by, reason, at_us) values (?, ?, ?, ?, ?, ?) "
            "on conflict (job_id) do update set tree = wishes.tree or excluded.tree",
            (row.id, row.lineage, tree, self.by, reason, self.now_us),
        )
        if not tree:
            self._cancel_one(row)
        self.consequences.drain()
        return row

    def cancel_below(self, top: Row, after: str, limit: int) -> str | None:
        """One step of sweeping a tree that is to be cancelled; returns where to go on, None at its end."""
        start, until = subtree(top.lineage)
        found = rows.below(self.tx, top.root_id, max(after, start), until, limit)
        standing = [r.id for r in found if r.state not in SETTLED and not rows.hidden(self.tx, r.id)]
        for job_id in standing:
            # Looked at again: consequences of one before it may have settled this one.
            self._cancel_one(rows.find(self.tx, job_id))
        self.consequences.drain()
        self.left_open = self.left_open or any(rows.find(self.tx, j).state not in SETTLED for j in standing)
        return found[-1].lineage if len(found) == limit else None

    def cancel_top(self, job_id: int) -> None:
        """Last of its tree; the wish goes when nothing below it is open any more."""
        self._cancel_one(rows.find(self.tx, job_id))
        self.consequences.drain()

    def forget_wish(self, job_id: int) -> None:
        """A whole pass over its tree has found nothing open: it may be opened again from now on."""
        if rows.find(self.tx, job_id).state in SETTLED:
            self.tx.run("delete from wishes where job_id = ?", (job_id,))

    def _cancel_one(self, row: Row) -> None:
        if row.state in SETTLED:
            return
        if rows.leased_fence(self.tx, row.id) is not None:
            self.ids.append(row.id)
            return
        if placing.open_children(self.tx, row.id):
            return
        self.consequences.settle(row, State.CANCELLED, reason=placing.wished(self.tx, row) or "cancelled")
        self.ids.append(row.id)

    # --- retry, rerun ---------------------------------------------------------------------

    def children_to_retry(self, job_id: int) -> list[int]:
        """When the job failed because of its children: those that are to be retried in its place."""
        row = self._settled(job_id, REOPENABLE)
        return self._bad_children(row) if self._failed_because(row) == "children" else []

    def retry_each(self, job_ids: list[int]) -> None:
        """Retry some children; one that has been opened meanwhile is left alone."""
        for job_id in job_ids:
            if rows.find(self.tx, job_id).state in REOPENABLE:
                below = self.children_to_retry(job_id)
                self.retry_each(below)
                if not below:
                    self.retry(job_id, None)
        self.consequences.drain()

    def retry(self, job_id: int, stage: str | None) -> None:
        row = self._settled(job_id, REOPENABLE)
        if stage is not None:
            spec = self._spec(row)
            behind = stages_from(spec, self._stage(row, stage))
            due = next_stage(spec, rows.passed_stages(self.tx, row.id, [s.name for s in spec.stages]))
            if due is not None and due not in behind:
                raise Refused(
                    f"stage {due!r} of job {row.id} has not passed, so it cannot go on from {stage!r}"
                )
            self._supersede(row, behind)
        self._open(row)

    def rerun(self, job_id: int, stage: str | None) -> None:
        row = self._settled(job_id, SETTLED - {State.DELETED})
        spec = self._spec(row)
        first = self._stage(row, stage) if stage else spec.stages[0].name
        self._supersede(row, stages_from(spec, first))
        self._open(row)

    def _settled(self, job_id: int, allowed: frozenset[State]) -> Row:
        row = self.find(job_id)
        if row.state not in allowed:
            leased = rows.leased_fence(self.tx, row.id) is not None
            raise UnlawfulTransition(row.id, State.RUNNING if leased else row.state, State.PENDING)
        rows.move_final(self.tx, row.id)
        wish = placing.wished(self.tx, row)
        if wish is not None:
            raise Refused(f"job {job_id} is still being {wish}; try again when its tree has come to rest")
        return row

    def _spec(self, row: Row) -> TypeSpec:
        return self.registry.type(row.type)

    def _stage(self, row: Row, stage: str) -> str:
        spec = self._spec(row)
        if spec.stage(stage) is None:
            raise Refused(
                f"job type {row.type!r} has no stage {stage!r}; choose one of {', '.join(s.name for s in spec.stages)}"
            )
        return stage

    def _failed_because(self, row: Row) -> str | None:
        found: str | None = self.tx.value("select waits_for from parked where job_id = ?", (row.id,))
        return found

    def _bad_children(self, row: Row) -> list[int]:
        """Those that keep it failed; what somebody cancelled in a batch stays cancelled."""
        cancelled_too = self._spec(row).children == "completed"
        found = self.tx.all(
            "select child_id, jobs.state from children_left join jobs on jobs.id = child_id "
            "where children_left.parent_id = ? and bad = 1",
            (row.id,),
        )
        return [c for c, state in found if cancelled_too or state != State.CANCELLED]

    def _supersede(self, row: Row, stages: list[str]) -> None:
        """These stages count as not passed; the children they bore count no longer, unless spawned again
        by their key."""
        for stage in stages:
            self.tx.run("update attempts set superseded = 1 where job_id = ? and stage = ?", (row.id, stage))
            self.tx.run(
                "update jobs set superseded = 1 where parent_id = ? and birth_stage = ? and superseded is null",
                (row.id, stage),
            )
        # A finish passed all stages; whoever asks for some again asks for it, too.
        self.tx.run("update attempts set superseded = 1 where job_id = ? and outcome = 'finish'", (row.id,))
        self.tx.run(
            "delete from children_left where parent_id = ?1 and bad = 1 and child_id in "
            "(select id from jobs where parent_id = ?1 and superseded = 1)",
            (row.id,),
        )

    def _open(self, row: Row) -> None:
        """Settled to open: the job, what is above it, what needed it."""
        spec = self._spec(row)
        passed = rows.passed_stages(self.tx, row.id, [s.name for s in spec.stages])
        stage = next_stage(spec, passed)
        if stage is None:
            again = again_stages(spec)
            if not again and placing.bad_child(self.tx, row.id) is None:
                raise Refused(
                    f"every stage of job {row.id} has passed; use 'rerun' to run some of them again"
                )
            self._again(row, spec)
            stage = next_stage(spec, rows.passed_stages(self.tx, row.id, [s.name for s in spec.stages]))
        self._retake_key(row)
        self.tx.run(
            "update jobs set stage = ?, attempts = 0, interruptions = 0, settled_us = null, code = null, "
            "at_us = null where id = ?",
            (stage, row.id),
        )
        self.ids.append(row.id)
        self._regrow_above(row)
        row = row._replace(stage=stage, attempts=0, interruptions=0, at_us=None)
        if stage is None:
            self.consequences.proceed(rows.set_state(self.tx, row, State.WAITING))
        else:
            self.consequences.place(row)
        self._regrow_needers(row.id)

    def _retake_key(self, row: Row) -> None:
        if row.key is None:
            return
        scope = 0
        if self.tx.value("select 1 from keys where job_id = ?", (row.id,)) is not None:
            return
        owner = self.tx.value("select job_id from keys where scope = ? and key = ?", (scope, row.key))
        if owner is not None:
            raise DuplicateKey(row.key, owner)
        self.tx.run(
            "insert into keys (scope, key, job_id, forever) values (?, ?, ?, 0)", (scope, row.key, row.id)
        )

    # --- regrowing ------------------------------------------------------------------------

    def _regrow_above(self, row: Row) -> None:
        """Settled ancestors go back to waiting for this child; the walk ends at one that is open or
        that failed by a stage of its own. A cancelled one refuses."""
        child = row
        while child.parent_id is not None:
            if self.tx.value("select superseded from jobs where id = ?", (child.id,)):
                return
            self.tx.run(
                "delete from children_left where parent_id = ? and bad = 1 and child_id = ?",
                (child.parent_id, child.id),
            )
            self.tx.run(
                "insert into children_left (parent_id, bad, child_id) values (?, 0, ?) on conflict do nothing",
                (child.parent_id, child.id),
            )
            parent = rows.find(self.tx, child.parent_id)
            if parent.state is State.CANCELLED:
                raise Refused(f"job {parent.id} above it is cancelled; retry that one first, or rerun it")
            if parent.state is State.PENDING and rows.leased_fence(self.tx, parent.id) is None:
                placing.leave_ready(self.tx, self.registry, parent)
                self.consequences.place(parent)
            if parent.state not in SETTLED or parent.state in (State.ORPHANED, State.DELETED):
                return
            if parent.state is State.FAILED and self._failed_because(parent) is None:
                return
            self._wait_again(parent, "children", "for its subjobs, of which some run again")
            self._regrow_needers(parent.id)
            child = parent

    def _regrow_needers(self, job_id: int) -> None:
        """Those that failed because of it wait for it again."""
        for (needer_id,) in self.tx.all("select job_id from needs where need_id = ?", (job_id,)):
            needer = rows.find(self.tx, needer_id)
            if needer.state is State.FAILED and self._failed_because(needer) == "needs":
                self._wait_again(needer, "needs", "for jobs that it needs, of which some run again")
                self._regrow_above(needer)
                self._regrow_needers(needer_id)

    def _wait_again(self, row: Row, waits_for: str, reason: str) -> None:
        spec = self.registry.types.get(row.type)
        rows.move_final(self.tx, row.id)
        if spec is not None:
            self._again(row, spec)
            stage = next_stage(spec, rows.passed_stages(self.tx, row.id, [s.name for s in spec.stages]))
            self.tx.run("update jobs set stage = ? where id = ?", (stage, row.id))
        self._retake_key(row)
        placing.park(self.tx, row, State.WAITING, now_us=self.now_us, waits_for=waits_for, reason=reason)
        self.tx.run("update jobs set settled_us = null, attempts = 0 where id = ?", (row.id,))
        self.reopened.append(row.id)

    def _again(self, row: Row, spec: TypeSpec) -> None:
        for stage in again_stages(spec):
            self.tx.run(
                "update attempts set superseded = 1 where job_id = ? and stage = ? and outcome <> 'finish'",
                (row.id, stage),
            )

    # --- release --------------------------------------------------------------------------

    def release(self, job_id: int) -> None:
        row = self.find(job_id)
        if row.state is not State.HELD:
            raise Refused(
                f"job {job_id} is {row.state}, not held; 'spinney show {job_id}' tells what it waits for"
            )
        self.consequences.place(row)
        self.ids.append(row.id)
        self.consequences.drain()

    # --- delete ---------------------------------------------------------------------------

    def require_deletable(self, job_id: int) -> Row:
        """The top of what goes. Raises Refused while something below is open."""
        row = self.find(job_id)
        if row.state not in SETTLED and row.state is not State.HELD:
            state = State.RUNNING if rows.leased_fence(self.tx, row.id) is not None else row.state
            raise Refused(
                f"job {job_id} is {state}; cancel it first (spinney cancel {job_id}), then delete it"
            )
        if row.state is State.DELETED:
            require(row.id, row.state, State.DELETED)
        start, until = subtree(row.lineage)
        blocked = self.tx.one(
            "select id, state from jobs where parent_id is not null and root_id = ? and lineage > ? and lineage < ? "
            f"and state in ('pending', 'scheduled', 'waiting') and {rows.VISIBLE} limit 1",
            (row.root_id, start, until),
        )
        if blocked is not None:
            raise Refused(
                f"job {blocked[0]} below it is {blocked[1]}; cancel the tree first (spinney cancel --tree {job_id})"
            )
        return row

    def delete_below(self, top: Row, limit: int) -> list[int]:
        """The last ``limit`` of what lies below and is not deleted yet; empty at the end."""
        start, until = subtree(top.lineage)
        found = self.tx.all(
            "select id from jobs where parent_id is not null and root_id = ? and lineage > ? and lineage < ? "
            f"and state <> 'deleted' and {rows.VISIBLE} order by lineage desc limit ?",
            (top.root_id, start, until, limit),
        )
        for (job_id,) in found:
            self.delete_one(rows.find(self.tx, job_id))
        self.consequences.drain()
        return [j for (j,) in found]

    def delete_one(self, row: Row) -> None:
        tx, c = self.tx, self.consequences
        held = row.state is State.HELD
        if row.state is State.COMPLETED:
            tx.run("delete from needs where need_id = ?", (row.id,))
        placing.park(tx, row, State.DELETED, now_us=self.now_us, reason=f"deleted by {self.by}")
        for table in ("attempts", "data", "progress", "keys", "needs"):
            tx.run(f"delete from {table} where job_id = ?", (row.id,))  # literals
        tx.run("delete from wishes where job_id = ?", (row.id,))
        tx.run("update jobs set final_fence = null, final_result = null where id = ?", (row.id,))
        if row.parent_id is not None:
            tx.run("delete from children_left where parent_id = ? and child_id = ?", (row.parent_id, row.id))
            c.parent_changed(row.parent_id)
        if held:
            # It was open: whoever waits for it must not wait for ever.
            c.settled(row, State.DELETED)
        tx.run("insert into tombs (job_id, at_us) values (?, ?)", (row.id, self.now_us))
