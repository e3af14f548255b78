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
    ],
)
def test_they_are_shown_in_the_largest_whole_unit(seconds: float, text: str) -> None:
    assert durations.shown(seconds) == text
