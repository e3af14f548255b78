"""``--and-after``: retries what failed in a tree, together with everything in it that completed after its
first failure.

The run goes tree by tree, and holds a tree while there is something in it to run again: its jobs are opened
in several steps, and none of them may start before those on which it builds are open, too. What completed
after the failure is opened first. So the failed job, whose time tells what came after it, stays as it is
until the last step: after an interruption anywhere in between, the same request finds the same jobs and does
the rest. Meanwhile the reason of the hold says what to do.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain

from spinney.features.bulk.step_run import PAGE, STEP, StepRun, pages
from spinney.model.errors import NoSuch
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import ALLOWED_STATES, Order, Verb
from spinney.model.operators.bulk_runs import BulkStep
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.states import State
from spinney.service.order_scope import OrderScope
from spinney.store.parts import Store

_LASTING_FIELDS = (
    "states",
    "type",
    "queue",
    "stage",
    "collection",
    "submitter",
    "root_id",
    "parent_id",
    "below",
    "node",
    "message",
    "fingerprint",
)
"""The fields of a filter whose values are the same when the request is repeated later, and which the reason
of a hold may therefore name. Ids are represented by a digest. For times, which differ in each call when they are given
as an age, the reason says only that they are set."""

_TIMES = ("created_before_us", "created_after_us")
"""The fields of a filter that are times."""


class AndAfterRun:
    """One retry or rerun with ``--and-after``: it visits the trees of the requested jobs, one after the
    other.

    The hold on a tree is the only thing that a run keeps in the store. A repeated request recognizes it by
    its reason and its author, continues in that tree, and ends the hold.
    """

    def __init__(
        self,
        order_scope: OrderScope,
        actor: Actor,
        clock: Callable[[], int],
        at_once: int = STEP,
        *,
        trial: bool = False,
    ) -> None:
        """Prepare a run. ``at_once``: how many of the requested jobs one step may take. ``trial``: the caller
        rolls everything back in the end, so that no tree needs to be held meanwhile."""
        self._order_scope, self._order = order_scope, order_scope.order
        self._store = order_scope.service.store
        self._actor, self._clock, self._at_once, self._trial = actor, clock, at_once, trial

    def steps(self, job_filter: Filter | None, ids: Sequence[int], last: int) -> Iterator[BulkStep]:
        """Carry out the order, and yield each step when it is durable.

        ``job_filter`` finds the jobs; where it is None, ``ids`` names them. No job above ``last`` is visited.
        In each tree the jobs that completed after the first failure are opened first, then those that were
        requested. Trees of which the caller may not change every job are refused as a whole; trees in which
        an earlier call was interrupted come first. Jobs that do not exist are refused in the last step.
        """
        reason = _reason(self._order.verb, job_filter, ids)
        ids, refused = self._order_scope.sift(ids)
        if refused:
            yield BulkStep(touched=(), refused=refused)
        left = self._left_held(reason)
        done: set[int] = set()
        for root_id in chain(left, roots(self._store, self._order.verb, job_filter, ids, last)):
            if root_id in done:
                continue
            done.add(root_id)
            if job_filter is not None and job_filter.root_id not in (None, root_id):
                continue  # a tree outside the filter, even if a hold of this order is left on it
            if not self._order_scope.whole_tree(root_id):
                yield BulkStep(touched=(), refused=self._beyond(root_id, job_filter, ids))
                continue
            hold_id = left.get(root_id)
            if (completed := finished_after(self._store, root_id)) is not None:
                if hold_id is None and not self._trial:
                    hold_id = self._lay(root_id, reason)
                again = replace(self._order, verb=Verb.RERUN, stage=None)
                yield from self._step_run(again).to_all(completed, last)
            yield from self._requested(root_id, job_filter, ids, last, resumed=root_id in left)
            if self._trial or (hold_id is None and root_id not in left):
                continue
            if hold_id is not None:
                # Somebody may have released it meanwhile: by hand, or by the same order given a second time.
                with suppress(NoSuch):
                    self._store.holds.lift(hold_id, self._actor, now_us=self._clock())
            while self._store.holds.sweep(now_us=self._clock()):
                pass
        if job_filter is None:
            existing = set(self._store.job_lists.find(Filter(ids=tuple(ids)), limit=len(ids)))
            yield from self._step_run(self._order).to([job_id for job_id in ids if job_id not in existing])

    def _beyond(self, root_id: int, job_filter: Filter | None, ids: Sequence[int]) -> dict[int, str]:
        """Return the requested jobs in a tree that the caller may not change as a whole, each with the
        refusal; at most ``PAGE``."""
        tree_filter = replace(Filter(ids=tuple(ids)) if job_filter is None else job_filter, root_id=root_id)
        return {job.id: self._order_scope.beyond(job) for job in self._store.jobs(tree_filter, limit=PAGE)}

    def _left_held(self, reason: str) -> dict[int, int | None]:
        """Return the trees in which an earlier call of the same order was interrupted, with their holds; None
        instead of a hold that was ended already, and has only to be swept. In such a tree every requested job
        may be open already."""
        own = (Scope.TREE, reason, self._actor.by)
        lifted, in_force = self._store.holds.lifted(), self._store.holds.all()
        trees: dict[int, int | None] = {
            int(hold.name): None for hold in lifted if (hold.scope, hold.reason, hold.by) == own
        }
        return trees | {
            int(hold.name): hold.id for hold in in_force if (hold.scope, hold.reason, hold.by) == own
        }

    def _lay(self, root_id: int, reason: str) -> int:
        """Place the hold on a tree, and return its id."""
        return self._store.holds.lay(Scope.TREE, str(root_id), reason, self._actor, now_us=self._clock()).id

    def _requested(
        self, root_id: int, job_filter: Filter | None, ids: Sequence[int], last: int, *, resumed: bool
    ) -> Iterator[BulkStep]:
        """Yield the steps that apply the order to the requested jobs of one tree.

        In a tree in which an earlier call was interrupted (``resumed``), named jobs that it has opened are
        skipped instead of refused.
        """
        step_run = self._step_run(self._order)
        if job_filter is not None:
            yield from step_run.to_all(replace(job_filter, root_id=root_id), last)
        elif resumed:
            states = tuple(sorted(ALLOWED_STATES[self._order.verb]))
            yield from step_run.to_all(Filter(root_id=root_id, ids=tuple(ids), states=states), last)
        else:
            existing = set(
                self._store.job_lists.find(Filter(root_id=root_id, ids=tuple(ids)), limit=len(ids))
            )
            yield from step_run.to([job_id for job_id in ids if job_id in existing])

    def _step_run(self, order: Order) -> StepRun:
        return StepRun(self._store, order, self._actor, self._clock, lambda: STEP, self._at_once)


def finished_after(store: Store, root_id: int) -> Filter | None:
    """Return a filter for the jobs that completed in a tree after its first failure; None when there are
    none, or nothing has failed."""
    at_us = store.bulk.first_failure_us(root_id)
    if at_us is None:
        return None
    completed = Filter(root_id=root_id, states=(State.COMPLETED,), settled_after_us=at_us, superseded=False)
    return completed if store.job_lists.count(completed, most=1) else None


def roots(
    store: Store, verb: Verb, job_filter: Filter | None, ids: Sequence[int], last: int
) -> Iterator[int]:
    """Yield the roots of the trees of these jobs, each once. ``job_filter``, ``ids`` and ``last`` are as in
    ``AndAfterRun.steps``."""
    root_ids: set[int] = set()
    id_pages = pages(store, verb, job_filter, last) if job_filter is not None else _cut(ids)
    for page in id_pages:
        for job in store.jobs(Filter(ids=tuple(page)), limit=len(page)):
            if job.root_id not in root_ids:
                root_ids.add(job.root_id)
                yield job.root_id


def _cut(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the ids in pages of ``PAGE``."""
    for start in range(0, len(ids), PAGE):
        yield ids[start : start + PAGE]


def _reason(verb: Verb, job_filter: Filter | None, ids: Sequence[int]) -> str:
    """Return the reason of the holds on trees. It is the same when the same call is made again, since it
    identifies the hold."""
    if job_filter is None:
        of = _named(ids)
    else:
        values = asdict(job_filter)
        parts = [
            f"{name.removesuffix('_id')} {' or '.join(v) if isinstance(v, tuple) else v}"
            for name in _LASTING_FIELDS
            if (v := values[name]) is not None
        ]
        parts += ["only roots"] * job_filter.roots_only
        parts += ["of some age"] * any(values[name] is not None for name in _TIMES)
        parts += [_named(job_filter.ids)] if job_filter.ids is not None else []
        of = ", ".join(parts)
    return f"{verb} --and-after of {of} has not finished; if it was interrupted, repeat the command"


def _named(ids: Sequence[int]) -> str:
    """Return a short text for jobs that were named, the same in any order, and another for other jobs."""
    named = sorted(set(ids))
    if len(named) < 2:
        return f"job {named[0]}" if named else "no job"
    digest = hashlib.sha256(",".join(map(str, named)).encode()).hexdigest()[:8]
    return f"job {named[0]} and {len(named) - 1} others ({digest})"
