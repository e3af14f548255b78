"""Everything that a caller reads of a store, within the caller's limits and with secrets redacted.

All surfaces read through this class, so that none can forget the limits. A job that is not visible does not exist
(NoSuchJob), and counts include visible jobs only. A caller without limits pays nothing for this.

Figures that are not kept by collection (rates and run times of stages and queues) are left out for a caller who is
limited to some collections: they are None then, and never figures of others."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spinney.define.params.redaction import REDACT_NOTHING, Redactor
from spinney.model.access import AccessScope
from spinney.model.errors import NoSuch, NoSuchJob, UsageError
from spinney.model.fleet import NodeStatus
from spinney.model.jobs import JOB_ID_MAX, Attempt, ChildSummary, Filter, Job
from spinney.model.rights import allowed_verbs
from spinney.model.states import LEASED, NOT_DELETED
from spinney.model.subjects import subject
from spinney.model.types import TypeSpec, known_type, passed_queues
from spinney.model.values import durations
from spinney.model.values.durations import Duration
from spinney.model.values.hints import no_such, unknown
from spinney.model.values.names import EXTERNAL_PREFIX
from spinney.service import redaction
from spinney.service.service import Service
from spinney.service.visibility import Visibility

if TYPE_CHECKING:  # each command would wait until these are loaded
    from spinney.model.attempts.failure_groups import FailureGroups
    from spinney.model.operators.locks import LockInfo
    from spinney.model.operators.queues import QueueInfo
    from spinney.model.operators.stats import Stats
    from spinney.model.settings.holds import Hold
    from spinney.model.settings.schedules import Schedule, ScheduleRun
    from spinney.store.parts import Store

STATS_WINDOW_S = 60.0
"""The period for rates where none is named, in seconds."""


_PAGE = 500
"""How many jobs are read at once where all are needed."""


def all_jobs(source: "Queries | Store", job_filter: Filter, *, newest: bool = False) -> Iterator[Job]:
    """Yield the jobs that a filter matches, in the order of their ids, or the ``newest`` first; each page is read when
    it is needed, so that jobs which are submitted meanwhile may be among them. ``source``: the queries of a caller, or
    a store."""
    after = 0
    while page := source.jobs(job_filter, after=after, limit=_PAGE, newest=newest):
        yield from page
        after = page[-1].id


class Queries(Service):
    """Every answer is as of one snapshot, unless it says otherwise; nothing is changed."""

    # --- jobs -----------------------------------------------------------------------------

    def job(self, job_id: int) -> Job:
        """Return one job. Raises NoSuchJob, also when it is not visible."""
        return self._shown([self._job(job_id)])[0]

    def jobs(
        self, job_filter: Filter, *, after: int = 0, limit: int = 100, newest: bool = False
    ) -> list[Job]:
        """Return visible jobs that match, by id (``newest``: in descending order), after the id ``after``."""
        return self._shown(self.store.jobs(self.within(job_filter), after=after, limit=limit, newest=newest))

    def counts(self, job_filter: Filter) -> Mapping[str, int]:
        """Return how many visible jobs that match are in each state."""
        return self.store.counts(self.within(job_filter))

    def below(self, job_ids: Sequence[int]) -> Mapping[int, ChildSummary]:
        """Summarize the visible direct children of visible jobs, by parent."""
        return self.store.below(job_ids, within=self._within)

    def tree(self, job_id: int, *, limit: int = 1000) -> list[Job]:
        """Return the job and all visible jobs below it, in lineage order."""
        self._job(job_id)
        return self._shown(self.store.tree(job_id, limit=limit, within=self._within))

    def children(self, job_id: int, *, after: int = 0, limit: int = 1000) -> list[Job]:
        """Return the job's direct children by id, without those that are deleted, superseded or not visible."""
        self._job(job_id)
        if self._within is None:
            return self._shown(self.store.children(job_id, after=after, limit=limit))
        children = Filter(parent_id=job_id, superseded=False, states=NOT_DELETED)
        return self.jobs(children, after=after, limit=limit)

    def attempts(self, job_id: int) -> list[Attempt]:
        """Return the job's attempts, oldest first; a running attempt is last."""
        redactor = self.redactor(job_id)
        return redaction.attempts(self.store.attempts(job_id), redactor)

    def data(self, job_id: int) -> Mapping[str, Any]:
        """Return the data that the job and its children have stored in it."""
        redactor = self.redactor(job_id)
        data = self.store.get_data(job_id)
        return data if redactor is REDACT_NOTHING else redactor.value(data)

    def results(self, job_id: int) -> Mapping[str, Any]:
        """Return the results of the stages that have passed, by stage."""
        redactor = self.redactor(job_id)
        results = self.store.results(job_id)
        if redactor is REDACT_NOTHING:
            return results
        # Value by value: the name of a stage may equal a secret, and stays.
        return {stage: redactor.value(value) for stage, value in results.items()}

    def redactor(self, job_id: int) -> Redactor:
        """Return the redactor of the job's secrets, for output and other text of the job. Raises NoSuchJob."""
        return self._redactors.of(self._job(job_id))

    def allowed(self, job: Job) -> list[str]:
        """Return the verbs that the job's state and the caller's rights allow now."""
        return allowed_verbs.allowed(job, self.rights, self.by)

    # --- figures --------------------------------------------------------------------------

    def stats(self, window_s: Duration = STATS_WINDOW_S) -> "Stats":
        """Return depths, rates (over the last ``window_s`` seconds), times and slots of visible jobs."""
        window_s = durations.seconds(window_s, "the window")
        return self.store.statistics.stats(window_s=window_s, now_us=self.clock(), within=self._within)

    def failures(self, type_: str | None = None, limit: int = 100) -> "FailureGroups":
        """Return the visible failed jobs, grouped by cause."""
        return self.store.failures.groups(type_=type_, limit=limit, within=self._within)

    def fingerprint(self, beginning: str) -> str:
        """Return the one fingerprint that begins with this text. Raises Refused, UsageError."""
        return self.store.failures.find(beginning, within=self._within)

    # --- holds and locks ------------------------------------------------------------------

    def holds(self, *, released: bool = False) -> "Sequence[Hold]":
        """Return the active holds that cover, or would cover, something visible; oldest first. ``released``: instead
        those that were released, and some of whose jobs do not go on yet; latest first."""
        holds = self.store.holds.lifted() if released else self.store.holds.all()
        return holds if self._within is None else self._visibility.holds(holds)

    def holds_on(self, job_id: int) -> "Sequence[Hold]":
        """Return the holds that cover a job, oldest first."""
        self._job(job_id)
        return (
            self.store.holds.covering(job_id) if self._within is None else self._visibility.holds_on(job_id)
        )

    def locks(self, after: str = "", limit: int = 1000) -> "Sequence[LockInfo]":
        """Return the locks that a visible job has or waits for, by name. Owners that are not visible are not named."""
        locks = self.store.locks.all(after=after, limit=limit, within=self._within)
        return locks if self._within is None else self._visibility.locks(locks)

    def lock(self, name: str) -> "Sequence[LockInfo]":
        """Return the rows of one lock; none when no visible job has it or waits for it."""
        rows = self.store.locks.get(name, within=self._within)
        return rows if self._within is None else self._visibility.locks(rows)

    # --- queues, nodes, schedules ---------------------------------------------------------

    def queues(self) -> "Sequence[QueueInfo]":
        """Return the visible queues, by name."""
        return self.store.queue_admin.all(within=self._within)

    def queue(self, name: str) -> "QueueInfo":
        """Return one queue. Raises UsageError when it does not exist or is not visible."""
        queues = None if self._within is None else self._within.queues
        if queues is not None and name not in queues:
            names = set(queues) & set(self.names("queue"))
            raise UsageError(unknown("queue", name, names))
        return self.store.queue_admin.get(name, within=self._within)

    def nodes(self) -> Sequence[NodeStatus]:
        """Return all nodes that have not left, and those that died not long ago. A limited caller does not see what
        they do for others, nor operators' reasons."""
        nodes = self.store.fleet.all(now_us=self.clock())
        if self._within is None:
            return nodes
        return [self._without_others(node) for node in nodes]

    def schedules(self) -> "Sequence[Schedule]":
        """Return the schedules whose jobs are visible, by name."""
        return [self._redactors.schedule(s) for s in self.store.schedules.all() if self._makes_visible(s)]

    def schedule(self, name: str) -> "Schedule":
        """Return one schedule. Raises NoSuch, which suggests the nearest name."""
        return self._redactors.schedule(self._schedule(name))

    def runs(self, name: str, limit: int = 20) -> "Sequence[ScheduleRun]":
        """Return the schedule's latest runs, newest first. Raises NoSuch when there is no such schedule."""
        self._schedule(name)
        return self.store.schedules.runs(name, limit=limit)

    def coming(self, name: str, count: int) -> list[int]:
        """Return the schedule's next times (µs since 1970), whether it is paused or not. Raises NoSuch when there is no
        such schedule."""
        from spinney.scheduling import recurrence

        return recurrence.coming(self._schedule(name), count)

    # --- job types, and values for filters ------------------------------------------------

    def types(self) -> Mapping[str, TypeSpec]:
        """Return the job types by name."""
        return self._types

    def type(self, name: str) -> TypeSpec:
        """Return one job type. Raises UnknownType, which suggests the nearest name."""
        return known_type(self._types, name)

    def names(self, kind: str) -> Collection[str]:
        """Return the values that a filter may have for ``queue``, ``node``, ``collection`` or ``submitter``, as far as
        visible jobs have them (for a limited caller: submitters, and where queues are limited collections, of the
        newest thousand jobs)."""
        return self.store.bulk.names(kind, within=self._within)

    # --- helpers --------------------------------------------------------------------------

    @property
    def _within(self) -> AccessScope | None:
        """Return the caller's limits; None: there are none."""
        return None if self.rights.everywhere else self.rights.within

    @cached_property
    def _visibility(self) -> Visibility:
        return Visibility(self.store, self.rights.within)

    @cached_property
    def _types(self) -> Mapping[str, TypeSpec]:
        return self.store.types()

    @cached_property
    def _redactors(self) -> redaction.Redactors:
        return redaction.Redactors(self._types)

    def _job(self, job_id: int) -> Job:
        if not 0 < job_id <= JOB_ID_MAX:
            raise NoSuchJob(job_id)  # databases raise errors of their own for numbers beyond 64 bits
        job = self.store.job(job_id)
        self.require_within(job)
        return job

    def _shown(self, jobs: list[Job]) -> list[Job]:
        if self._within is not None:
            jobs = self._visibility.jobs(jobs)
        return [
            replace(job, subject=subject(self._types.get(job.type), job.params))
            for job in self._redactors.jobs(jobs)
        ]

    def _without_others(self, node: NodeStatus) -> NodeStatus:
        """Return a node as a caller with limits sees it: only the leases of visible jobs, no reasons of operators, and
        of an external worker no host, which would tell whose it is."""
        own = Filter(node=node.node, states=tuple(LEASED), within=self._within)
        leases = self.store.job_lists.count(own, most=node.leases) if node.leases else 0
        return replace(
            node,
            leases=leases,
            used=min(node.used, leases),
            trouble=None,
            drained_by=None,
            drained_reason=None,
            host="" if node.node.startswith(EXTERNAL_PREFIX) else node.host,
        )

    def _schedule(self, name: str) -> "Schedule":
        schedules = {s.name: s for s in self.store.schedules.all() if self._makes_visible(s)}
        if name not in schedules:
            raise NoSuch(no_such("schedule", name, schedules, "spinney schedule list"))
        return schedules[name]

    def _makes_visible(self, schedule: "Schedule") -> bool:
        """Return whether the jobs that the schedule makes are visible, in all queues that they pass through."""
        spec = self._types.get(schedule.type)
        if self._within is None or spec is None:
            return self._within is None
        collection = schedule.options.get("collection")
        return all(
            self._within.holds(collection, queue)
            for queue in passed_queues(spec, schedule.options.get("queue"))
        )
