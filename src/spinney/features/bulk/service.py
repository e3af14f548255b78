"""One verb, many jobs: plan an order, preview it, and carry it out in bounded steps.

A run takes the jobs that match when it comes to them, up to the last that existed when it was planned, so
that it never pursues jobs that are submitted meanwhile. It may be interrupted between any two steps: what was
done is durable and in the audit, and the same request continues with what still matches.

What a rerun has run again completes, and would match once more. So a rerun by a filter only takes jobs that
settled before it was planned, and a repetition continues with the rest only if its filter names that time.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import nlargest

from spinney.features.bulk.and_after import AndAfterRun, finished_after, roots
from spinney.features.bulk.step_run import STEP, StepRun
from spinney.model.errors import NoSuchJob, UsageError
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import ALLOWED_STATES, DEFAULT_STATES, Order, Verb
from spinney.model.operators.bulk_runs import BulkStep, Plan, Report, StageCount
from spinney.model.settings.holds import require_valid_hold
from spinney.model.states import State
from spinney.model.types import require_priority
from spinney.service.canary import Canary, CanaryRun
from spinney.service.filter_checks import require_known, require_possible, require_queue, require_stage
from spinney.service.order_scope import OrderScope
from spinney.service.service import Service
from spinney.service.visibility import Visibility

_FOLDERS = 100
"""How many removed folders are reported to the store in one transaction."""
COUNTED = 100_000
"""How far a plan counts jobs; beyond that it only says that there are more."""
NEWEST = 20
"""How many of its jobs, the newest ones, a plan names."""
UNSEEN_LISTED = 20
"""How many invisible jobs an entry of the audit names."""
_KEPT = (State.HELD, State.SCHEDULED, State.CLAIMED, State.RUNNING, State.WAITING)
"""The states of jobs that may have a hold of their own: a hold that is placed on a pending job makes it held
at once."""


OnStep = Callable[[Report, BulkStep], None]
"""Called after each step with the report so far and the step."""
OnCanaryCheck = Callable[[Report, CanaryRun], None]
"""Called while the canary waits, with the report so far and the state of the canary."""


@dataclass(frozen=True, kw_only=True)
class Bulk(Service):
    """Bulk verbs on behalf of one caller: what each would do, and the run itself, within the caller's rights.

    A filter is narrowed to the jobs that the caller may change. Named jobs beyond that are refused, those
    that are not visible as if they did not exist.
    """

    sleep: Callable[[float], None] = time.sleep
    """How a canary waits between two looks, in seconds; tests replace it."""

    # --- planning -------------------------------------------------------------------------

    def plan(
        self, order: Order, job_filter: Filter | None = None, ids: Sequence[int] = (), *, exact: bool = False
    ) -> Plan:
        """Return to which jobs an order would be applied, without applying it.

        ``job_filter`` selects the jobs; together with ``ids`` only those of ``ids`` that match it; ``ids``
        alone names them, whether their states allow the verb or not.

        ``exact``: count the jobs that would be changed, without those for which the verb would be refused or
        change nothing; otherwise count those that match. For an exact plan the order is carried out and
        rolled back, which takes as long as doing it. When more than 50 jobs take longer than some hundredths
        of a second, other writers are let in between, and each part is tried as if those before it had not
        been done.

        Raises UsageError (or a subclass) for an order or filter that cannot be meant, with the nearest name
        that can, and Forbidden.
        """
        callers_filter = job_filter
        order_scope = self._order_scope(order)
        order_scope.require()
        require_order(self, order, order_scope.bounded(job_filter or Filter(ids=tuple(ids))))
        last = next(iter(self.store.job_lists.find(Filter(), newest=True, limit=1)), 0)
        if job_filter is None:
            fits = order_scope.bounded(
                Filter(ids=tuple(ids), states=tuple(sorted(ALLOWED_STATES[order.verb])))
            )
        else:
            job_filter = replace(job_filter, ids=tuple(ids)) if ids else job_filter
            fits = job_filter = order_scope.bounded(self._with_defaults(order.verb, job_filter))
        matching = self.store.job_lists.count(fits, most=COUNTED + 1)
        if callers_filter is not None and not matching:
            # Without the caller's name, to which a submitter's filter was narrowed: that one has no jobs is no mistake.
            require_known(self.store, callers_filter, labels=True, within=self.rights.within)
        plan = Plan(
            order=order, job_filter=job_filter, ids=tuple(dict.fromkeys(ids)), last=last, jobs=matching
        )
        matching += sum(self._completed_beside(fits, completed) for completed in self._after(plan))
        jobs = matching
        if exact:
            touched, plan = self._tried(plan)
            jobs, newest = len(touched), nlargest(NEWEST, touched)
        if not exact or jobs > COUNTED:
            newest = self.store.job_lists.find(fits, newest=True, limit=NEWEST)
        return replace(
            plan,
            jobs=min(jobs, COUNTED),
            matching=min(matching, COUNTED),
            more=jobs > COUNTED,
            newest=tuple(newest),
        )

    def _tried(self, plan: Plan) -> tuple[set[int], Plan]:
        """Return the jobs that a plan would change, and the plan with the stages that a retry or rerun would run again
        and with the refusals, all found by carrying it out in a transaction that is rolled back; where the jobs are
        more than ``COUNTED``, not all."""
        touched: set[int] = set()
        report = Report()
        opened: dict[int, None] = {}
        left: dict[int, tuple[str, Sequence[str]]] = {}
        # A plan that fits into one transaction of the verb is tried in one; a larger one may pause after each step.
        together, least = 0, STEP if plan.jobs <= STEP else 1
        with self.store.bulk.trial() as let_others:
            for step in map(self._visible, self._steps(plan, lambda: STEP, STEP, trial=True)):
                self.go_on()
                touched.update(step.touched)
                report.add(step)
                if plan.order.verb in (Verb.RETRY, Verb.RERUN):
                    opened.update(dict.fromkeys([*step.touched, *step.reopened]))
                if len(touched) > COUNTED:
                    break
                # Refusing a job takes about as long as changing it.
                together += max(1, *map(len, (step.touched, step.refused, step.skipped, step.instead)))
                if together >= least:
                    left |= self.store.bulk.stages_left(opened)
                    if let_others():
                        opened.clear()
                    together = 0
            left |= self.store.bulk.stages_left(opened)
        return touched, replace(plan, stages=self._stage_counts(left), refused=report.refused)

    def _stage_counts(self, left: Mapping[int, tuple[str, Sequence[str]]]) -> Sequence[StageCount]:
        """Return how many of these jobs, as far as the caller may see them, will run each stage: type by type, in the
        order in which the stages run. ``left``: the type of each job, and the stages that it will run."""
        in_sight = self._in_sight(left)
        counted = Counter(
            (type_, stage)
            for job_id, (type_, stages) in left.items()
            if job_id in in_sight
            for stage in stages
        )
        types = list(dict.fromkeys(type_ for type_, _ in counted))
        specs = self.store.types().items()
        place = {(type_, stage.name): i for type_, spec in specs for i, stage in enumerate(spec.stages)}
        return [
            StageCount(type=type_, stage=stage, jobs=counted[type_, stage])
            for type_, stage in sorted(counted, key=lambda of: (types.index(of[0]), place.get(of, 0)))
        ]

    def _after(self, plan: Plan) -> Iterator[Filter]:
        """Yield, for ``and_after``, a filter for each tree: the jobs that completed after its first failure."""
        if not plan.order.and_after:
            return
        order_scope = self._order_scope(plan.order)
        ids, _ = order_scope.sift(plan.ids)
        for root_id in roots(self.store, plan.order.verb, plan.job_filter, ids, plan.last):
            if (
                order_scope.whole_tree(root_id)
                and (completed := finished_after(self.store, root_id)) is not None
            ):
                yield completed

    def _completed_beside(self, fits: Filter, completed: Filter) -> int:
        """Return how many jobs match ``completed``, a filter of ``_after``, but not ``fits``."""
        jobs = self.store.job_lists.count(completed, most=COUNTED)
        if fits.states is not None and State.COMPLETED not in fits.states:
            return jobs
        both = replace(
            fits,
            root_id=completed.root_id,
            states=completed.states,
            superseded=completed.superseded,
            settled_after_us=max(completed.settled_after_us or 0, fits.settled_after_us or 0),
        )
        return jobs - self.store.job_lists.count(both, most=COUNTED)

    def _order_scope(self, order: Order) -> OrderScope:
        return OrderScope(service=self, order=order)

    def _within_scope(self, plan: Plan) -> Plan:
        """Return the plan, whoever made it, narrowed to what the caller may do. Raises Forbidden."""
        order_scope = self._order_scope(plan.order)
        order_scope.require()
        return (
            plan
            if plan.job_filter is None
            else replace(plan, job_filter=order_scope.bounded(plan.job_filter))
        )

    def _in_sight(self, job_ids: Collection[int]) -> Collection[int]:
        """Return the jobs of this list that the caller may see."""
        if self.rights.everywhere:
            return job_ids
        return Visibility(self.store, self.rights.within).visible(job_ids)

    def _with_defaults(self, verb: Verb, job_filter: Filter) -> Filter:
        """Return the filter with the conditions that the verb adds to it. Raises UsageError for states in which the
        verb is not allowed."""
        if job_filter.states is None and verb is Verb.RELEASE:
            job_filter = replace(job_filter, states=_KEPT, has_own_hold=True)
        if job_filter.states is None:
            job_filter = replace(job_filter, states=DEFAULT_STATES[verb])
        require_possible(verb, job_filter.states or ())
        if verb in (Verb.RETRY, Verb.RERUN):
            job_filter = replace(job_filter, superseded=False)
        if verb is Verb.RERUN and job_filter.settled_before_us is None:
            # A job that has run again completes and matches the filter once more: for a run beside this one, and
            # for this one where a rerun reaches jobs that it has not come to yet.
            job_filter = replace(job_filter, settled_before_us=self.clock() + 1)
        if verb is Verb.DELETE and job_filter.root_id is None and job_filter.parent_id is None:
            # The jobs that an open batch has spawned belong to its report: they are deleted with the whole tree, or
            # when the filter names the tree or the parent.
            job_filter = replace(job_filter, tree_at_rest=True)
        return job_filter

    # --- running --------------------------------------------------------------------------

    def run(
        self,
        plan: Plan,
        *,
        canary: Canary | None = None,
        at_once: int = STEP,
        on_step: OnStep = lambda report, step: None,
        on_canary_check: OnCanaryCheck = lambda report, trial: None,
    ) -> Report:
        """Carry out a plan, and report to how many jobs it was applied.

        ``canary``: open a few jobs first (retry and rerun only). ``at_once``: how many jobs one step may
        take, for callers that want to show the result of each. ``on_step`` is called after each step with the
        report so far, ``on_canary_check`` while the canary waits. Nodes are woken after each step that
        changed something. Jobs that the caller may not change are refused, each with its sentence, and are no
        error; a canary that fails ends the run, and the report has the reason.

        Raises UsageError for a canary that cannot be meant, Forbidden, and what ``go_on``, ``on_step`` and
        ``on_canary_check`` raise; what was done until then stays done.
        """
        plan = self._within_scope(plan)
        if canary is not None and (plan.order.and_after or plan.order.verb not in (Verb.RETRY, Verb.RERUN)):
            raise UsageError(
                "a canary is for retry and rerun, and not together with what finished after a failure"
            )
        report = Report()
        trial = None if canary is None else CanaryRun(canary, self.store, self.sleep, self.clock)

        def look(canary_run: CanaryRun) -> None:
            self.go_on()
            on_canary_check(report, canary_run)

        try:
            for step in map(self._visible, self._steps(plan, partial(_room, trial, look), at_once)):
                report.add(step)
                if trial is not None:
                    trial.add(step.touched)
                if step.touched:
                    self.wake_nodes()
                if plan.order.verb is Verb.DELETE and self.remove_folder is not None:
                    self._remove_folders(step.touched, self.remove_folder)
                on_step(report, step)
                self.go_on()
        except _Enough as stop:
            report.stopped = str(stop)
        if plan.order.tree:
            # Housekeeping deletes the cancel request of a wide tree, which until then cannot be retried; done at once.
            while self.store.sweep(now_us=self.clock()).more:
                self.go_on()
        self._log_unseen(report)
        return report

    def _visible(self, step: BulkStep) -> BulkStep:
        """Return a step without the jobs that the caller may not see, in its sentences as well."""
        return step if self.rights.everywhere else Visibility(self.store, self.rights.within).step(step)

    def _remove_folders(self, job_ids: Sequence[int], remove: Callable[[int], None]) -> None:
        """Remove the folders of deleted jobs, and note it in the store. If this is interrupted, nodes do the rest."""
        for start in range(0, len(job_ids), _FOLDERS):
            chunk = job_ids[start : start + _FOLDERS]
            for job_id in chunk:
                remove(job_id)
            self.store.note_removed_folders(chunk)

    def _log_unseen(self, report: Report) -> None:
        """Record in the audit that the caller named jobs that are not visible."""
        if self.rights.everywhere:
            return
        unseen = [job_id for job_id, why in report.refused.items() if why == str(NoSuchJob(job_id))]
        if unseen:
            listed_jobs = ", ".join(map(str, unseen[:UNSEEN_LISTED]))
            more = ", …" if len(unseen) > UNSEEN_LISTED else ""
            self.log_refusal(f"{len(unseen):,} jobs that do not exist: {listed_jobs}{more}")

    def _steps(
        self, plan: Plan, size: Callable[[], int], at_once: int, *, trial: bool = False
    ) -> Iterator[BulkStep]:
        """Return the steps of a plan, each durable when it is yielded. ``size``: how many jobs the next step
        may take."""
        actor, order_scope = self.actor(plan.order.reason), self._order_scope(plan.order)
        if plan.order.and_after:
            return AndAfterRun(order_scope, actor, self.clock, at_once, trial=trial).steps(
                plan.job_filter, plan.ids, plan.last
            )
        limited = None if order_scope.unlimited else order_scope
        step_run = StepRun(self.store, plan.order, actor, self.clock, size, at_once, limited)
        return (
            step_run.to(plan.ids) if plan.job_filter is None else step_run.to_all(plan.job_filter, plan.last)
        )


class _Enough(Exception):
    """Raised to end the run when too many jobs of a canary have failed; the message says so."""


def _room(trial: CanaryRun | None, look: Callable[[CanaryRun], None]) -> int:
    """Return how many jobs the next step may take. Raises _Enough when the canary has ended the run."""
    if trial is None:
        return STEP
    if trial.room() == 0 and (stopped := trial.watch(look)):
        raise _Enough(stopped)
    return trial.room()


def require_order(service: Service, order: Order, picked: Filter) -> None:
    """Raise UsageError for an order that cannot be carried out on any job: it lacks a queue, priority or reason that
    its verb needs, or names a queue or stage that does not exist.

    ``picked``: the jobs that the order is for, within the caller's limits; the message names the stages of their types.
    """
    if order.verb is Verb.HOLD:
        require_valid_hold(order.reason, order.until_us, service.clock())
    if order.verb is Verb.MOVE and order.queue is None:
        raise UsageError("name the queue to move to")
    if order.verb is Verb.PRIORITY and order.priority is None:
        raise UsageError("name the priority to give, 0 (first) to 99 (last)")
    if order.priority is not None:
        require_priority(order.priority)
    if order.queue is not None:
        require_queue(service.store, order.queue, within=service.rights.within)
    if order.stage is not None:
        require_stage(service.store, order.stage, picked)
