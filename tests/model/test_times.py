"""Times as people write them, by the clock of this host."""

import os
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from spinney.model.values.times import parse_time, to_us


@pytest.fixture
def in_berlin() -> Iterator[None]:
    """This process is in a zone whose clock is put forward and back."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("2027-01-31T08:00", "2027-01-31T08:00+01:00"),
        ("2027-07-31T08:00:00.000001", "2027-07-31T08:00:00.000001+02:00"),
        ("2027-07-31", "2027-07-31T00:00+02:00"),
        ("2027-07-31T08:00Z", "2027-07-31T08:00+00:00"),
        ("9000-01-31T08:00:00.000001", "9000-01-31T08:00:00.000001+01:00"),
        # Skipped by the clock: never before the change
        ("2027-03-28T01:59:59", "2027-03-28T01:59:59+01:00"),
        ("2027-03-28T02:00", "2027-03-28T03:00+02:00"),
        ("2027-03-28T02:30", "2027-03-28T03:30+02:00"),
        ("2027-03-28T03:00", "2027-03-28T03:00+02:00"),
        # Shown twice
        ("2027-10-31T02:30", "2027-10-31T02:30+02:00"),
        ("2027-10-31T02:30+01:00", "2027-10-31T02:30+01:00"),
    ],
)
@pytest.mark.usefixtures("in_berlin")
def test_a_time_without_a_zone_is_one_of_this_host(text: str, means: str) -> None:
    assert parse_time(text, 0, ahead=True) == to_us(datetime.fromisoformat(means))
