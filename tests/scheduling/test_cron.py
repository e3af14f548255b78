"""Cron expressions in time zones, against a clock that is read minute by minute.

The oracle knows nothing of how a next time is found: it looks at every minute of some days, at what the
clock of the zone shows then, and at what it showed a minute before.
"""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from long_tests import LONG
from spinney.model.errors import UsageError
from spinney.scheduling import cron

MINUTE_S, DAY_S = 60, 86_400


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def times(expression: str, zone: str, start: str, count: int) -> list[str]:
    """The next times behind ``start``, as the clock of the zone shows them."""
    starts, at_s = [], seconds(start)
    for _ in range(count):
        after_s = cron.next_after(expression, cron.zone_of(zone), at_s)
        assert after_s is not None
        at_s = after_s
        starts.append(datetime.fromtimestamp(at_s, ZoneInfo(zone)).isoformat(timespec="minutes"))
    return starts


# --- the oracle --------------------------------------------------------------------------------


def field(text: str, low: int, high: int) -> set[int]:
    """The numbers of a field, for what the strategies below write."""
    times: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            first, last = str(low), str(high)
        elif not last:
            last = str(high) if step else first
        times |= set(range(int(first), int(last) + 1, int(step or 1)))
    return times


class Wall:
    """An expression, to be held against what a clock shows."""

    def __init__(self, expression: str) -> None:
        minute, hour, day, month, weekday = expression.split()
        self.repeats = minute.startswith("*") or hour.startswith("*")
        self.minutes, self.hours = field(minute, 0, 59), field(hour, 0, 23)
        self.days, self.months = field(day, 1, 31), field(month, 1, 12)
        self.weekdays = {n % 7 for n in field(weekday, 0, 7)}
        self.both = day.startswith("*") or weekday.startswith("*")

    def fits(self, shown: datetime) -> bool:
        if shown.minute not in self.minutes or shown.hour not in self.hours or shown.month not in self.months:
            return False
        days = shown.day in self.days, shown.isoweekday() % 7 in self.weekdays
        return all(days) if self.both else any(days)


def by_the_minute(expression: str, zone: tzinfo, after_s: int, until_s: int) -> list[int]:
    """Every time in (after, until], found by looking at every minute."""
    wall, times = Wall(expression), []
    for at_s in range(after_s - after_s % MINUTE_S, until_s + 1, MINUTE_S):
        shown, before = (
            datetime.fromtimestamp(t, zone).replace(tzinfo=None) for t in (at_s, at_s - MINUTE_S)
        )
        second_time = datetime.fromtimestamp(at_s, zone).fold == 1
        if wall.repeats:
            comes = wall.fits(shown)
        else:
            comes = wall.fits(shown) and not second_time
            skipped = before + timedelta(minutes=1)
            while skipped < shown:  # the clock was put forward in this minute
                comes = comes or wall.fits(skipped)
                skipped += timedelta(minutes=1)
        if comes and at_s > after_s:
            times.append(at_s)
    return times


def by_asking(expression: str, zone: tzinfo, after_s: int, until_s: int) -> list[int]:
    """The same, found by asking for the next time again and again."""
    times: list[int] = []
    at_s = cron.next_after(expression, zone, after_s)
    while at_s is not None and at_s <= until_s:
        times.append(at_s)
        at_s = cron.next_after(expression, zone, at_s)
    return times


# --- every zone, every change ------------------------------------------------------------------


CHANGES = [
    # The clock is put forward, the clock is put back
    ("Europe/Berlin", date(2026, 3, 29)),
    ("Europe/Berlin", date(2026, 10, 25)),
    ("America/New_York", date(2026, 3, 8)),
    ("America/New_York", date(2026, 11, 1)),
    # By half an hour
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    ("Australia/Lord_Howe", date(2026, 4, 5)),
    # At midnight, so that a day begins at one, or ends twice
    ("Africa/Cairo", date(2026, 4, 24)),
    ("Africa/Cairo", date(2026, 10, 29)),
    ("America/Havana", date(2026, 3, 8)),
    ("America/Havana", date(2026, 11, 1)),
    # By two hours; a whole day that was left out
    ("Antarctica/Troll", date(2026, 3, 29)),
    ("Antarctica/Troll", date(2026, 10, 25)),
    ("Pacific/Apia", date(2011, 12, 30)),
    # Never, and with an odd distance from UTC
    ("Asia/Kolkata", date(2026, 3, 29)),
    ("UTC", date(2026, 3, 29)),
]


def a_field(low: int, high: int, *, star: bool) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    step = st.integers(1, max(2, (high - low) // 2))
    steps = st.tuples(st.just("*") if star else span, step).map(lambda two: f"{two[0]}/{two[1]}")
    several = st.lists(number.map(str), min_size=1, max_size=4).map(",".join)
    ways = [several, span, *([st.just("*"), steps] if star else [steps])]
    return st.one_of(ways)


MOSTLY_ANY = st.sampled_from(["*", "*", "*"])
EXPRESSIONS = st.tuples(
    st.booleans().flatmap(lambda star: a_field(0, 59, star=star)),
    st.one_of(a_field(0, 4, star=False), st.booleans().flatmap(lambda star: a_field(0, 23, star=star))),
    st.one_of(MOSTLY_ANY, a_field(1, 31, star=True)),
    st.one_of(MOSTLY_ANY, a_field(1, 12, star=True)),
    st.one_of(MOSTLY_ANY, a_field(0, 7, star=True)),
).map(" ".join)


@settings(max_examples=300 if LONG else 30)  # each looks at 2,880 minutes
@given(EXPRESSIONS, st.sampled_from(CHANGES), st.integers(0, DAY_S))
@example("*/10 2 * * *", ("Australia/Lord_Howe", date(2026, 4, 5)), 0)
@example("*/10 3 * * *", ("Australia/Lord_Howe", date(2026, 10, 4)), 0)
@example("30 2 * * *", ("Europe/Berlin", date(2026, 10, 25)), 90_600)
@example("0,30 2,3 * * *", ("Europe/Berlin", date(2026, 3, 29)), 0)
def test_a_clock_read_minute_by_minute_says_the_same(
    expression: str, change: tuple[str, date], into: int
) -> None:
    """Around every change: no time is left out, none is made up, and none comes twice."""
    zone = cron.zone_of(change[0])
    start = (
        int(datetime(change[1].year, change[1].month, change[1].day, tzinfo=UTC).timestamp()) - DAY_S + into
    )
    until = start + 2 * DAY_S

    assert by_asking(expression, zone, start, until) == by_the_minute(expression, zone, start, until)


@given(EXPRESSIONS, st.sampled_from(CHANGES), st.integers(0, 3 * 365 * DAY_S))
def test_times_grow_from_wherever_one_asks(expression: str, change: tuple[str, date], into: int) -> None:
    zone, at_s = cron.zone_of(change[0]), seconds("2025-01-01T00:00+00:00") + into

    for _ in range(5):
        following = cron.next_after(expression, zone, at_s)
        if following is None:
            return
        assert following > at_s
        between = (at_s + following) // 2
        assert cron.next_after(expression, zone, between if between < following else at_s) == following
        at_s = following


@given(EXPRESSIONS, st.sampled_from(["Europe/Berlin", "America/New_York", "UTC"]), st.integers(0, 8_000))
def test_where_hours_are_changed_whole_it_is_what_cronsim_says(
    expression: str, zone: str, hours: int
) -> None:
    """As a second opinion on what Debian's cron does, but for two things in which cronsim goes astray."""
    start = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)).astimezone(ZoneInfo(zone))
    assume(not start.fold and not re.search(r"(\d+)-\1/", expression))
    theirs = list(dict.fromkeys(int(t.timestamp()) for t in islice(CronSim(expression, start), 20)))

    ours = [int(start.timestamp())]
    while len(ours) <= len(theirs):
        ours.append(cron.next_after(expression, cron.zone_of(zone), ours[-1]) or 0)

    assert ours[1:] == theirs


# --- the rule, in examples ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "start", "expected"),
    [
        (
            "Europe/Berlin",
            "2026-03-28T12:00+01:00",
            ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"],
        ),
        (
            "Europe/Berlin",
            "2026-10-24T12:00+02:00",
            ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"],
        ),
        (
            "America/New_York",
            "2026-03-07T12:00-05:00",
            ["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"],
        ),
        (
            "America/New_York",
            "2026-10-31T12:00-04:00",
            ["2026-11-01T02:30-05:00", "2026-11-02T02:30-05:00"],
        ),
        (
            "Australia/Lord_Howe",
            "2026-10-03T12:00+10:30",
            ["2026-10-04T02:30+11:00", "2026-10-05T02:30+11:00"],
        ),
        (
            "Asia/Kolkata",
            "2026-03-28T12:00+05:30",
            ["2026-03-29T02:30+05:30", "2026-03-30T02:30+05:30"],
        ),
    ],
)
def test_a_named_time_comes_once_a_day_whatever_the_clock_does(
    zone: str, start: str, expected: list[str]
) -> None:
    assert times("30 2 * * *", zone, start, 2) == expected


def test_a_named_time_that_is_shown_twice_comes_when_it_is_shown_first() -> None:
    # Given the hour that New York and, by half, Lord Howe repeat
    assert times("30 1 * * *", "America/New_York", "2026-10-31T12:00-04:00", 2) == [
        "2026-11-01T01:30-04:00",
        "2026-11-02T01:30-05:00",
    ]
    assert times("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00+11:00", 2) == [
        "2026-04-05T01:45+11:00",
        "2026-04-06T01:45+10:30",
    ]
    # Nor does it come again for one who asks when it is shown for the second time
    assert times("30 1 * * *", "America/New_York", "2026-11-01T01:10-05:00", 1) == ["2026-11-02T01:30-05:00"]


def test_what_a_clock_skips_comes_right_after_it_once() -> None:
    assert times("0,30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00+01:00", 3) == [
        "2026-03-29T03:00+02:00",
        "2026-03-29T03:30+02:00",
        "2026-03-30T02:00+02:00",
    ]
    assert times("10 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00+10:30", 2) == [
        "2026-10-04T02:30+11:00",
        "2026-10-05T02:10+11:00",
    ]


def test_what_repeats_goes_by_the_clock_alone() -> None:
    # Every half hour stays every half hour of real time, over either change
    for start in ("2026-03-29T00:00+01:00", "2026-10-25T00:00+02:00"):
        at = [datetime.fromisoformat(t) for t in times("*/30 * * * *", "Europe/Berlin", start, 12)]
        assert {b - a for a, b in pairwise(at)} == {timedelta(minutes=30)}
    # Within one hour: not at all where it is skipped, twice where it is repeated
    assert times("*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00+01:00", 1) == ["2026-03-30T02:00+02:00"]
    assert times("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00+02:00", 5) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T02:30+01:00",
        "2026-10-26T02:00+01:00",
    ]


def test_half_hour_changes_lose_no_time() -> None:
    """cronsim by itself loses those of the first half hour."""
    assert times("*/10 2 * * *", "Australia/Lord_Howe", "2026-04-04T12:00+11:00", 3) == [
        "2026-04-05T02:00+10:30",
        "2026-04-05T02:10+10:30",
        "2026-04-05T02:20+10:30",
    ]
    assert times("*/10 3 * * *", "Australia/Lord_Howe", "2026-10-03T12:00+10:30", 2) == [
        "2026-10-04T03:00+11:00",
        "2026-10-04T03:10+11:00",
    ]


# --- expressions -------------------------------------------------------------------------------


@pytest.mark.parametrize("word", sorted(cron.WORDS))
def test_words_stand_for_their_fields(word: str) -> None:
    after_s = seconds("2026-02-03T04:05+00:00")
    expected = cron.next_after(cron.WORDS[word], UTC, after_s)
    assert cron.next_after(f" {word.upper()} ", UTC, after_s) == expected


def test_days_are_those_of_crontab() -> None:
    # Both days given: either; one of them a star: both must fit (a star with a step counts as a star)
    assert times("0 0 13 * fri", "UTC", "2026-02-01T00:00+00:00", 3) == [
        "2026-02-06T00:00+00:00",
        "2026-02-13T00:00+00:00",
        "2026-02-20T00:00+00:00",
    ]
    assert times("0 0 29 2 *", "UTC", "2026-02-01T00:00+00:00", 2) == [
        "2028-02-29T00:00+00:00",
        "2032-02-29T00:00+00:00",
    ]


@pytest.mark.parametrize("minutes", ["5-5/10", "05-5/10", "5", "5,5-5/1"])
def test_a_span_of_one_is_that_one(minutes: str) -> None:
    assert times(f"{minutes} 6 * * mon-MON/3", "UTC", "2026-02-01T00:00+00:00", 2) == [
        "2026-02-02T06:05+00:00",
        "2026-02-09T06:05+00:00",
    ]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "does not have five fields"),
        ("0 6 * *", "does not have five fields"),
        ("0 0 6 * * mon", "does not have five fields"),
        ("60 6 * * *", "Bad minute"),
        ("0 6 * * someday", "Bad day-of-week"),
        ("0 6 * * " + "1," * 200, "does not have five fields"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("@reboot", "no cron word '@reboot'"),
        ("*/0 * * * *", "Bad minute"),
        ("٣ 6 * * *", "Bad minute"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_mend(expression: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        cron.require(expression)


def test_one_that_never_comes_is_refused() -> None:
    with pytest.raises(UsageError, match="names no time at all"):
        cron.require("0 0 LW * */8")  # the last workday of a month, should it be a Sunday


def test_the_end_of_the_calendar_is_no_error() -> None:
    end_s = seconds("9999-12-31T23:00+00:00")
    for expression in ("0 0 1 1 *", "*/5 0 1 1 *"):
        assert cron.next_after(expression, cron.zone_of("Europe/Berlin"), end_s) is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'"),
        ("europe/berlin", "did you mean 'Europe/Berlin'"),
        ("../../etc/passwd", "no time zone '../../etc/passwd'"),
        ("Europe", "no time zone 'Europe'"),
        ("localtime", "no time zone 'localtime'"),
        ("right/Europe/Berlin", "no time zone 'right/Europe/Berlin'"),
        ("", "no time zone ''"),
        ("a\0b", "no time zone"),
    ],
)
def test_what_is_no_zone_is_refused_with_the_nearest(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        cron.zone_of(name)


def test_a_host_without_zones_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cron, "available_timezones", set)
    with pytest.raises(UsageError, match="install its package tzdata"):
        cron.zone_of("Europe/Nowhere")
    assert cron.zone_of("UTC") is UTC
