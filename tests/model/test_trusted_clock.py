"""Whether a clock that has moved on is trusted to delete."""

import pytest

from spinney.model.trusted_clock import AHEAD_US, PROBATION_US, TrustedClock, confirmed, observed

NOON = 1_700_000_000_000_000
SECOND = 1_000_000
MONTH = 31 * 86_400 * SECOND
AT_NOON = TrustedClock(trusted_us=NOON)
JUMPED = TrustedClock(trusted_us=NOON, jumped_us=NOON + MONTH)


def test_the_first_clock_is_trusted() -> None:
    assert observed(None, NOON) == AT_NOON


@pytest.mark.parametrize("later_us", [0, SECOND, AHEAD_US])
def test_given_a_clock_that_goes_on_then_it_is_trusted(later_us: int) -> None:
    assert observed(AT_NOON, NOON + later_us) == TrustedClock(trusted_us=NOON + later_us)


def test_given_a_clock_more_than_an_hour_ahead_then_it_is_not_trusted_and_the_mark_stays() -> None:
    just_ahead = NOON + AHEAD_US + 1

    assert observed(AT_NOON, just_ahead) == TrustedClock(trusted_us=NOON, jumped_us=just_ahead)
    assert observed(JUMPED, NOON + MONTH + 3_600 * SECOND) == JUMPED


def test_given_a_clock_ahead_that_goes_on_for_a_day_then_it_is_trusted() -> None:
    a_day_on = NOON + MONTH + PROBATION_US

    assert observed(JUMPED, a_day_on - 1) == JUMPED
    assert JUMPED.trusted_again_us == a_day_on
    assert observed(JUMPED, a_day_on) == TrustedClock(trusted_us=a_day_on)


def test_given_a_clock_that_comes_back_then_the_jump_is_forgotten() -> None:
    assert observed(JUMPED, NOON + SECOND) == TrustedClock(trusted_us=NOON + SECOND)
    assert observed(JUMPED, NOON - SECOND) == AT_NOON


def test_given_a_clock_behind_the_mark_then_it_is_trusted_and_the_mark_stays() -> None:
    assert observed(AT_NOON, NOON - MONTH) == AT_NOON


def test_given_a_clock_less_far_ahead_then_its_day_begins_with_it() -> None:
    less_us = NOON + MONTH // 2

    assert observed(JUMPED, less_us) == TrustedClock(trusted_us=NOON, jumped_us=less_us)


@pytest.mark.parametrize("before", [None, AT_NOON, JUMPED])
def test_given_a_clock_that_a_person_confirms_then_it_is_trusted_however_far_it_is_ahead(
    before: TrustedClock | None,
) -> None:
    assert confirmed(before, NOON + MONTH) == TrustedClock(trusted_us=NOON + MONTH)


@pytest.mark.parametrize("before", [AT_NOON, JUMPED])
def test_given_a_clock_behind_that_a_person_confirms_then_the_mark_stays(before: TrustedClock) -> None:
    assert confirmed(before, NOON - MONTH) == AT_NOON
