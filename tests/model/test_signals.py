"""Signals refuse what no store can keep, in the stage that raises them."""

from typing import Any

import pytest

from spinney.model.attempts.signals import Defer, Fail


@pytest.mark.parametrize("code", [0, -1, 2**31, 2**70, 1.0, "7", True])
def test_a_code_of_ones_own_is_a_small_positive_number(code: Any) -> None:
    with pytest.raises(ValueError, match="whole number from 1 to 2147483647"):
        Fail("no", code=code)


@pytest.mark.parametrize("code", [1, 2**31 - 1, None])
def test_lawful_codes_are_kept(code: int | None) -> None:
    assert Fail("no", code=code).code == code


@pytest.mark.parametrize(
    "seconds", [-1, -0.001, float("nan"), float("inf"), float("-inf"), 10**400, "soon", None, True]
)
def test_defer_takes_seconds_that_can_pass(seconds: Any) -> None:
    with pytest.raises(
        ValueError, match=r"Defer: .* is no length of time; write|Defer takes 0 seconds or more"
    ):
        Defer(seconds)


@pytest.mark.parametrize("seconds", [0, 0.2, 60, 1e12])
def test_lawful_seconds_are_kept(seconds: float) -> None:
    assert Defer(seconds).seconds == seconds
