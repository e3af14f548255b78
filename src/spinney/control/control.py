"""One person's hand on a store: to submit, and the verbs for single jobs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spinney.control.bulk import Bulk
from spinney.control.doctoring import Doctor
from spinney.control.fleet import Fleet
from spinney.control.hand import Hand
from spinney.control.holding import Holds
from spinney.control.lines import known_type, submissions
from spinney.control.locking import Locks
from spinney.control.queueing import Queues
from spinney.control.rehoming import Homes
from spinney.control.removing import remove_folders
from spinney.control.retaining import Retention
from spinney.control.scheduling import Schedules
from spinney.job.options import Options
from spinney.model.jobs import Submission
from spinney.model.types import DEFAULT_QUEUE
from spinney.params.schema import checker
from spinney.params.values import to_text
from spinney.stores.contract import Submitted, Touched

_NO_OPTIONS = Options()


class Control(Hand):
    """Every verb is durable when it returns, and wakes the nodes."""

    @property
    def bulk(self) -> Bulk:
        """One verb for many jobs."""
        return Bulk(store=self.store, clock=self.clock, nudge=self.nudge, by=self.by)

    @property
    def doctor(self) -> Doctor:
        """What must not be, and its repair."""
        return Doctor(store=self.store, clock=self.clock, nudge=self.nudge, by=self.by)

    @property
    def fleet(self) -> Fleet:
        """Nodes, to be drained, resumed, given more or fewer slots."""
        return Fleet(store=self.store, clock=self.clock, nudge=self.nudge, by=self.by)

    @property
    def holds(self) -> Holds:
        """Stops with a reason, on everything that they cover."""
        return Holds(store=self.store, clock=self.clock, nudge=self.nudge, by=self.by)

    @property
    def homes(self) -> Homes:
        """Job folders on hosts that are gone, let go of."""
        return Homes(store=self.store, clock=self.clock, nudge=self.nudge, by=self.by)

    @property
    def locks(self) -> Locks:
        """Locks, taken away from who is gone."""
        return Locks(store=self.store, clock=self.clock, nudge=self.nudge, by=self.by)

    @property
    def queues(self) -> Queues:
        """Limits, default types, pins and bars, set at run time."""
        return Queues(store=self.store, clock=self.clock, nudge=self.nudge, by=self.by)

    @property
    def retention(self) -> Retention:
        """How long settled jobs are kept."""
        return Retention(store=self.store, clock=self.clock, nudge=self.nudge, by=self.by)

    @property
    def schedules(self) -> Schedules:
        """Jobs that are made again and again."""
        return Schedules(store=self.store, clock=self.clock, nudge=self.nudge, by=self.by)

    # --- submitting -----------------------------------------------------------------------

    def submit(
        self,
        type_: str | None,
        rows: Iterable[Mapping[str, Any]],
        options: Options = _NO_OPTIONS,
        *,
        keys: Iterable[str] | None = None,
    ) -> Submitted:
        """A job for each dict of parameters, all or none. Without a type: of the default type of the queue that the
        options name.

        Raises UsageError (no type, and none by the queue), UnknownType, BadParameters (naming the parameter),
        DuplicateKey, NoSuchJob (a need).
        """
        if type_ is None:
            type_ = self.queues.default_type(options.queue or DEFAULT_QUEUE)
        check = checker(known_type(self.store.types(), type_))
        texts = []
        for row in rows:
            check(row)
            texts.append(to_text(row, f"a parameter of {type_!r}"))
        return self._submit([options.submission(type_, texts, keys)] if texts else [])

    def submit_lines(
        self, lines: Iterable[str | bytes], *, type_: str | None = None, options: Options = _NO_OPTIONS
    ) -> Submitted:
        """A job for each line of JSON, all or none; empty lines are passed over.

        With ``type_`` a line is the job's parameters. Without, it is an object with ``type``,
        ``params`` and any of the options, which win over ``options``; ``at`` is an ISO 8601 text, and
        in ``needs`` a number ``-k`` means the job of the k-th line (empty ones not counted). One that names a queue
        may leave out the type: then it is of the queue's default type.

        Raises what ``submit`` raises, with the number of the line.
        """
        return self._submit(submissions(lines, self.store.types(), type_, options, self.queues.default_type))

    def _submit(self, submissions: list[Submission]) -> Submitted:
        if not submissions:
            return Submitted(ids=[])
        done = self.store.submit(submissions, now_us=self.clock())
        self.nudge()
        return done

    # --- operating ------------------------------------------------------------------------

    def cancel(self, job_id: int, *, tree: bool = False, reason: str | None = None) -> Touched:
        """Cancel a job, or it and all below (``tree``). What runs is asked to end, then made to."""
        touched = self.store.cancel(job_id, tree=tree, by=self.by, reason=reason, now_us=self.clock())
        self.nudge()
        return touched

    def retry(self, job_id: int, *, stage: str | None = None) -> Touched:
        """Open what failed again: behind the last stage that passed, or from an earlier one."""
        touched = self.store.retry(job_id, stage=stage, by=self.by, now_us=self.clock())
        self.nudge()
        return touched

    def rerun(self, job_id: int, *, stage: str | None = None) -> Touched:
        """Run a settled job again from its first stage, or from ``stage``, whatever had passed."""
        touched = self.store.rerun(job_id, stage=stage, by=self.by, now_us=self.clock())
        self.nudge()
        return touched

    def release(self, job_id: int) -> Touched:
        """Let a held job go on."""
        touched = self.store.release(job_id, by=self.by, now_us=self.clock())
        self.nudge()
        return touched

    def delete(self, job_id: int, remove: Callable[[int], None]) -> list[int]:
        """Delete a job and all below it, with their folders; returns the ids.

        ``remove`` removes one job's folder. Where this is cut off, nodes remove what is left.
        """
        ids = [gone.job_id for gone in self.store.delete(job_id, by=self.by, now_us=self.clock())]
        remove_folders(self.store, ids, remove)
        return ids
