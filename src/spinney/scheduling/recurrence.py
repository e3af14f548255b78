"""When a schedule is due: its nominal times, and which of those that have passed still get their jobs.

Microseconds since 1970 UTC. Everything in this module depends only on the schedule and the times passed in, so that all
nodes compute the same."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from spinney.model.settings.schedules import CatchUp, Schedule
from spinney.model.values.times import from_us
from spinney.scheduling import cron

LATE_US = 60_000_000
"""A time that is longer past has been missed; until then its job is only a little late."""
_SECOND_US = 1_000_000


class DueTimes(NamedTuple):
    """What is to be done about the times that have passed."""

    make: list[int]
    """Times that get their jobs, oldest first."""
    missed: tuple[int, int] | None
    """The first and the last of the times that get none; those between them belong to it."""
    next_us: int | None
    """The next nominal time to look at; None: there is none."""


def require(schedule: Schedule) -> None:
    """Raise UsageError unless this host can compute the schedule's times."""
    if schedule.cron is not None:
        cron.require(schedule.cron)
        cron.zone_of(schedule.zone)


def next_us(schedule: Schedule, after_us: int) -> int | None:
    """Return the schedule's first nominal time after ``after_us``; None: there is none. Raises UsageError."""
    if schedule.cron is not None:
        next_s = cron.next_after(schedule.cron, cron.zone_of(schedule.zone), after_us // _SECOND_US)
        return None if next_s is None else next_s * _SECOND_US
    every_us, anchor_us = _interval(schedule)
    return anchor_us + max(1, (after_us - anchor_us) // every_us + 1) * every_us


def times(schedule: Schedule, after_us: int) -> Iterator[int]:
    """Yield the schedule's nominal times after ``after_us``, in order. Raises UsageError."""
    at_us = next_us(schedule, after_us)
    while at_us is not None:
        yield at_us
        at_us = next_us(schedule, at_us)


def due(schedule: Schedule, first_us: int, now_us: int, limit: int) -> DueTimes:
    """Apply the catch-up policy to the nominal times from ``first_us`` (which is one) to now.

    * ``all``: every one gets its job, ``limit`` at a time.
    * ``last``: the newest does.
    * ``none``: the newest does, unless it is more than a minute past.
    """
    if schedule.catch_up is CatchUp.ALL:
        make = [first_us]
        for at_us in islice(times(schedule, first_us), limit):
            if at_us > now_us or len(make) == limit:
                return DueTimes(make, None, at_us)
            make.append(at_us)
        return DueTimes(make, None, None)
    newest_us = _newest(schedule, first_us, now_us)
    if schedule.catch_up is CatchUp.NONE and now_us - newest_us > LATE_US:
        return passed(schedule, first_us, now_us)
    follows_us = next_us(schedule, newest_us)
    if newest_us == first_us:
        return DueTimes([newest_us], None, follows_us)
    return DueTimes([newest_us], (first_us, _newest(schedule, first_us, newest_us - 1)), follows_us)


def coming(schedule: Schedule, count: int) -> list[int]:
    """Return the next ``count`` times for which nothing has been decided. Raises UsageError."""
    if schedule.next_us is None:
        return []
    return [schedule.next_us, *islice(times(schedule, schedule.next_us), count - 1)]


def passed(schedule: Schedule, first_us: int, now_us: int) -> DueTimes:
    """Return the due times of a schedule whose times from ``first_us`` to now are all to be skipped: none, the range
    that is skipped, and the next time."""
    newest_us = _newest(schedule, first_us, now_us)
    return DueTimes([], (first_us, newest_us), next_us(schedule, newest_us))


def in_zone(schedule: Schedule, at_us: int) -> datetime:
    """Return a time of the schedule as the clock of its zone shows it. Raises UsageError."""
    return from_us(at_us).astimezone(cron.zone_of(schedule.zone))


def _newest(schedule: Schedule, first_us: int, until_us: int) -> int:
    """Return the last nominal time up to ``until_us``; ``first_us`` is one. It is a binary search, for there may be
    half a million of them."""
    newest_us, end_us = first_us, until_us
    follows_us = next_us(schedule, first_us)
    if follows_us is None or follows_us > until_us:
        return first_us  # the usual case: at most one time is due
    while newest_us < end_us:
        middle_us = (newest_us + end_us) // 2
        candidate_us = next_us(schedule, middle_us)
        if candidate_us is not None and candidate_us <= until_us:
            newest_us = candidate_us
        else:
            end_us = middle_us
    return newest_us


def _interval(schedule: Schedule) -> tuple[int, int]:
    assert schedule.every_s is not None
    return round(schedule.every_s * _SECOND_US), schedule.anchor_us or 0
