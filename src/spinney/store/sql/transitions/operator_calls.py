"""Operators' calls on single jobs and their trees, in as many transactions as they take.

Each transaction runs a step of an ``Operation``, and adds an entry to the audit; all entries of a call have
its id. A step leaves every job in a valid state, so a crash between two steps leaves a part of the work
undone and nothing half done: a cancelled tree is continued by the sweep, any other call by giving it
again."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from spinney.model.rights.actor import Actor
from spinney.store.contract import ChangedJobs, SweepResult
from spinney.store.sql.registry import job_rows
from spinney.store.sql.session import Session

if TYPE_CHECKING:
    from spinney.store.sql.transitions.job_operations import Operation

STEP = 200
"""How many jobs one transaction of a walk through a tree changes: well under 50 ms."""
RETRY_STEP = 50
"""How many jobs one transaction opens again, each perhaps with a tree above it."""


class _Call(NamedTuple):
    """A call of an operator's verb, made in one step or many. Without a verb: a consequence of an earlier one,
    which the audit has already."""

    verb: str
    details: Mapping[str, Any]
    actor: Actor
    now_us: int


class SqlJobOperations(ABC):
    """``spinney.store.contract.JobOperations``, and the later steps of a tree's cancellation."""

    session: Session

    def __init__(self) -> None:
        self._passes: dict[int, tuple[str, bool]] = {}
        """The position of the current pass through each tree with a cancel request, and whether the pass has found an
        open job."""

    @abstractmethod
    def sweep(self, *, now_us: int, limit: int = 500) -> SweepResult: ...

    def cancel(self, job_id: int, *, tree: bool, by: str, reason: str | None, now_us: int) -> ChangedJobs:
        """See ``JobOperations.cancel``.

        The cancel request of a tree is committed first: from then on every job below that is placed or
        recorded is cancelled. Then the tree is walked in lineage order, and its top comes last. The sweep
        repeats the walk until it finds no open job, because running attempts end later."""
        call = _Call("cancel", {"job": job_id, "tree": tree}, Actor(by=by, reason=reason), now_us)
        with self._operation(call) as operation:
            top = operation.cancel(job_id, tree=tree, reason=reason)
        ids = operation.ids
        if tree:
            after: str | None = ""
            while after is not None:
                with self._operation(call) as operation:
                    after = operation.cancel_below(top, after, STEP)
                ids += operation.ids
            with self._operation(call) as operation:
                operation.cancel_top(top.id)
            ids += operation.ids
            while self.sweep(now_us=now_us).more:
                pass
        return ChangedJobs(ids=ids)

    def retry(self, job_id: int, *, stage: str | None, by: str, now_us: int) -> ChangedJobs:
        """See ``JobOperations.retry``. Failed children are retried instead of a job that failed because of
        them, in transactions of ``RETRY_STEP``; the job itself regrows with the first of them."""
        call = _Call("retry", {"job": job_id, "from": stage}, Actor(by=by), now_us)
        with self._operation(call) as operation:
            children = operation.failed_children(job_id) if stage is None else []
            if not children:
                operation.retry(job_id, stage)
                operation.cascade.drain()
        ids, reopened = operation.ids, operation.reopened
        for start in range(0, len(children), RETRY_STEP):
            with self._operation(call) as operation:
                operation.retry_each(children[start : start + RETRY_STEP])
            ids += operation.ids
            reopened += operation.reopened
        return ChangedJobs(ids=ids, reopened=list(dict.fromkeys(reopened)))

    def rerun(self, job_id: int, *, stage: str | None, by: str, now_us: int) -> ChangedJobs:
        with self._operation(
            _Call("rerun", {"job": job_id, "from": stage}, Actor(by=by), now_us)
        ) as operation:
            operation.rerun(job_id, stage)
            operation.cascade.drain()
        return ChangedJobs(ids=operation.ids, reopened=operation.reopened)

    def release(self, job_id: int, *, by: str, now_us: int) -> ChangedJobs:
        with self._operation(_Call("release", {"job": job_id}, Actor(by=by), now_us)) as operation:
            operation.release(job_id)
        return ChangedJobs(ids=operation.ids)

    def delete(self, job_id: int, *, by: str, now_us: int) -> Sequence[int]:
        """See ``JobOperations.delete``. The tree is deleted from its last job up to the top, so that what is
        left after a crash is a tree that can be deleted again."""
        call = _Call("delete", {"job": job_id}, Actor(by=by), now_us)
        with self._operation(call) as operation:
            top = operation.require_deletable(job_id)
        deleted: list[int] = []
        done = False
        while not done:
            with self._operation(call) as operation:
                done = operation.delete_step(top, STEP)
            deleted += operation.ids
        return deleted

    @contextmanager
    def _operation(self, call: "_Call") -> Iterator["Operation"]:
        """Run a step of a verb, with an audit entry for its changes; a step that changed nothing leaves
        none."""
        from spinney.store.sql.audit import note
        from spinney.store.sql.transitions.job_operations import Operation

        with self.session.write() as tx:
            operation = Operation(tx, self.session.registry, call.now_us, call.actor.by)
            yield operation
            if operation.ids and call.verb:
                note(tx, call.now_us, call.actor, call.verb, call.details, len(operation.ids))

    def _sweep_trees(self, job_ids: Iterable[int], now_us: int) -> bool:
        """Do one step through each tree with a cancel request; return whether there is more of any pass.
        Positions are kept in this object only: after a restart a pass begins anew."""
        self._passes = {job_id: self._passes.get(job_id, ("", False)) for job_id in job_ids}
        more = [self._sweep_tree(job_id, now_us) for job_id in self._passes]
        return any(more)

    def _sweep_tree(self, job_id: int, now_us: int) -> bool:
        """Do one step through a tree with a cancel request; return whether there is more of this pass. The
        request is deleted by a whole pass that has found no open job: a job may be added below, or settle,
        behind its position."""
        after, found_open = self._passes[job_id]
        with self._operation(_Call("", {}, Actor(by=""), now_us)) as operation:
            top = job_rows.find_visible(operation.tx, job_id)
            until = operation.cancel_below(top, after, STEP)
            found_open = found_open or operation.left_open
            if until is None:
                operation.cancel_top(job_id)
                if not found_open:
                    operation.forget_cancel_request(job_id)
        self._passes[job_id] = ("", False) if until is None else (until, found_open)
        return until is not None
