"""Schedules, and the step that creates their jobs.

``schedules.next_us`` is the first nominal time that has not been decided. A step writes, in one transaction,
the decision on that time (``schedule_runs``, where the pair of schedule and time is unique), its job, and the
next time. So any number of nodes may make steps, a crash leaves all of it or nothing, and no leader is
needed.

A time that waits for the job of the one before it (``queued``) is a row without a job; a later step gives it
one. Times are decided in order, so that those that wait are always older than those to come.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from spinney.define.params.redaction import redact_params, redaction_schema
from spinney.features.schedules.due_times_sql import ScheduleStep, keep_overdue, submission_of, write_missed
from spinney.features.webhooks import maker_rights
from spinney.model.errors import Refused, SpinneyError, UsageError
from spinney.model.rights.actor import Actor
from spinney.model.settings.schedules import CatchUp, Overlap, Schedule, ScheduleRun
from spinney.model.values.unreadable import UNREADABLE
from spinney.scheduling import recurrence
from spinney.store import skip_scan
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import RowMap, require_name, unknown_name, upsert
from spinney.store.sql.registry import job_rows
from spinney.store.sql.registry.registry import Registry
from spinney.store.sql.session import Session
from spinney.store.sql.submit import new_jobs

DROP_STEP = 2_000
"""How many times one transaction deletes, so that none is long."""
REST_US = 60_000_000
"""How long a schedule is left alone whose times cannot be computed on this host: a minute."""
REPEAT_US = 3_600_000_000
"""How long a reason for that, which thousands of schedules may share, is not reported again: an hour."""

_SECOND_US = 1_000_000
_COLUMNS = "name, spec, paused, next_us, last_job_id, by, declared"
_RUNS = RowMap(ScheduleRun, "schedule_runs")
_QUEUED = "(select count(*) from schedule_runs r where r.schedule = schedules.name and r.outcome = 'queued')"
"""The number of times of a schedule that wait for its last job."""
_IS_QUEUED = "outcome = 'queued'"  # the condition of a partial index
_WAITING = (
    f"select {_COLUMNS} from schedules where paused = 0 and name in "
    f"({skip_scan.distinct('schedule_runs', 'schedule', _IS_QUEUED)})"
)
"""Selects the schedules with such times, by one seek for each in the partial index of these times: a schedule keeps a
thousand others, and any number may wait."""


class SqlSchedules:
    """Schedules, and the nominal times at which they make jobs. Changes by people are audited in their
    own transaction.

    An object belongs to one process. What it remembers is only which schedules it cannot compute.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._unable: dict[str, int] = {}
        """Schedules whose times cannot be computed on this host, and when to try again."""
        self._reported: dict[str, int] = {}
        """Reasons for which a schedule's times could not be computed, and until when each is not reported again."""

    # --- commands of people and applications ----------------------------------------------

    def put(self, schedule: Schedule, actor: Actor, *, replace: bool = True, now_us: int) -> Schedule:
        """Create or replace a schedule, and return it; the actor becomes its maker.

        A replaced one stays paused if it was, and keeps its next time if cron expression, interval
        and zone are unchanged; otherwise it begins anew from now, and those of its old times that passed
        without a job are caught up with by its policy. One that is declared in code
        becomes the operator's, and its declaration is ignored from then on.

        Raises UsageError (cron, zone), UnknownType, BadParameters (the field of a lock is missing;
        the caller has checked the others) and Refused when it exists and ``replace`` is false.
        """
        with self._session.write() as tx:
            by = tx.value("select by from schedules where name = ?", (schedule.name,))
            if by is not None and not replace:
                raise Refused(
                    f"there is a schedule {schedule.name!r} already, by {by}; choose another name, or replace it "
                    f"(--replace)"
                )
            old = _find_readable(tx, schedule.name)
            return self._put(tx, schedule, old, actor, declared=False, now_us=now_us)

    def declare(self, schedules: Iterable[Schedule], actor: Actor, *, now_us: int) -> Sequence[str]:
        """Store the schedules that an application declares, where they are new or differ from the
        last declaration.

        Schedules that a person created or replaced stay as they are; returns their names where they
        differ from the declaration. Raises what ``put`` raises; then none is stored.
        """
        declared = list(schedules)
        unchanged = []
        if declared:
            with self._session.write() as tx:
                for schedule in declared:
                    old = _find_readable(tx, schedule.name)
                    if old is not None and old.to_json() == schedule.to_json():
                        continue
                    if tx.exists("select 1 from schedules where name = ? and declared = 0", (schedule.name,)):
                        unchanged.append(schedule.name)
                        continue
                    self._put(tx, schedule, old, actor, declared=True, now_us=now_us)
        return unchanged

    def pause(self, name: str, actor: Actor, *, paused: bool, now_us: int) -> Schedule:
        """Pause a schedule, or resume it, and return it.

        A resumed one catches up on the times that passed, by its policy. With ``none`` all of them
        are stored as missed here, because the next step would still make up for one that is less than
        a minute past. Where the maker has lost the right to the schedule, whoever resumes it becomes
        the maker. Raises NoSuch, and UsageError for one that cannot be read.
        """
        with self._session.write() as tx:
            schedule = _require(tx, name)
            if not paused and _fault(tx, self._session.registry, _row(tx, name), now_us) is not None:
                # The maker has lost the right to it: the operator who resumes it becomes the maker.
                spec = _spec(schedule, maker_rights.new_entry(tx, actor))
                tx.run("update schedules set spec = ?, by = ? where name = ?", (spec, actor.by, name))
                schedule = replace(schedule, by=actor.by)
            elif schedule.paused == paused:
                return schedule
            next_us = schedule.next_us
            if not paused and schedule.catch_up is CatchUp.NONE and next_us is not None and next_us <= now_us:
                missed = recurrence.passed(schedule, next_us, now_us)
                write_missed(tx, schedule, missed)
                next_us = missed.next_us
            tx.run("update schedules set paused = ?, next_us = ? where name = ?", (paused, next_us, name))
            note(tx, now_us, actor, "schedule pause" if paused else "schedule resume", {"schedule": name}, 1)
        return replace(schedule, paused=paused, next_us=next_us)

    def drop(self, name: str, actor: Actor, *, now_us: int) -> None:
        """Remove a schedule and its history in bounded steps; its jobs stay.

        The last step removes it, so call this again if it was cut off. Raises NoSuch.
        """
        while True:
            with self._session.write() as tx:
                require_name(tx, "schedules", "schedule", name)
                if tx.delete_some(
                    "schedule_runs", "schedule, nominal_us", "schedule = ?", (name,), DROP_STEP
                ):
                    continue
                tx.run("delete from schedules where name = ?", (name,))
                note(tx, now_us, actor, "schedule drop", {"schedule": name}, 1)
                return

    def run(self, name: str, actor: Actor, *, now_us: int) -> int:
        """Create one job now, apart from the nominal times, and return its id.

        Raises NoSuch, Refused when the last job is open and jobs of this schedule must not overlap,
        and what ``submit`` raises.
        """
        with self._session.write() as tx:
            schedule, registry = _require(tx, name), self._session.registry
            last_job_id = schedule.last_job_id
            if schedule.overlap is not Overlap.ALLOW and job_rows.is_open(tx, last_job_id):
                raise Refused(
                    f"job {last_job_id} of schedule {name!r} is still open, and its overlap policy is "
                    f"{schedule.overlap}; wait until it has settled (spinney wait {last_job_id})"
                )
            submission = submission_of(schedule, now_us, actor.by, {"manual": True})
            (job_id,) = new_jobs.inline(tx, registry, [new_jobs.plan(registry, submission)], now_us)
            tx.run("update schedules set last_job_id = ? where name = ?", (job_id, name))
            note(tx, now_us, actor, "schedule run", {"schedule": name, "job": job_id}, 1)
        return job_id

    def _put(
        self, tx: Tx, schedule: Schedule, old: Schedule | None, actor: Actor, *, declared: bool, now_us: int
    ) -> Schedule:
        """Store a schedule in the caller's transaction, and write its audit entry, with secrets
        redacted.

        Everything of the old one that is not a part of the definition is taken over: the last job,
        the times that wait, a pause.
        """
        recurrence.require(schedule)
        schedule = replace(
            schedule,
            anchor_us=now_us - now_us % _SECOND_US,
            last_job_id=None if old is None else old.last_job_id,
            queued=0 if old is None else old.queued,
            by=actor.by,
            declared=declared,
            paused=schedule.paused or (old is not None and old.paused),
        )
        # An interval counts from its anchor, so the anchor must stay where the times should.
        if old is not None and old.timing == schedule.timing:
            schedule = replace(schedule, anchor_us=old.anchor_us, next_us=old.next_us)
        else:
            schedule = replace(schedule, next_us=recurrence.next_us(schedule, now_us))
            if old is not None:
                # Times that this host cannot compute must not prevent a correction.
                with suppress(UsageError):
                    keep_overdue(tx, replace(old, catch_up=schedule.catch_up, paused=schedule.paused), now_us)
        # A schedule that could create no job is refused now, not at its first time.
        new_jobs.plan(self._session.registry, submission_of(schedule, now_us, schedule.by))
        values = {
            "name": schedule.name,
            "spec": _spec(schedule, maker_rights.new_entry(tx, actor)),
            "paused": schedule.paused,
            "next_us": schedule.next_us,
            "last_job_id": schedule.last_job_id,
            "by": schedule.by,
            "declared": declared,
        }
        upsert(tx, "schedules", "name", values, kept=("last_job_id",))
        # Redacted, since the audit is never deleted and others may read it.
        spec = self._session.registry.types[schedule.type]
        params = redact_params(redaction_schema(spec), schedule.params)
        details = {**schedule.to_json(), "schedule": schedule.name, "params": params}
        note(tx, now_us, actor, "schedule add", details, 1)
        self._unable.pop(schedule.name, None)
        return schedule

    # --- reads ----------------------------------------------------------------------------

    def all(self) -> Sequence[Schedule]:
        """Return the schedules by name, without those that this version cannot read."""
        with self._session.look() as tx:
            rows = tx.all(f"select {_COLUMNS} from schedules order by name")
            by_name = (
                "select schedule, count(*) from schedule_runs where outcome = 'queued' group by schedule"
            )
            queued = dict(tx.all(by_name))
        schedules = (_readable((*row, queued.get(row[0], 0))) for row in rows)
        return [schedule for schedule in schedules if schedule is not None]

    def runs(self, name: str, *, limit: int = 20) -> Sequence[ScheduleRun]:
        """Return the latest times of a schedule, newest first. ``RUNS_KEPT`` are kept, and all that
        still wait."""
        with self._session.look() as tx:
            return _RUNS.all(tx, "where schedule = ? order by nominal_us desc limit ?", (name, limit))

    # --- making jobs ----------------------------------------------------------------------

    def tick(self, *, now_us: int) -> bool:
        """Create the jobs of one schedule that is due, and return whether another one may be due.

        There is one job for each nominal time, in one transaction with the schedule's next time, so
        that any number of nodes may call this. At most ``STEP`` times are decided; the schedule stays
        due when there are more.

        Raises UsageError when its times cannot be computed on this host (for example an unknown time
        zone); that schedule is then left for a minute, so that the others are not delayed. Each reason is
        raised once an hour.
        """
        with self._session.look() as tx:
            # Most calls end here, without waiting for the right to write.
            if self._due_row(tx, now_us) is None:
                return False
        row = None
        try:
            with self._session.write() as tx:
                row = self._due_row(tx, now_us)  # another node may have been faster
                if row is not None:
                    barred = _fault(tx, self._session.registry, row, now_us)
                    ScheduleStep(tx, self._session.registry, _schedule(row), now_us, barred).run()
        except UsageError as error:
            if row is None:
                raise
            self._unable[row[0]] = now_us + REST_US
            self._reported = {reason: until for reason, until in self._reported.items() if until > now_us}
            if str(error) in self._reported:
                return True
            self._reported[str(error)] = now_us + REPEAT_US
            raise UsageError(f"schedule {row[0]!r}: {error}") from error
        return True

    def _due_row(self, tx: Tx, now_us: int) -> Any:
        """Return the row of a schedule with a time to decide now; None: there is none.

        Those with queued times come first, by a partial index of the few such rows, unless they still wait for a job.
        One more of the due schedules is read than may be skipped, so that a schedule that cannot be computed hides no
        other.
        """
        self._unable = {name: until_us for name, until_us in self._unable.items() if until_us > now_us}
        for row in tx.all(_WAITING):
            if row[0] not in self._unable and not _must_wait(tx, row):
                return row
        due = tx.all(
            f"select {_COLUMNS} from schedules where next_us is not null and paused = 0 and next_us <= ? "
            "order by next_us limit ?",
            (now_us, len(self._unable) + 1),
        )
        return next((row for row in due if row[0] not in self._unable), None)


# --- rows --------------------------------------------------------------------------------------


def _schedule(row: Sequence[Any]) -> Schedule:
    """Return the schedule of a row of ``_COLUMNS``, which ``_QUEUED`` may follow. Raises UsageError when the row cannot
    be read, because a newer version or a person wrote it."""
    name, spec, paused, next_us, last_job_id, by, declared, *queued = row
    try:
        return Schedule.from_json(
            name,
            orjson.loads(spec),
            paused=bool(paused),
            next_us=next_us,
            last_job_id=last_job_id,
            by=by,
            declared=bool(declared),
            queued=queued[0] if queued else 0,
        )
    except UNREADABLE as error:
        raise UsageError(
            f"its definition cannot be read ({error}); replace it ('spinney schedule add {name} … --replace'), or "
            f"drop it ('spinney schedule drop {name}')"
        ) from error


def _spec(schedule: Schedule, maker: Mapping[str, Any]) -> str:
    """Return the JSON for the row: the definition, the anchor of an interval, and the entry that names
    the maker."""
    return maker_rights.spec_text({**schedule.to_json(), "anchor_us": schedule.anchor_us}, maker)


def without_rights(tx: Tx, registry: Registry, now_us: int) -> Iterator[tuple[str, str]]:
    """Yield the names of schedules whose makers may not submit their jobs any more, each with the reason."""
    for row in tx.all(f"select {_COLUMNS} from schedules where paused = 0 order by name"):
        fault = None if _readable(row) is None else _fault(tx, registry, row, now_us)
        if fault is not None:
            yield row[0], fault


def _fault(tx: Tx, registry: Registry, row: Sequence[Any], now_us: int) -> str | None:
    return maker_rights.schedule_fault(tx, _schedule(row), row[1], registry.types, now_us)


def _readable(row: Sequence[Any]) -> Schedule | None:
    """Return the schedule of a row; None when it cannot be read: it must not hide the others, and the doctor reports
    it."""
    try:
        return _schedule(row)
    except SpinneyError:
        return None


def _row(tx: Tx, name: str) -> Any:
    """Return the row of a schedule with the number of times that wait; None: there is none."""
    return tx.one(f"select {_COLUMNS}, {_QUEUED} from schedules where name = ?", (name,))


def _find_readable(tx: Tx, name: str) -> Schedule | None:
    row = _row(tx, name)
    return None if row is None else _readable(row)


def _require(tx: Tx, name: str) -> Schedule:
    """Return a schedule. Raises NoSuch, and UsageError for one that cannot be read."""
    row = _row(tx, name)
    if row is None:
        raise unknown_name(tx, "schedules", "schedule", name)
    return _schedule(row)


def _must_wait(tx: Tx, row: Sequence[Any]) -> bool:
    """Return whether the queued times still wait for the last job; False for a row that cannot be read, since the step
    reports that."""
    schedule = _readable(row)
    return (
        schedule is not None
        and schedule.overlap is Overlap.QUEUE
        and job_rows.is_open(tx, schedule.last_job_id)
    )
