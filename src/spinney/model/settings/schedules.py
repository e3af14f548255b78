"""Schedules: jobs that are created again and again.

A schedule has nominal times, computed from its cron expression or interval alone
(``spinney.scheduling.recurrence``), whether anything runs then or not. Each of them is decided once, in the
transaction that stores what became of it (a ``ScheduleRun``), creates the job if there is one, and sets the
next time: so no time makes two jobs, on any number of nodes, and none is lost while all are down.
``catch_up`` says which of the times that have passed meanwhile still get a job, and ``overlap`` what happens
while the job before is open."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.submission import check_option
from spinney.model.values import durations, names
from spinney.model.values.hints import did_you_mean

# The shortest and the longest interval.
EVERY_LEAST_S = 1.0
EVERY_MOST_S = 10 * 366 * 86_400.0
"""The longest interval: ten years."""
OPTIONS = ("queue", "priority", "share", "collection", "submitter")
"""The options of a schedule's jobs. Times, keys and needs are for one job, not for all of them."""
DATA_NAME = "schedule"
"""The entry of ``job.data`` with the job's schedule and nominal time."""


class Overlap(StrEnum):
    """What happens when the schedule's last job is still open."""

    SKIP = "skip"
    """No job is created for this time."""
    QUEUE = "queue"
    """The time waits, and gets its job when the jobs before it have settled."""
    ALLOW = "allow"
    """A further job is created beside the open one."""


class CatchUp(StrEnum):
    """Which times still get their jobs that passed while no node ran, or while the schedule was paused."""

    NONE = "none"
    """No missed time gets a job."""
    LAST = "last"
    """The latest one, whatever the number of those before it."""
    ALL = "all"
    """Each missed time gets a job, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Which jobs are created, and when. Exactly one of ``cron`` and ``every_s`` is set."""

    name: str
    type: str
    cron: str | None = None
    """Five fields, as crontab(5), or a word such as ``@daily``."""
    every_s: float | None = None
    """Seconds from one time to the next; counted from ``anchor_us``, so that nothing drifts. It may be given as any
    duration."""
    zone: str = "UTC"
    """The IANA name of the time zone of ``cron``."""
    params: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the submission: queue, priority, share, collection, submitter."""
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LAST
    paused: bool = False
    anchor_us: int | None = None
    """When the intervals began, in microseconds since 1970 UTC."""
    next_us: int | None = None
    """The first nominal time that is not decided yet; None: there is none."""
    last_job_id: int | None = None
    """The last job that it created."""
    queued: int = 0
    """How many times wait for the jobs before them."""
    by: str = ""
    declared: bool = False
    """An application declares it; False: a person has created or changed it."""

    def __post_init__(self) -> None:
        names.name("schedule", self.name)
        names.name("job type", self.type)
        where = f"schedule {self.name!r}"
        if (self.cron is None) == (self.every_s is None):
            raise UsageError(f"{where} needs either a cron expression or an interval; give one of the two")
        if not isinstance(self.cron, str | None) or not isinstance(self.zone, str):
            raise UsageError(
                f"{where}: cron expression and zone are texts, as '0 6 * * mon' and 'Europe/Berlin'"
            )
        if self.every_s is not None:
            durations.in_seconds(self, "every_s", where=f"{where}: ")
            _check_every(where, self.every_s)
            if self.zone != "UTC":
                raise UsageError(
                    f"{where}: an interval has no time zone; leave it out, or give a cron expression"
                )
        for option, kind in (("overlap", Overlap), ("catch_up", CatchUp)):
            object.__setattr__(self, option, one_of(where, option, kind, getattr(self, option)))
        if not isinstance(self.params, Mapping):
            kind_ = type(self.params).__name__
            raise UsageError(f"{where}: its parameters must be a mapping of names to values, not {kind_}")
        check_options(where, self.options)

    @property
    def timing(self) -> tuple[str | None, float | None, str]:
        """Return the fields that its times depend on. When a declaration changes any of them, the next time
        is computed anew; otherwise the schedule keeps its progress."""
        return self.cron, self.every_s, self.zone

    def to_json(self) -> dict[str, Any]:
        """Return its definition without its progress: a value for ``from_json``."""
        return {
            "type": self.type,
            "cron": self.cron,
            "every_s": self.every_s,
            "zone": self.zone,
            "params": dict(self.params),
            "options": dict(self.options),
            "overlap": str(self.overlap),
            "catch_up": str(self.catch_up),
        }

    @classmethod
    def from_json(cls, name: str, value: Mapping[str, Any], **progress: Any) -> "Schedule":
        """Return the schedule of a value made by ``to_json``; ``progress``: the other fields. Fields of newer versions
        are ignored."""
        definition = {k: v for k, v in value.items() if k in cls.__dataclass_fields__ and k != "name"}
        return cls(name=name, **definition | progress)


DECLARER = "code"
"""The creator of the schedules that applications declare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRun:
    """One nominal time of a schedule, and what became of it."""

    schedule: str
    nominal_us: int
    job_id: int | None
    """The job that was created; None: no job was."""
    outcome: str
    """``submitted``, ``queued`` (waits for the one before), ``skipped`` (the one before was open), ``missed``
    (not caught up) or ``refused``."""
    message: str | None = None


def _check_every(where: str, every_s: float) -> None:
    """Raise UsageError unless an interval is within the bounds."""
    if not EVERY_LEAST_S <= every_s <= EVERY_MOST_S:
        raise UsageError(
            f"{where}: the interval must lie between {EVERY_LEAST_S:g} second and "
            f"{EVERY_MOST_S:,.0f} seconds, not {every_s!r}"
        )


def one_of(where: str, option: str, kind: type[StrEnum], value: Any) -> StrEnum:
    """Return the member of an enumeration for a value or a member. Raises UsageError, which lists them."""
    try:
        return kind(value)
    except ValueError:
        raise UsageError(
            f"{where}: {option} must be one of {', '.join(kind)}, not {value!r}{did_you_mean(str(value), kind)}"
        ) from None


def check_options(where: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError or BadName unless these are options of jobs that a schedule or an inbox makes. An
    option that is None counts as left out."""
    for option, value in options.items():
        if option not in OPTIONS:
            raise UsageError(f"{where}: its jobs can have no option {option!r}; use {', '.join(OPTIONS)}")
        if value is not None:
            check_option(option, value, where=f"{where}: ")
