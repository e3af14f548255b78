"""Batches: a job at the top of a tree together with all jobs below it, and how far they are.

Nothing is stored for a batch. Its counts are those of the states of its jobs, read by root through an index,
so they are right after any crash, and reading one costs as much as counting its tree.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from spinney.model.attempts.failure_groups import FailureGroups
from spinney.model.errors import NoSuch, NoSuchJob
from spinney.model.jobs import Filter, Job
from spinney.model.states import ENDED, SETTLED, State
from spinney.model.values.lists import Page
from spinney.service.queries import Queries
from spinney.service.service import Service

PAGE = 25
"""How many batches a page has by default."""
LOOKED_AT = 500
"""How many trees are read for one page where few of them match the filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A job at the top, and what has become of all below it."""

    job: Job
    counts: Mapping[str, int]
    """How many jobs below it are in each state, superseded ones included; states without jobs and deleted
    jobs are left out."""
    total: int
    """How many jobs are below it, without deleted ones."""
    settled: int
    """How many of them have settled."""
    progress: float
    """The share of those below that have settled, 0 to 1; 0 where there are none."""
    age_s: float
    """Seconds since the job at the top was submitted, until it settled."""
    per_s: float | None
    """How many jobs settled a second, on average since the job at the top began; None: none has settled
    yet."""
    eta_us: int | None
    """When all will have settled at that rate; None: all have, the rate is not known, some are held and wait for a
    person, or none could run now, since all that are open are scheduled. It does not foresee jobs that are still to be
    spawned."""


class Batches(Service):
    """Reads batches within the limits of one caller. Nothing is stored for a batch: its counts are read from its
    jobs."""

    def page(self, job_filter: Filter, *, before: int = 0, limit: int = PAGE) -> Page[Batch]:
        """Return batches whose job at the top matches, the newest first; ``next`` is the ``before`` of the next page.

        ``before``: only numbers below it; 0: from the newest. At most ``LOOKED_AT`` trees are read for one page, so a
        page may be short or empty although others follow. Only states, type, queue, collection, submitter and message
        of the filter count.
        """
        batches: list[Batch] = []
        left = LOOKED_AT
        while left > 0:
            # Trees without regard to the filter, by one seek into the index of lineages each; then the filter
            # is applied to those few.
            limit_ = min(left, max(limit, PAGE))
            roots = self.store.bulk.trees(before=before, limit=limit_)
            left -= limit_
            for job in self._fitting(roots, job_filter):
                with suppress(NoSuchJob):  # removed meanwhile
                    batches.append(self._batch(job))
                if len(batches) == limit:
                    return Page(items=batches, next=job.id)
            if len(roots) < limit_:
                return Page(items=batches, next=None)
            before = roots[-1]
        return Page(items=batches, next=before)

    def find(self, job_id: int) -> Batch:
        """Return the batch of the job at its top. Raises NoSuchJob, and NoSuch for a job that has a parent."""
        job = self._look.job(job_id)
        if job.parent_id is not None:
            raise NoSuch(f"job {job_id} is no batch, but a subjob of one; look at it as a job")
        return self._batch(job)

    def failures(self, job_id: int, *, limit: int = 100) -> FailureGroups:
        """Return the failed jobs of a batch, grouped by cause. Raises NoSuchJob."""
        self._look.job(job_id)
        within = None if self.rights.everywhere else self.rights.within
        return self.store.failures.groups(limit=limit, within=within, root_id=job_id)

    @property
    def _look(self) -> Queries:
        return self.part(Queries)

    def _fitting(self, roots: list[int], job_filter: Filter) -> list[Job]:
        """Return the visible jobs among these that match the filter, the newest first."""
        if not roots:
            return []
        own = {
            f: getattr(job_filter, f)
            for f in ("states", "type", "queue", "collection", "submitter", "message")
        }
        return self._look.jobs(Filter(**own, ids=tuple(roots)), limit=len(roots), newest=True)

    def _batch(self, job: Job) -> Batch:
        """Count the jobs below a job. The counts are of the whole tree, so the job at the top is
        subtracted from its own state."""
        counts = dict(self._look.counts(Filter(root_id=job.id)))
        counts[job.state] = counts.get(job.state, 0) - 1
        counts.pop(State.DELETED, None)
        counts = {state: n for state, n in counts.items() if n > 0}
        total = sum(counts.values())
        settled = sum(n for state, n in counts.items() if state in SETTLED)
        now_us = job.settled_us or self.clock()
        began_us = job.started_us or job.created_us
        since = self._settled_since_opened(job, settled)
        per_s = since / ((now_us - began_us) / 1e6) if since and now_us > began_us else None
        open_ = total - settled
        foreseen = open_ > counts.get(State.SCHEDULED, 0) and State.HELD not in counts
        return Batch(
            job=job,
            counts=counts,
            total=total,
            settled=settled,
            progress=settled / total if total else 0.0,
            age_s=max(0, now_us - job.created_us) / 1e6,
            per_s=per_s,
            eta_us=now_us + round(open_ / per_s * 1e6) if per_s is not None and foreseen else None,
        )

    def _settled_since_opened(self, job: Job, settled: int) -> int:
        """Return how many of the jobs below a job, of which ``settled`` are settled, have done so since it began, or
        was opened again."""
        first_us = next((a.started_us for a in self.store.attempts(job.id) if a.started_us), None)
        if first_us is None or job.started_us is None or first_us >= job.started_us:
            return settled
        below = Filter(root_id=job.id, below=job.lineage, settled_after_us=job.started_us)
        counts = self._look.counts(below)
        return sum(n for state, n in counts.items() if state in ENDED)
