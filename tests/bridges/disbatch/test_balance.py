"""How many tasks each queue may run, at any time of the week and whatever they have to do."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.bridges.disbatch.interface.balance import Load, limits, maximum

SUNDAY = datetime(2026, 11, 22)
WEEKDAYS = {name: day for day, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
EXAMPLE = {"* 07:00": 5, "* 19:00": 10, "1 07:00": 5, "5 19:00": 15}
"""That of the documentation of the releases: 5 on weekdays, 10 on weeknights, 15 at weekends."""


def at(text: str) -> datetime:
    day, time = text.split()
    hours, minutes = time.split(":")
    return SUNDAY + timedelta(days=WEEKDAYS[day], hours=int(hours), minutes=int(minutes))


@pytest.mark.parametrize(
    ("time", "most"),
    [
        ("mon 06:59", 15),
        ("mon 07:00", 5),
        ("mon 18:59", 5),
        ("mon 19:00", 10),
        ("tue 00:00", 10),
        ("tue 06:59", 10),
        ("tue 07:00", 5),
        ("fri 18:59", 5),
        ("fri 19:00", 15),
        ("sat 00:00", 15),
        ("sat 07:00", 15),
        ("sat 12:00", 15),
        ("sat 23:59", 15),
        ("sun 00:00", 15),
        ("sun 19:00", 15),
    ],
)
def test_the_example_of_the_releases_means_what_their_documentation_says(time: str, most: int) -> None:
    assert maximum(EXAMPLE, at(time)) == most


@pytest.mark.parametrize(
    ("entries", "time", "most"),
    [
        ({}, "mon 12:00", None),
        ({"3 12:00": 7}, "tue 03:00", 7),
        ({"* 22:00": 1}, "sun 00:00", 1),
        ({"* 07:30": 1, "* 07:45": 2}, "wed 07:40", 1),
        ({"* 07:30": 1, "* 08:15": 2}, "wed 08:10", 1),
        ({"* 08:00": 5, "* 18:00": 10, "6 08:00": 15}, "sat 12:00", 15),
        ({"* 08:00": 5, "* 18:00": 10, "6 08:00": 15}, "sat 18:00", 10),
        ({"* 08:00": 5, "* 18:00": 10, "6 08:00": 15}, "mon 08:00", 5),
        ({"* 08:00": 5, "2 08:00": 5}, "wed 08:00", 5),
        ({"6 20:00": 3, "0 20:00": 4, "* 20:00": 4}, "sun 12:00", 3),
    ],
)
def test_an_entry_holds_until_the_next(entries: dict[str, int], time: str, most: int | None) -> None:
    assert maximum(entries, at(time)) == most


@pytest.mark.parametrize("key", ["7 12:00", "* 24:00", "* 7:00", "*12:00", "mon 12:00", ""])
def test_a_key_that_is_no_time_of_the_week_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="is not a weekday"):
        maximum({key: 1}, SUNDAY)


KEYS = st.builds("{} {:02}:{:02}".format, st.sampled_from("*0123456"), st.integers(0, 23), st.integers(0, 59))
MINUTES = st.integers(0, 7 * 24 * 60 - 1)


@given(st.dictionaries(KEYS, st.integers(0, 99), min_size=1, max_size=8), MINUTES)
def test_what_holds_is_what_an_entry_says_and_changes_only_at_an_entry(
    entries: dict[str, int], minute: int
) -> None:
    now = SUNDAY + timedelta(minutes=minute)
    most, before = maximum(entries, now), maximum(entries, now - timedelta(minutes=1))

    assert most in entries.values()
    assert maximum(entries, now + timedelta(weeks=1)) == most
    if most != before:
        day = now.isoweekday() % 7
        assert {f"* {now:%H:%M}", f"{day} {now:%H:%M}"} & entries.keys()
    if (own := f"{now.isoweekday() % 7} {now:%H:%M}") in entries:
        assert most == entries[own]


LOADS = st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=3), max_size=4)


def groups(numbers: list[list[tuple[int, int]]]) -> list[list[Load]]:
    return [
        [Load(f"{i}-{j}", queued, running) for j, (queued, running) in enumerate(group)]
        for i, group in enumerate(numbers)
    ]


@given(LOADS, st.integers(0, 60))
def test_limits_hold_and_leave_no_slot_unused(numbers: list[list[tuple[int, int]]], most: int) -> None:
    loads = groups(numbers)
    flat = [load for group in loads for load in group]
    limit_of = limits(loads, most)
    running, demand = sum(load.running for load in flat), sum(load.demand for load in flat)
    at_work = sum(max(load.running, min(limit_of[load.name], load.demand)) for load in flat)

    assert limit_of.keys() == {load.name for load in flat}
    assert all(limit >= 0 for limit in limit_of.values())
    assert sum(limit_of.values()) <= most
    assert at_work <= max(most, running), "nothing starts beyond what is allowed"
    assert at_work >= min(most, demand), "as much runs as is allowed"
    if flat and running <= most and demand <= most:
        assert sum(limit_of.values()) == most, "a new task can start at once"


@given(LOADS, st.integers(0, 60))
def test_urgent_groups_come_first_and_queues_of_a_group_are_equal(
    numbers: list[list[tuple[int, int]]], most: int
) -> None:
    idle = [[(queued, 0) for queued, _ in group] for group in numbers]
    loads = groups(idle)
    limit_of = limits(loads, most)

    hungry_before = False
    for group in [*loads[1:], *loads[:1]]:
        if hungry_before:
            assert all(limit_of[load.name] == 0 for load in group)
        hungry = [limit_of[load.name] for load in group if limit_of[load.name] < load.demand]
        hungry_before = hungry_before or bool(hungry)
        if hungry:
            assert max(hungry) - min(hungry) <= 1
            assert all(limit_of[load.name] <= max(hungry) for load in group)


@pytest.mark.parametrize(
    ("running", "queued", "expected"),
    [
        ((10, 0, 0), (50, 4, 0), (6, 0, 0)),
        ((8, 0, 0), (50, 4, 3), (3, 2, 0)),
        ((6, 2, 0), (50, 2, 3), (3, 4, 0)),
        ((6, 3, 0), (50, 0, 3), (4, 3, 1)),
    ],
)
def test_limits_follow_the_worked_example_of_the_releases(
    running: tuple[int, ...], queued: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    """The urgent queues get their slots as the tasks of the others end, never beyond 10 together."""
    loads = [[Load(str(i), queued[i], running[i])] for i in range(3)]

    assert tuple(limits(loads, 10)[str(i)] for i in range(3)) == expected
