"""Lengths of time as people write them."""

import pytest

from spinney.model.errors import UsageError
from spinney.model.values import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30d", 2_592_000),
        ("12h", 43_200),
        ("1h30m", 5_400),
        ("2w", 1_209_600),
        ("1.5s", 1.5),
        ("0s", 0),
        (" 1D ", 86_400),
    ],
)
def test_numbers_with_units_are_read(text: str, seconds: float) -> None:
    assert durations.seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "30", "d", "-1d", "1 d", "30days", "1d2", "1e3s", "nan", "²s", "9" * 400 + "s"]
)
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no length of time; write"):
        durations.seconds(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (86_400, "1 day"),
        (2_592_000, "30 days"),
        (129_600, "36 hours"),
        (90, "90 seconds"),
        (1.5, "1.5 seconds"),
        (0, "0 seconds"),
        (60, "1 minute"),
        (31_622_400_000, "366,000 days"),
        (99, "99 seconds"),
        (100, "1 min 40 s"),
        (3_393, "56 min 33 s"),
        (3_393.25, "56 min 33.25 s"),
        (5_400, "90 minutes"),
        (9_000, "2 h 30 min"),
        (363_600, "4 d 5 h"),
        (90_061, "1 d 1 h 1 min 1 s"),
    ],
)
def test_they_are_shown_exactly_in_units_that_people_can_read(seconds: float, text: str) -> None:
    assert durations.shown(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (7.9, "7.9 seconds"),
        (99.9, "99 seconds"),
        (3_393, "56 min 33 s"),
        (7_393, "2 h 3 min"),
        (450_061, "5 d 5 h"),
    ],
)
def test_measured_ones_are_shown_without_what_does_not_matter(seconds: float, text: str) -> None:
    assert durations.rounded(seconds) == text
