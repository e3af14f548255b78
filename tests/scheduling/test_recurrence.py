"""When a schedule is due, and what of the past still counts."""

from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.model.errors import UsageError
from spinney.model.settings.schedules import CatchUp, Overlap, Schedule
from spinney.scheduling import recurrence

MINUTE_US, HOUR_US = 60_000_000, 3_600_000_000
NOON_US = 1_767_268_800_000_000  # 2026-01-01T12:00 UTC
INTERVALS = st.one_of(st.integers(1, 100_000).map(float), st.floats(1, 100_000))
MOMENTS = st.integers(NOON_US - 10**13, NOON_US + 10**13)


def interval(every_s: float = 60.0, anchor_us: int = NOON_US, **more: Any) -> Schedule:
    return Schedule(name="s", type="t", every_s=every_s, anchor_us=anchor_us, **more)


def hourly(**more: Any) -> Schedule:
    return Schedule(name="s", type="t", cron="0 * * * *", **more)


# --- intervals ---------------------------------------------------------------------------------


@given(INTERVALS, MOMENTS, st.integers(0, 10**6))
def test_an_interval_is_counted_from_its_beginning_and_never_drifts(
    every_s: float, anchor_us: int, n: int
) -> None:
    schedule = interval(every_s, anchor_us)
    every_us = round(every_s * 1e6)
    nth = anchor_us + n * every_us

    assert recurrence.next_us(schedule, nth) == nth + every_us
    assert recurrence.next_us(schedule, nth + every_us - 1) == nth + every_us


@given(INTERVALS, MOMENTS, MOMENTS)
def test_its_first_time_is_one_interval_after_its_beginning(
    every_s: float, anchor_us: int, after_us: int
) -> None:
    following_us = recurrence.next_us(interval(every_s, anchor_us), after_us)

    assert following_us is not None
    assert following_us >= anchor_us + round(every_s * 1e6)
    assert following_us > after_us


@given(INTERVALS, MOMENTS)
def test_times_follow_each_other_at_one_distance(every_s: float, after_us: int) -> None:
    times = list(islice(recurrence.times(interval(every_s), after_us), 20))

    assert {b - a for a, b in pairwise(times)} == {round(every_s * 1e6)}


# --- the past ----------------------------------------------------------------------------------


def test_a_time_that_has_just_come_is_made_whatever_the_policy() -> None:
    for policy in CatchUp:
        due = recurrence.due(hourly(catch_up=policy), NOON_US, NOON_US + recurrence.LATE_US, 100)
        assert due == ([NOON_US], None, NOON_US + HOUR_US)


def test_what_is_longer_past_is_let_go_made_once_or_made_in_full() -> None:
    # Given five hours in which nothing was there, and that the last time is longer past than a minute
    now_us = NOON_US + 4 * HOUR_US + 5 * MINUTE_US
    five = [NOON_US + n * HOUR_US for n in range(5)]
    follows_us = NOON_US + 5 * HOUR_US

    none, last, whole = (recurrence.due(hourly(catch_up=policy), NOON_US, now_us, 100) for policy in CatchUp)

    assert none == ([], (five[0], five[4]), follows_us)
    assert last == ([five[4]], (five[0], five[3]), follows_us)
    assert whole == (five, None, follows_us)


def test_all_of_many_come_a_number_at_a_time() -> None:
    now_us = NOON_US + 10 * HOUR_US
    schedule, at_us, made = hourly(catch_up="all"), NOON_US, []
    while at_us <= now_us:
        due = recurrence.due(schedule, at_us, now_us, 3)
        assert len(due.make) <= 3
        made += due.make
        assert due.next_us is not None
        at_us = due.next_us

    assert made == [NOON_US + n * HOUR_US for n in range(11)]


@given(
    st.sampled_from(["*/5 * * * *", "7 3 * * *", "0 6 * * mon", "*/20 2 * 3,10 *"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    st.integers(0, 400 * 86_400_000_000),
    st.sampled_from(list(CatchUp)),
)
def test_no_time_is_left_out_or_decided_twice(cron: str, zone: str, gone_us: int, policy: CatchUp) -> None:
    """What is made, what is missed and what comes next are all the times there are."""
    schedule = Schedule(name="s", type="t", cron=cron, zone=zone, catch_up=policy)
    first_us = recurrence.next_us(schedule, NOON_US)
    assert first_us is not None
    now_us = first_us + gone_us
    due = recurrence.due(schedule, first_us, now_us, 50)

    expected = [first_us, *islice(recurrence.times(schedule, first_us), 49)]
    assert due.next_us == recurrence.next_us(schedule, due.make[-1] if due.make else due.missed[1])  # type: ignore[index]
    assert due.next_us is not None
    if policy is CatchUp.ALL:
        assert due.make == [t for t in expected if t <= now_us]
    else:
        assert due.next_us > now_us
        assert len(due.make) <= 1
        assert (due.missed[0] if due.missed else due.make[0]) == first_us
        if due.make and due.missed:
            assert recurrence.next_us(schedule, due.missed[1]) == due.make[0]


def test_a_schedule_that_ends_has_no_next_time() -> None:
    last_us = recurrence.next_us(hourly(), 253_402_293_600_000_000)  # 9999-12-31T22:00
    assert last_us is not None
    due = recurrence.due(hourly(catch_up="all"), last_us, last_us + 10, 5)
    assert due == ([last_us], None, None)


def test_a_time_is_told_by_the_clock_of_its_zone() -> None:
    schedule = Schedule(name="s", type="t", cron="0 6 * * *", zone="Asia/Kolkata")
    assert recurrence.in_zone(schedule, NOON_US + 1).isoformat() == "2026-01-01T17:30:00.000001+05:30"


# --- what is no schedule -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "either a cron expression or an interval"),
        ({"cron": "0 6 * * *", "every_s": 5}, "either a cron expression or an interval"),
        ({"every_s": 0.5}, "between 1 second and"),
        ({"every_s": float("nan")}, "no length of time"),
        ({"every_s": 1e12}, "between 1 second and"),
        ({"every_s": True}, "no length of time"),
        ({"every_s": "0.5s"}, "between 1 second and"),
        ({"every_s": 5, "zone": "Europe/Berlin"}, "an interval has no time zone"),
        ({"cron": 5}, "are texts"),
        ({"cron": "0 6 * * *", "zone": 1}, "are texts"),
        ({"cron": "0 6 * * *", "name": "a/b"}, "cannot name a schedule"),
        ({"cron": "0 6 * * *", "type": ""}, "cannot name a job type"),
        ({"cron": "0 6 * * *", "overlap": "run"}, "overlap must be one of skip, queue, allow, not 'run'"),
        ({"cron": "0 6 * * *", "catch_up": "some"}, "catch_up must be one of none, last, all, not 'some'"),
        ({"cron": "0 6 * * *", "params": [1]}, "must be a mapping"),
        ({"cron": "0 6 * * *", "options": {"key": "k"}}, "no option 'key'"),
        (
            {"cron": "0 6 * * *", "options": {"priority": 100}},
            "priority must be a whole number from 0 .* not 100",
        ),
        ({"cron": "0 6 * * *", "options": {"queue": "a b"}}, "cannot name a queue"),
        ({"cron": "0 6 * * *", "options": {"share": ""}}, "cannot be a share"),
    ],
)
def test_what_is_no_schedule_is_refused_where_it_is_written(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Schedule(**{"name": "s", "type": "t"} | fields)


def test_cron_and_zone_are_looked_at_before_anything_is_stored() -> None:
    for cron, zone in (("61 * * * *", "UTC"), ("0 6 * * *", "Mars/Olympus")):
        with pytest.raises(UsageError):
            recurrence.require(Schedule(name="s", type="t", cron=cron, zone=zone))
    recurrence.require(interval())


@given(st.sampled_from([{"cron": "0 6 * * *", "zone": "Europe/Berlin"}, {"every_s": 90.0}]))
def test_a_schedule_travels_as_json(timing: dict[str, Any]) -> None:
    made = Schedule(
        name="s",
        type="t",
        params={"n": [1]},
        options={"queue": "q"},
        overlap=Overlap.QUEUE,
        catch_up=CatchUp.ALL,
        **timing,
    )
    assert Schedule.from_json("s", made.to_json() | {"of a newer version": 1, "name": "x"}) == made
