import pytest

from spinney.model.values import texts
from spinney.web.pages import text_formats

NOW_US = 1_800_000_000_000_000


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2, "just now"),
        (-2, "in a moment"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (7_200, "2 h ago"),
        (86_400, "1 day ago"),
        (3 * 86_400, "3 days ago"),
        (-7_300, "in 2 h 2 min"),
        (-7_199, "in 2 h"),
        (-(3_600 + 59 * 60 + 58), "in 2 h"),
        (-(3_600 + 59 * 60), "in 1 h 59 min"),
        (-(90 * 86_400 - 2), "in 90 days"),
        (-65.4, "in 1 min 5 s"),
        (400 * 86_400, "1 year ago"),
        (-26_330.4 * 86_400, "in 72 years 50 days"),
    ],
)
def test_given_a_moment_then_it_is_said_how_long_ago_it_was(seconds: float, text: str) -> None:
    assert text_formats.ago(NOW_US - round(seconds * 1e6), NOW_US) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(5.0, "5 s"), (1.5, "1.5 s"), (0.25, "250 ms"), (90.0, "1 min 30 s"), (0.0, "0 ms")]
)
def test_an_interval_that_somebody_set_has_no_needless_decimals(seconds: float, text: str) -> None:
    assert text_formats.interval(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.34, "340 ms"),
        (1.26, "1.3 s"),
        (61, "1 min 1 s"),
        (3_600, "1 h"),
        (90_000, "1 day 1 h"),
        (3_601, "1 h"),
        (-3, "0 s"),
    ],
)
def test_given_a_time_then_its_two_largest_parts_are_said(seconds: float | None, text: str) -> None:
    assert text_formats.lasting(seconds) == text


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0"), (9_999, "9,999"), (12_340, "12.3k"), (1_204_000, "1.2M"), (3e9, "3.0G")]
)
def test_given_a_large_number_then_it_is_short(n: float, text: str) -> None:
    assert text_formats.short(n) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "1 byte"), (999, "999 bytes"), (1_000, "1.0 kB"), (999_960, "1.0 MB"), (12_400_000, "12.4 MB")],
)
def test_given_bytes_then_they_are_said_in_the_unit_that_fits(count: int, text: str) -> None:
    assert text_formats.size(count) == text


@pytest.mark.parametrize(("part", "text"), [(0.0, "0 %"), (0.999, "99 %"), (1.0, "100 %"), (None, "")])
def test_given_a_fraction_then_a_hundred_is_said_of_the_whole_alone(part: float | None, text: str) -> None:
    assert text_formats.percent(part) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(0, "0/s"), (0.5, "30/min"), (1.5, "1.5/s"), (1_234.4, "1,234/s")]
)
def test_given_a_rate_then_a_slow_one_is_said_by_the_minute(rate: float, text: str) -> None:
    assert texts.rate(rate) == text


def test_given_a_moment_that_no_calendar_has_then_it_is_said_as_it_is() -> None:
    assert text_formats.moment(10**18) == f"{10**18} µs from 1970"
    assert text_formats.iso(10**18) == ""


def test_given_a_long_text_then_it_is_cut_on_one_line() -> None:
    assert text_formats.cut("a\n b  c") == "a b c"
    assert text_formats.cut("x" * 200, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
            "Firefox on Windows",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 "
            "Safari/537.36 Edg/142.0.0.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile "
            "Safari/537.36",
            "Chrome on Android",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "Version/26.0 Mobile/15E148 Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 Firefox/145.0", "Firefox"),
        ("curl/8.14.1", "curl/8.14.1"),
        ("", "unknown browser"),
        (None, "unknown browser"),
    ],
)
def test_given_a_user_agent_then_the_browser_is_named_as_people_name_it(agent: str | None, name: str) -> None:
    assert text_formats.browser(agent) == name


def test_given_a_text_then_its_first_letter_alone_becomes_a_capital() -> None:
    assert text_formats.capital("no GDAL here") == "No GDAL here"
    assert text_formats.capital("") == ""
    assert text_formats.capital("it's away; retry") == "It's away; retry"
    assert text_formats.capital("non-empty: it has files") == "Non-empty: it has files"
    for name in ("https://example.org/", "scan_7.tif", "spinney.toml:", "import_file"):
        assert text_formats.capital(f"{name} is away") == f"{name} is away"
