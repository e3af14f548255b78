"""When a message is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.reports import retry_times

NOW = 1_800_000_000.0


@given(age_s=st.floats(0, 1e9), draw=st.floats(0, 1))
def test_a_pause_by_age_stays_within_its_bounds(age_s: float, draw: float) -> None:
    assert 45 <= retry_times.by_age_s(age_s, least_s=60, most_s=3600, draw=draw) <= 3600


@given(tries=st.integers(1, 10**6), draw=st.floats(0, 1))
def test_a_pause_by_tries_stays_within_its_bounds(tries: int, draw: float) -> None:
    assert 7.5 <= retry_times.by_tries_s(tries, least_s=10, most_s=21_600, draw=draw) <= 21_600


def test_pauses_grow_threefold() -> None:
    assert [retry_times.by_tries_s(n, least_s=10, most_s=200, draw=0) for n in (1, 2, 3, 4)] == [
        10,
        30,
        90,
        200,
    ]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0),
        ("Fri, 15 Jan 2027 07:59:00 GMT", 0.0),
        ("9" * 400, 999_999_999_999.0),
        ("-5", None),
        ("1e9", None),
        ("²", None),
        ("soon", None),
        ("Fri, 99 Jan 2027 08:01:00 GMT", None),
        ("Fri, 15 Jan 99999999999999 08:01:00 GMT", None),
        ("", None),
    ],
)
def test_what_a_receiver_asks_for(header: str, seconds: float | None) -> None:
    assert retry_times.retry_after_s(header, NOW) == seconds


@given(st.text(alphabet="0123456789 -+:.,GMTJanFriPSTZ²\n", max_size=40))
def test_no_header_breaks_it(header: str) -> None:
    seconds = retry_times.retry_after_s(header, NOW)

    assert seconds is None or seconds >= 0
