"""The order in which a bulk verb comes to its jobs, a bounded step at a time.

A retry goes from the newest to the oldest: a job below comes before one that failed because of it, which then
waits again and needs no retry of its own. When a job failed because of children that the filter does not
match, those are retried in its place. Jobs for which the retry was refused are tried once more in the end,
because what stood in the way may have been opened since.

All other verbs go from the oldest to the newest: a rerun supersedes the jobs that its stages spawned before
it comes to them, and a parent has its cancel request before its last child has settled.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import ALLOWED_STATES, Order, Verb
from spinney.model.operators.bulk_runs import BulkStep, TreePosition
from spinney.model.rights.actor import Actor

if TYPE_CHECKING:
    from spinney.service.order_scope import OrderScope
    from spinney.store.parts import Store

STEP = 50
"""The most jobs that one transaction is given."""
PAGE = 1_000
"""How many jobs are looked up in one query."""
_MENDABLE = Filter(states=tuple(sorted(ALLOWED_STATES[Verb.RETRY])))
"""Matches the jobs that a retry may open, for those that are retried in place of others."""


def pages(store: "Store", verb: Verb, job_filter: Filter, last: int) -> Iterator[list[int]]:
    """Yield the jobs that match the filter in pages of at most ``PAGE`` ids, none above ``last``: for retry the newest
    first, for other verbs the oldest first. Each page is looked up when it is asked for, so it has the jobs that match
    then."""
    newest = verb is Verb.RETRY
    after, until = (last + 1, None) if newest else (0, last)
    while page := store.job_lists.find(job_filter, after=after, until=until, limit=PAGE, newest=newest):
        yield page
        after = page[-1]


class StepRun:
    """One run of an order over some jobs. A step is durable when it is yielded, so the caller may stop after
    any of them.

    An object is used for one run: it remembers which jobs were opened and refused.
    """

    def __init__(
        self,
        store: "Store",
        order: Order,
        actor: Actor,
        clock: Callable[[], int],
        size: Callable[[], int],
        at_once: int = STEP,
        order_scope: "OrderScope | None" = None,
    ) -> None:
        """Prepare a run.

        ``size`` returns how many jobs the next step may take. ``at_once``: how many of them may be requested
        jobs; the others are retried in their place. ``order_scope``: which jobs the caller may change (None:
        all).
        """
        self._store, self._order, self._actor, self._clock = store, order, actor, clock
        self._size, self._at_once, self._order_scope = size, at_once, order_scope
        self._mendable = _MENDABLE if order_scope is None else order_scope.bounded(_MENDABLE)
        self._filter = self._mendable
        self._named: Collection[int] = ()
        self._opened: set[int] = set()
        """The jobs that steps have changed or made wait again; in a run by filter only those of the first such step."""
        self._refused: dict[int, None] = {}

    def to(self, job_ids: Sequence[int]) -> Iterator[BulkStep]:
        """Apply the order to these jobs, whether their states allow it or not, and yield the steps."""
        self._named = frozenset(job_ids)
        for start in range(0, len(job_ids), PAGE):
            yield from self._sifted(job_ids[start : start + PAGE], None)
        yield from self._once_more(job_ids)

    def to_all(self, job_filter: Filter, last: int) -> Iterator[BulkStep]:
        """Apply the order to all jobs that match the filter, none above ``last``, and yield the steps."""
        self._filter = job_filter
        for page in pages(self._store, self._order.verb, job_filter, last):
            yield from self._sifted(page, job_filter)
        yield from self._once_more(())

    def _sifted(self, job_ids: Sequence[int], job_filter: Filter | None) -> Iterator[BulkStep]:
        """Yield the steps on the jobs that the caller may change, and before them one with the refusals of
        the others."""
        if self._order_scope is not None:
            job_ids, refused = self._order_scope.sift(job_ids, named=job_filter is None)
            if refused:
                yield BulkStep(touched=(), refused=refused)
        yield from self._apply(job_ids, job_filter, self._at_once)

    def _apply(
        self, job_ids: Sequence[int], job_filter: Filter | None, at_once: int = STEP
    ) -> Iterator[BulkStep]:
        """Yield the steps on these jobs, in order. After each step, failed children are retried in place of the jobs
        that failed because of them."""
        todo = list(job_ids)
        positions: Mapping[int, TreePosition] = {}
        while todo:
            if self._named:
                todo = [job_id for job_id in todo if job_id not in self._opened]
            if not todo:
                return
            n = min(self._size(), at_once)
            step = self._store.bulk.apply(
                self._order,
                todo[:n],
                self._actor,
                job_filter=job_filter,
                named=self._named,
                positions=positions,
                now_us=self._clock(),
                retried=self._filter,
            )
            self._remember(step)
            # What was changed with another job, such as the top of its tree, is done.
            done = {*step.touched, *step.reopened}
            todo = [job_id for job_id in (*step.unfinished, *todo[n:]) if job_id not in done]
            positions = step.positions
            yield step
            for job_id in step.instead:
                yield from self._in_place_of(job_id)

    def _in_place_of(self, job_id: int) -> Iterator[BulkStep]:
        """Yield the steps that retry the children because of which a job failed, without those that count no more,
        because the retry of another lets the stage that spawned them run again; in place of a child that failed because
        of its own children, those."""
        after = 0
        while children := self._store.bulk.failed_children(job_id, after=after, limit=STEP):
            yield from self._apply(children, self._mendable)
            after = children[-1]

    def _once_more(self, named: Sequence[int]) -> Iterator[BulkStep]:
        """Yield the steps that try refused jobs of a retry again, if anything was opened since the beginning: those
        that were found, then those that were named."""
        if self._order.verb is Verb.RETRY and self._opened:
            refused = set(self._refused)
            yield from self._apply(sorted(refused.difference(named)), self._mendable, self._at_once)
            yield from self._apply(sorted(refused.intersection(named)), None, self._at_once)

    def _remember(self, step: BulkStep) -> None:
        """Note which jobs a step has opened, and which are still refused."""
        # For jobs that a filter finds, it is enough to know that there were any.
        if self._named or not self._opened:
            self._opened.update(step.touched, step.reopened)
        for job_id in (*step.touched, *step.reopened):
            self._refused.pop(job_id, None)
        self._refused.update(dict.fromkeys(step.refused))
