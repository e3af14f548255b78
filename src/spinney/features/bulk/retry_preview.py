"""The preview of a retry or rerun, found without doing it: the rules of ``job_operations``, applied
read-only.

A test that compares a preview with what then ran keeps the two in agreement
(``tests/contract/test_bulk.py``).
"""

from collections.abc import Callable, Collection, Sequence

from spinney.model.attempts.progress import again_stages, stages_from
from spinney.model.errors import NoSuchJob
from spinney.model.lineage import ancestors
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.states import SETTLED, State
from spinney.model.types import TypeSpec
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.job_rows import Row
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.transitions import placement
from spinney.store.sql.transitions.job_operations import REOPENABLE

FailedChildren = Callable[[int], Sequence[int]]
"""Returns the children that are retried in a job's place; empty: the job itself is retried."""


class Preview:
    """The preview of one order in one snapshot.

    ``jobs`` has the result: for each job that would run, its type and the stages that it would run. ``look``
    adds to it.
    """

    def __init__(self, tx: Tx, registry: Registry, order: Order, failed_children: FailedChildren) -> None:
        self.tx, self.registry, self.order, self.failed_children = tx, registry, order, failed_children
        self.jobs: dict[int, tuple[str, Sequence[str]]] = {}
        self._waiting: dict[int, set[str]] = {}
        """Those of ``jobs`` that would wait again for their subjobs, with the stages that they would run again."""

    def look(self, job_ids: Sequence[int]) -> None:
        """Add to ``jobs`` what each of these jobs would run, and what the jobs above and after them would run
        again.

        Pass the jobs in the order in which the verb comes to them: a job that an earlier one makes continue
        is not opened by itself.
        """
        for job_id in job_ids:
            todo = [job_id]
            while todo:
                next_id = todo.pop()
                if next_id == job_id or not self._outdated(next_id):
                    todo += reversed(self._look_at(next_id))

    def _look_at(self, job_id: int) -> Sequence[int]:
        """Add what a job would run, if it would be opened, and return the jobs that would be retried in its place."""
        row = None if job_id in self.jobs else self._row(job_id)
        if row is None:
            return ()
        if (
            self.order.verb is Verb.RETRY
            and self.order.stage is None
            and (below := self.failed_children(row.id))
        ):
            return below
        if row.state in (REOPENABLE if self.order.verb is Verb.RETRY else SETTLED - {State.DELETED}):
            self._open(row)
        return self._cancelled_with(row) if row.id in self.jobs else ()

    def _cancelled_with(self, row: Row) -> Sequence[int]:
        """Return the children that are retried after a job that was cancelled with them."""
        if (
            self.order.verb is not Verb.RETRY
            or self.order.stage is not None
            or row.state is not State.CANCELLED
            or not placement.is_strict(self.registry, row)
        ):
            return ()
        return self.tx.column(
            "select child_id from children_left where parent_id = ? and bad = 1 order by child_id", (row.id,)
        )

    def _row(self, job_id: int) -> Row | None:
        """Return the row of a job; None when it does not exist, or its submission is still being written."""
        try:
            return None if job_rows.is_hidden(self.tx, job_id) else job_rows.find(self.tx, job_id)
        except NoSuchJob:
            return None

    def _open(self, row: Row) -> None:
        """Add a job that the verb would open, unless it would be refused: its type is unknown, a job above it
        is cancelled, or it lacks the stage of the order."""
        spec = self.registry.types.get(row.type)
        if spec is None or self._state_above(row) is State.CANCELLED:
            return
        stages = self._stages(row, spec)
        if stages is not None:
            self.jobs[row.id] = (row.type, stages)
            self._others_go_on(row)

    def _stages(self, row: Row, spec: TypeSpec) -> list[str] | None:
        """Return the stages that a job would run; None: it would be refused."""
        if self.order.verb is Verb.RERUN:
            behind = stages_from(spec, self.order.stage or spec.stages[0].name)
            return self._left(row, spec, behind, finished=False) if behind else None
        if self.order.stage is None:
            return self._left(row, spec, ()) or self._left(row, spec, again_stages(spec))
        behind = stages_from(spec, self.order.stage)
        due = job_rows.next_stage(self.tx, row.id, spec)
        if not behind or (due is not None and due not in behind):
            return None
        return self._left(row, spec, behind, finished=False)

    def _left(
        self, row: Row, spec: TypeSpec, superseded: Collection[str], *, finished: bool = True
    ) -> list[str]:
        """Return the stages that have not passed, counting those of ``superseded`` as not passed. After an outcome
        ``finish`` there are none, unless ``finished`` is false: then only the stages that ran count as passed."""
        passed = set()
        for stage, outcome, superseded_by in self.tx.all(
            "select stage, outcome, superseded from history where job_id = ? and superseded is distinct from 1",
            (row.id,),
        ):
            if outcome == Outcome.FINISH and superseded_by is None and finished:
                return []
            if outcome in PASSED and stage not in superseded:
                passed.add(stage)
        return [s.name for s in spec.stages if s.name not in passed]

    # --- parents and dependants -----------------------------------------------------------------

    def _state_above(self, row: Row) -> State | None:
        """Return the state of the ancestor at which regrowing ends; None: it reaches the root, or no ancestor counts on
        the job."""
        child = row
        for job_id in reversed(ancestors(row.lineage)):
            if self._superseded(child):
                return None
            child = job_rows.find(self.tx, job_id)
            if job_id in self.jobs:
                return None  # it will be open by then
            if not self._regrows(child):
                return child.state
        return None

    def _others_go_on(self, row: Row) -> None:
        """Add the jobs above a job, and those that need it, which would wait again and then continue because it
        runs."""
        todo = [row]
        while todo:
            child = todo.pop()
            for job_id in self._waiting_for(child):
                other = job_rows.find(self.tx, job_id)
                spec = self.registry.types.get(other.type)
                if spec is None:
                    continue
                above = job_id == child.parent_id
                again = again_stages(spec, self._spawn_stage(child) if above else None)
                if job_id not in self.jobs and self._regrows(other):
                    self.jobs[job_id] = (other.type, self._left(other, spec, again))
                    self._waiting |= {job_id: set(again)} if above else {}
                    todo.append(other)
                elif above and job_id in self._waiting:
                    self._waiting[job_id].update(again)
                    stages = {*self.jobs[job_id][1], *self._left(other, spec, again)}
                    self.jobs[job_id] = (other.type, [s.name for s in spec.stages if s.name in stages])

    def _waiting_for(self, row: Row) -> list[int]:
        """Return the jobs that would wait for this one: its parent, unless the job is superseded, and those
        that failed because they need it."""
        needers = [
            job_id
            for (job_id,) in self.tx.all("select job_id from needs where need_id = ?", (row.id,))
            if self._because(needer := job_rows.find(self.tx, job_id)) == "needs"
            and self._state_above(needer) is not State.CANCELLED
        ]
        return needers if row.parent_id is None or self._superseded(row) else [row.parent_id, *needers]

    def _regrows(self, row: Row) -> bool:
        """Return whether a job waits again when a job below it, or one that it needs, is opened."""
        return row.state is State.COMPLETED or (row.state is State.FAILED and self._because(row) is not None)

    def _because(self, row: Row) -> str | None:
        """Return because of what a job failed (``children``, ``needs``); None: by itself, or it has not
        failed."""
        if row.state is not State.FAILED:
            return None
        reason: str | None = self.tx.value("select waits_for from inactive_jobs where job_id = ?", (row.id,))
        return reason

    def _outdated(self, job_id: int) -> bool:
        """Return whether a job would be superseded by then, because the stage that spawned it is to run again."""
        row = self._row(job_id)
        return row is not None and self._spawn_stage(row) in self._waiting.get(row.parent_id or 0, ())

    def _spawn_stage(self, row: Row) -> str | None:
        """Return the stage of the parent that spawned the job; None: it has no parent."""
        stage: str | None = self.tx.value("select spawn_stage from jobs where id = ?", (row.id,))
        return stage

    def _superseded(self, row: Row) -> bool:
        """Return whether the job no longer counts, because the stage that spawned it has run again."""
        return bool(self.tx.value("select superseded from jobs where id = ?", (row.id,)))
