import pytest

from spinney.model.states import State
from spinney.web.pages.filters import parse_filters

NOW_US = 1_800_000_000_000_000


def test_given_a_form_as_a_browser_sends_it_then_empty_fields_narrow_nothing() -> None:
    filters = parse_filters([("type", ""), ("queue", "  "), ("state", "failed"), ("state", "held")], NOW_US)

    assert filters.job_filter.states == (State.FAILED, State.HELD)
    assert filters.job_filter.type is None
    assert filters.query() == "state=failed&state=held"
    assert filters == parse_filters([("state", "failed, held")], NOW_US)
    assert filters.query(state="held") == "state=held"
    assert filters.query(after=7) == "state=failed&state=held&after=7"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", "broken"),
        ("state", "failed, "),
        ("root", "seven"),
        ("parent", "0"),
        ("created_after", "yesterday"),
        ("typ", "x"),
        ("message", "a\0b"),
        ("root", "9" * 30),
    ],
)
def test_given_what_cannot_be_meant_then_it_is_told_at_its_field(name: str, value: str) -> None:
    filters = parse_filters([(name, value)], NOW_US)

    assert list(filters.errors) == [name]


def test_given_ages_and_moments_then_both_are_understood() -> None:
    filters = parse_filters([("created_after", "2h"), ("created_before", "2027-01-01T00:00Z")], NOW_US)

    assert filters.job_filter.created_after_us == NOW_US - 7_200_000_000
    assert filters.job_filter.created_before_us == 1_798_761_600_000_000


def test_given_a_filter_then_the_topic_that_shows_its_changes_is_watched() -> None:
    assert parse_filters([], NOW_US).topic == "jobs"
    assert parse_filters([("state", "failed"), ("type", "a b")], NOW_US).topic == "jobs:state=failed&type=a+b"
    assert parse_filters([("failure", "ab12")], NOW_US).topic == "jobs"
