"""All that is read of a store, within the limits of who asks, and with secrets masked.

Whoever shows something to somebody reads it here, so that no surface can forget the limits. A job out of sight is
not there (NoSuchJob), and what is counted is counted within. With no limits nothing of this costs anything.

What cannot be told apart by collection (rates and run times of stages and queues, whose measures know none) is
left out for somebody who is limited to some: it is None then, and never a figure of others.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from spinney.define.params.masking import REDACT_NOTHING, Redactor
from spinney.model.access import AccessScope
from spinney.model.errors import NoSuch, UsageError
from spinney.model.fleet import NodeStatus
from spinney.model.jobs import Attempt, ChildSummary, Filter, Job
from spinney.model.rights import allowed_verbs
from spinney.model.rights.operators import (
    Explanation,
    FailureGroups,
    LockInfo,
    QueueInfo,
    Stats,
)
from spinney.model.settings.holds import Hold
from spinney.model.settings.schedules import Schedule, ScheduleRun
from spinney.model.states import LEASED, State
from spinney.model.types import TypeSpec, passed_queues
from spinney.model.values import durations
from spinney.model.values.durations import Duration
from spinney.model.values.hints import did_you_mean, listed
from spinney.model.values.names import EXTERNAL_PREFIX
from spinney.scheduling import recurrence
from spinney.service import masks
from spinney.service.service import Service
from spinney.service.submission_lines import known_type
from spinney.service.visibility import Visibility


class Queries(Service):
    """Every answer is as of one snapshot, unless it says otherwise; nothing is changed."""

    # --- jobs -----------------------------------------------------------------------------

    def job(self, job_id: int) -> Job:
        """One job. Raises NoSuchJob, also when it is out of sight."""
        return self._shown([self._job(job_id)])[0]

    def jobs(self, which: Filter, *, after: int = 0, limit: int = 100, newest: bool = False) -> list[Job]:
        """Jobs that fit, by id (``newest``: the other way), from behind ``after``."""
        return self._shown(self.store.jobs(self.within(which), after=after, limit=limit, newest=newest))

    def counts(self, which: Filter) -> Mapping[str, int]:
        """How many jobs that fit stand in each state."""
        return self.store.counts(self.within(which))

    def below(self, job_ids: Sequence[int]) -> Mapping[int, ChildSummary]:
        """What the direct children of jobs that are in sight come to; of the children those in sight."""
        return self.store.below(job_ids, within=self._within)

    def within(self, which: Filter) -> Filter:
        """The filter, cut down to what is in sight: for what asks the store itself."""
        if self._within is None:
            return which
        both = self._within if which.within is None else which.within.narrowed(self._within)
        return replace(which, within=both)

    def tree(self, job_id: int, *, limit: int = 1000) -> list[Job]:
        """The job and all below it, in lineage order, without what is out of sight."""
        self._job(job_id)
        asked = limit
        while True:
            found = self.store.tree(job_id, limit=asked)
            shown = self._shown(found)
            if len(shown) >= limit or len(found) < asked:
                return shown[:limit]
            asked *= 4

    def children(self, job_id: int, *, after: int = 0, limit: int = 1000) -> list[Job]:
        """Its direct children by id, those deleted, superseded or out of sight left out."""
        self._job(job_id)
        if self._within is None:
            return self._shown(self.store.children(job_id, after=after, limit=limit))
        there = tuple(state for state in State if state is not State.DELETED)
        return self.jobs(Filter(parent_id=job_id, superseded=False, states=there), after=after, limit=limit)

    def attempts(self, job_id: int) -> list[Attempt]:
        """Its history, oldest first; a running attempt is last."""
        redactor = self.redactor(job_id)
        return masks.attempts(self.store.attempts(job_id), redactor)

    def data(self, job_id: int) -> Mapping[str, Any]:
        """What it and its children have kept in it."""
        redactor = self.redactor(job_id)
        found = self.store.get_data(job_id)
        return found if redactor is REDACT_NOTHING else redactor.value(found)

    def results(self, job_id: int) -> Mapping[str, Any]:
        """The values of the stages that have passed, by stage."""
        redactor = self.redactor(job_id)
        found = self.store.results(job_id)
        # By stage: a stage may be called as a secret is.
        return (
            found
            if redactor is REDACT_NOTHING
            else {stage: redactor.value(value) for stage, value in found.items()}
        )

    def redactor(self, job_id: int) -> Redactor:
        """What hides its secrets, for what is shown of it from elsewhere (output). Raises NoSuchJob."""
        return self._masks.over(self._job(job_id))

    def allowed(self, job: Job) -> list[str]:
        """The verbs that its state and the rights of who asks allow now."""
        return allowed_verbs.allowed(job, self.rights, self.by)

    def explain(self, job_id: int) -> Explanation:
        """Why a job is not running, in a sentence that names nothing out of sight."""
        job = self._job(job_id)
        found = self.store.explainer.explain(job_id, now_us=self.clock())
        if self._within is not None:
            found = self._visibility.explanation(found)
        return masks.explanation(found, self._masks.over(job))

    # --- figures --------------------------------------------------------------------------

    def stats(self, window_s: Duration = 60.0) -> Stats:
        """Depths, rates (of so long back), times and slots of what is in sight."""
        window_s = durations.seconds(window_s, "the window")
        return self.store.statistics.stats(window_s=window_s, now_us=self.clock(), within=self._within)

    def failures(self, type_: str | None = None, limit: int = 100) -> FailureGroups:
        """Failed jobs in sight by their cause."""
        return self.store.failures.groups(type_=type_, limit=limit, within=self._within)

    def fingerprint(self, beginning: str) -> str:
        """The one fingerprint that begins so. Raises Refused, UsageError."""
        return self.store.failures.find(beginning, within=self._within)

    # --- holds and locks ------------------------------------------------------------------

    def holds(self) -> Sequence[Hold]:
        """Those in force that cover something in sight, or would; oldest first."""
        found = self.store.holds.all()
        return found if self._within is None else self._visibility.holds(found)

    def holds_on(self, job_id: int) -> Sequence[Hold]:
        """Those that cover a job, oldest first."""
        self._job(job_id)
        return (
            self.store.holds.covering(job_id) if self._within is None else self._visibility.holds_on(job_id)
        )

    def locks(self, after: str = "", limit: int = 1000) -> Sequence[LockInfo]:
        """Locks that a job in sight has or waits for, by name. Owners out of sight are not named."""
        found = self.store.locks.all(after=after, limit=limit, within=self._within)
        return found if self._within is None else self._visibility.locks(found)

    def lock(self, name: str) -> Sequence[LockInfo]:
        """The lines of one lock; none when nobody in sight has it or waits for it."""
        found = self.store.locks.of(name, within=self._within)
        return found if self._within is None else self._visibility.locks(found)

    # --- queues, nodes, schedules ---------------------------------------------------------

    def queues(self) -> Sequence[QueueInfo]:
        """Those in sight, by name."""
        return self.store.queue_admin.all(within=self._within)

    def queue(self, name: str) -> QueueInfo:
        """One of them. Raises UsageError for one that is not there, or not in sight."""
        queues = None if self._within is None else self._within.queues
        if queues is not None and name not in queues:
            known = set(queues) & set(self.names("queue"))
            raise UsageError(
                f"no queue {name!r} is known to this store{did_you_mean(name, known)}; use one of: {listed(known)}"
            )
        return self.store.queue_admin.of(name, within=self._within)

    def nodes(self) -> Sequence[NodeStatus]:
        """All that have not left. Limited: without what they do for others, and without operators' reasons."""
        found = self.store.fleet.all(now_us=self.clock())
        if self._within is None:
            return found
        return [self._without_others(node) for node in found]

    def schedules(self) -> Sequence[Schedule]:
        """Those whose jobs are in sight, by name."""
        return [self._masks.schedule(s) for s in self.store.schedules.all() if self._makes_visible(s)]

    def schedule(self, name: str) -> Schedule:
        """One of them. Raises NoSuch with the nearest name there is."""
        return self._masks.schedule(self._schedule(name))

    def runs(self, name: str, limit: int = 20) -> Sequence[ScheduleRun]:
        """Its latest times, newest first. Raises NoSuch when there is no such schedule."""
        self._schedule(name)
        return self.store.schedules.runs(name, limit=limit)

    def coming(self, name: str, count: int) -> list[int]:
        """Its next times (µs since 1970), whether it is paused or not. Raises NoSuch when there is none."""
        return recurrence.coming(self._schedule(name), count)

    # --- what everybody sees --------------------------------------------------------------

    def types(self) -> Mapping[str, TypeSpec]:
        """Job types by name."""
        return self._types

    def type(self, name: str) -> TypeSpec:
        """One of them. Raises UnknownType with the nearest."""
        return known_type(self._types, name)

    def names(self, kind: str) -> Collection[str]:
        """What a filter may say for ``queue``, ``node``, ``collection`` or ``submitter``, as far as jobs in sight
        bear it (limited: submitters, and where queues are limited collections, of the newest thousand jobs)."""
        return self.store.bulk.names(kind, within=self._within)

    # --- helping --------------------------------------------------------------------------

    @property
    def _within(self) -> AccessScope | None:
        """The limits; None: there are none."""
        return None if self.rights.everywhere else self.rights.within

    @cached_property
    def _visibility(self) -> Visibility:
        return Visibility(self.store, self.rights.within)

    @cached_property
    def _types(self) -> Mapping[str, TypeSpec]:
        return self.store.types()

    @cached_property
    def _masks(self) -> masks.Masks:
        return masks.Masks(self._types)

    def _job(self, job_id: int) -> Job:
        found = self.store.job(job_id)
        self.require_within(found)
        return found

    def _shown(self, found: list[Job]) -> list[Job]:
        if self._within is not None:
            found = self._visibility.jobs(found)
        return self._masks.jobs(found)

    def _without_others(self, node: NodeStatus) -> NodeStatus:
        mine = Filter(node=node.node, states=tuple(LEASED), within=self._within)
        leases = self.store.bulk.count(mine, most=node.leases) if node.leases else 0
        return replace(
            node,
            leases=leases,
            used=min(node.used, leases),
            trouble=None,
            drained_by=None,
            drained_reason=None,
            host=""
            if node.node.startswith(EXTERNAL_PREFIX)
            else node.host,  # of an external worker: whose it is
        )

    def _schedule(self, name: str) -> Schedule:
        known = {s.name: s for s in self.store.schedules.all() if self._makes_visible(s)}
        if name not in known:
            raise NoSuch(
                f"there is no schedule {name!r}{did_you_mean(name, known)}; 'spinney schedule list' shows those "
                f"there are"
            )
        return known[name]

    def _makes_visible(self, schedule: Schedule) -> bool:
        """Whether the jobs that it makes are in sight, in all queues that they pass through."""
        spec = self._types.get(schedule.type)
        if self._within is None or spec is None:
            return self._within is None
        collection = schedule.options.get("collection")
        return all(
            self._within.holds(collection, queue)
            for queue in passed_queues(spec, schedule.options.get("queue"))
        )
