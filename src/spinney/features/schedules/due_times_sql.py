"""The decisions on the due times of a schedule, and the jobs that they create.

A decision has one of these outcomes: ``submitted`` (there is a job), ``queued`` (it waits for the last job),
``skipped`` (the last job was open), ``refused`` (the job cannot be submitted, with the reason) or ``missed`` (it is not
made up for). All decisions of a step, their jobs and the schedule's next time are one transaction.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.jobs import Submission
from spinney.model.settings.schedules import DATA_NAME, CatchUp, Overlap, Schedule
from spinney.scheduling import recurrence
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.submit import new_jobs
from spinney.store.sql.submit.new_jobs import Plan

RUNS_KEPT = 1_000
"""How many decided times of a schedule are kept; those that are queued are kept in any case."""
STEP = 100
"""How many times one transaction decides; with their jobs that takes some 10 ms."""


class _Decision(NamedTuple):
    """The decision on one nominal time. ``message``: the reason, for people."""

    at_us: int
    outcome: str
    message: str | None = None


class ScheduleStep:
    """Decides the times of one schedule that are due: at most ``STEP`` that wait, and ``STEP`` others.

    An object is for one step. Whether the last job is open is read once; a job of this step counts as
    open for the times after it.
    """

    def __init__(
        self, tx: Tx, registry: Registry, schedule: Schedule, now_us: int, barred: str | None = None
    ) -> None:
        """``barred``: why the schedule's maker may not submit its jobs any more, so that its times
        are refused."""
        self.tx, self.registry, self.schedule, self.now_us = tx, registry, schedule, now_us
        self._barred = barred
        self._busy = schedule.overlap is not Overlap.ALLOW and job_rows.is_open(tx, schedule.last_job_id)
        self._decisions: list[_Decision] = []
        self._plans: list[Plan] = []

    def run(self) -> None:
        """Decide the due times, submit their jobs, and store the next time, all in the caller's
        transaction.

        Times that wait are older than those that are due, and come first. Raises UsageError when the
        times cannot be computed on this host, and StoreUnusable.
        """
        schedule = self.schedule
        self._go_on()
        next_us = schedule.next_us
        if next_us is not None and next_us <= self.now_us:
            due = recurrence.due(schedule, next_us, self.now_us, STEP)
            write_missed(self.tx, schedule, due)
            decided = self._decided(due.make)
            for at_us in due.make:
                if at_us not in decided:
                    self._decide(at_us)
            next_us = due.next_us
        last_job_id = self._write()
        self.tx.run(
            "update schedules set next_us = ?, last_job_id = ? where name = ?",
            (next_us, last_job_id, schedule.name),
        )
        self._prune()

    def _go_on(self) -> None:
        """Decide the times that wait, by the overlap policy of now: with ``queue`` one when the last
        job has settled, with any other policy all, since the policy was changed after they were
        queued."""
        one_by_one = self.schedule.overlap is Overlap.QUEUE
        waiting = self.tx.column(
            "select nominal_us from schedule_runs where schedule = ? and outcome = 'queued' "
            "order by nominal_us limit ?",
            (self.schedule.name, 1 if one_by_one else STEP),
        )
        if not (one_by_one and self._busy):
            for at_us in waiting:
                self._decide(at_us)

    def _decided(self, times: list[int]) -> set[int]:
        """Return which of these times are decided already, by a node whose clock was ahead."""
        if not times:
            return set()
        sql = "select nominal_us from schedule_runs where schedule = ? and nominal_us between ? and ?"
        return set(self.tx.column(sql, (self.schedule.name, times[0], times[-1])))

    def _decide(self, at_us: int) -> None:
        """Decide one due time: it waits or is skipped while the last job is open, is refused when its job cannot be
        submitted, and otherwise gets a job."""
        if self._busy:
            outcome = "queued" if self.schedule.overlap is Overlap.QUEUE else "skipped"
            self._decisions.append(_Decision(at_us, outcome))
            return
        if self._barred is not None:
            self._decisions.append(_Decision(at_us, "refused", self._barred))
            return
        submission = submission_of(self.schedule, at_us, self.schedule.by)
        try:
            plan = new_jobs.plan(self.registry, submission)
        except StoreUnusable:
            raise
        except SpinneyError as error:
            # The schedule goes on, since its type may come back; the list of times shows the refusal.
            self._decisions.append(_Decision(at_us, "refused", str(error)))
            return
        self._plans.append(plan)
        self._decisions.append(_Decision(at_us, "submitted"))
        self._busy = self.schedule.overlap is not Overlap.ALLOW

    def _write(self) -> int | None:
        """Create the jobs, store the decisions, and return the last job that the schedule has
        created.

        A row may exist for a time that was queued, which gets its job now.
        """
        last_job_id = self.schedule.last_job_id
        ids = iter(new_jobs.inline(self.tx, self.registry, self._plans, self.now_us))
        rows: list[tuple[Any, ...]] = []
        for at_us, outcome, message in self._decisions:
            job_id = None
            if outcome == "submitted":
                job_id = last_job_id = next(ids)
            elif outcome == "skipped":
                message = f"the previous job {last_job_id} was still open"
            rows.append((self.schedule.name, at_us, job_id, outcome, message))
        self.tx.many(
            "insert into schedule_runs (schedule, nominal_us, job_id, outcome, message) values (?, ?, ?, ?, ?) "
            "on conflict (schedule, nominal_us) do update set job_id = excluded.job_id, outcome = excluded.outcome, "
            "message = excluded.message",
            rows,
        )
        return last_job_id

    def _prune(self) -> None:
        """Delete the oldest times; those that wait, and all later ones, are kept."""
        self.tx.run(
            "delete from schedule_runs where schedule = ?1 and nominal_us <= (select nominal_us from schedule_runs "
            "where schedule = ?1 and nominal_us < coalesce((select min(nominal_us) from schedule_runs "
            "where schedule = ?1 and outcome = 'queued'), ?2) order by nominal_us desc limit 1 offset ?3)",
            (self.schedule.name, 2**62, RUNS_KEPT),
        )


def submission_of(
    schedule: Schedule, at_us: int, by: str, more: Mapping[str, Any] | None = None
) -> Submission:
    """Return the submission of the job of one time.

    ``by``: the submitter, unless the options name one. The job's data has the schedule and the nominal
    time in its zone, and ``more``.
    """
    origin = {"name": schedule.name, "at": recurrence.in_zone(schedule, at_us).isoformat(), **(more or {})}
    options = {"submitter": by} | {k: v for k, v in schedule.options.items() if v is not None}
    return Submission(
        type=schedule.type,
        params=(orjson.dumps(dict(schedule.params)).decode(),),
        data={DATA_NAME: orjson.dumps(origin).decode()},
        **options,
    )


def write_missed(tx: Tx, schedule: Schedule, due: recurrence.DueTimes) -> None:
    """Store a run of missed times as one row, that of the first: there may be a hundred thousand of them.
    Without missed times nothing is stored."""
    if due.missed is None:
        return
    first_us, last_us = due.missed
    last = recurrence.in_zone(schedule, last_us).isoformat()
    until = "" if first_us == last_us else f", nor for later ones up to {last}"
    tx.run(
        "insert into schedule_runs (schedule, nominal_us, job_id, outcome, message) values (?, ?, null, 'missed', ?) "
        "on conflict (schedule, nominal_us) do nothing",
        (schedule.name, first_us, f"no node created its job in time{until}"),
    )


def keep_overdue(tx: Tx, schedule: Schedule, now_us: int) -> None:
    """Let the times wait that passed without a decision, before the schedule has other times: a later step decides
    them. Of more than ``RUNS_KEPT`` the later ones are missed. Raises UsageError when the times cannot be computed on
    this host."""
    first_us = schedule.next_us
    if first_us is None or first_us > now_us:
        return
    if schedule.paused and schedule.catch_up is CatchUp.NONE:
        due = recurrence.passed(schedule, first_us, now_us)
    else:
        due = recurrence.due(schedule, first_us, now_us, RUNS_KEPT)
    write_missed(tx, schedule, due)
    tx.many(
        "insert into schedule_runs (schedule, nominal_us, outcome) values (?, ?, 'queued') "
        "on conflict (schedule, nominal_us) do nothing",
        [(schedule.name, at_us) for at_us in due.make],
    )
    if due.next_us is not None and due.next_us <= now_us:
        write_missed(tx, schedule, recurrence.passed(schedule, due.next_us, now_us))
