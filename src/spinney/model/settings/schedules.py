"""Schedules: jobs that are to be made again and again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from spinney.model.errors import UsageError
from spinney.model.types import PRIORITIES
from spinney.model.values import durations, names

EVERY_LEAST_S = 1.0
EVERY_MOST_S = 10 * 366 * 86_400.0
"""Ten years."""
OPTIONS = ("queue", "priority", "share", "collection", "submitter")
"""What may be said of a schedule's jobs. Times, keys and needs are of one job, not of all of them."""
DATA_NAME = "schedule"
"""The entry of ``job.data`` that tells a job of which schedule and which time it is."""


class Overlap(StrEnum):
    """When the last job that the schedule made is still open."""

    SKIP = "skip"
    """No job is made for this time."""
    QUEUE = "queue"
    """The time waits, and gets its job when those before it have settled."""
    ALLOW = "allow"


class CatchUp(StrEnum):
    """Times that passed while nothing was there to make their jobs, or while the schedule was paused."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What is made, and when. Exactly one of ``cron`` and ``every_s`` is given."""

    name: str
    type: str
    cron: str | None = None
    """Five fields, as crontab(5), or a word such as ``@daily``."""
    every_s: float | None = None
    """Seconds from one time to the next; counted from ``anchor_us``, so that nothing drifts. May be given as any length
    of time."""
    zone: str = "UTC"
    """IANA name of the time zone that ``cron`` is read in."""
    params: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the submission: queue, priority, share, collection, submitter."""
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LAST
    paused: bool = False
    anchor_us: int | None = None
    """When it began to count its intervals."""
    next_us: int | None = None
    """The first nominal time that nothing has been decided for yet; None: none will come."""
    last_job_id: int | None = None
    """The last job that it made."""
    queued: int = 0
    """How many times wait for the ones before them."""
    by: str = ""
    declared: bool = False
    """It is as an application declares it; False: a person made it so."""

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
            object.__setattr__(self, option, _one_of(where, option, kind, getattr(self, option)))
        if not isinstance(self.params, Mapping):
            kind_ = type(self.params).__name__
            raise UsageError(f"{where}: its parameters must be a mapping of names to values, not {kind_}")
        _check_options(where, self.options)

    @property
    def timing(self) -> tuple[str | None, float | None, str]:
        """What its times depend on."""
        return self.cron, self.every_s, self.zone

    def to_json(self) -> dict[str, Any]:
        """What somebody decided: a value that ``from_json`` makes a schedule of that stands at its beginning."""
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
    def from_json(cls, name: str, value: Mapping[str, Any], **standing: Any) -> "Schedule":
        """The schedule of a value made by ``to_json``; ``standing``: where it stands. Fields of newer
        versions are ignored."""
        known = {k: v for k, v in value.items() if k in cls.__dataclass_fields__ and k != "name"}
        return cls(name=name, **known | standing)


DECLARER = "code"
"""Who makes what applications declare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRun:
    """One nominal time of a schedule, and what became of it."""

    schedule: str
    nominal_us: int
    job_id: int | None
    """None: no job was made."""
    outcome: str
    """``submitted``, ``queued`` (waits for the one before), ``skipped`` (the one before was open), ``missed``
    (not caught up) or ``refused``."""
    message: str | None = None


def _check_every(where: str, every_s: float) -> None:
    if not EVERY_LEAST_S <= every_s <= EVERY_MOST_S:
        raise UsageError(
            f"{where}: the interval must lie between {EVERY_LEAST_S:g} second and "
            f"{EVERY_MOST_S:,.0f} seconds, not {every_s!r}"
        )


def _one_of(where: str, option: str, kind: type[StrEnum], value: Any) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise UsageError(f"{where}: {option} must be one of {', '.join(kind)}, not {value!r}") from None


def _check_options(where: str, options: Mapping[str, Any]) -> None:
    for option, value in options.items():
        if option not in OPTIONS:
            raise UsageError(f"{where}: its jobs can have no option {option!r}; use {', '.join(OPTIONS)}")
        if value is None:
            continue
        if option in ("queue", "collection"):
            names.name(option, value)
        elif option in ("share", "submitter"):
            names.label(option, value)
        elif type(value) is not int or value not in PRIORITIES:
            raise UsageError(f"{where}: priority {value!r} is out of range; use 0 (first) to 99 (last)")
