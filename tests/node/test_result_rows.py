"""What the outcome of an attempt says that ended with a signal: ``rows``, without a process."""

from typing import Any

import pytest

from spinney.model.attempts.signals import Defer
from spinney.node.worker import result_rows

HUNDRED_YEARS_S = 100 * 366 * 86400


def _deferring(seconds: Any) -> Defer:
    """One that bears what its own check would have refused."""
    made = Defer(1, "later")
    made.seconds = seconds
    return made


@pytest.mark.parametrize("seconds", [0, 0.5, HUNDRED_YEARS_S])
def test_a_wait_of_up_to_a_hundred_years_is_told_as_it_is(seconds: float) -> None:
    detail = result_rows.exception_detail("work", Defer(seconds, "later", lane=True))

    assert detail == {"outcome": "defer", "message": "later", "delay_s": float(seconds), "lane": True}


@pytest.mark.parametrize("seconds", [HUNDRED_YEARS_S + 1, 1e300, float("inf"), float("-inf"), float("nan")])
def test_a_wait_that_does_not_end_is_an_error_that_no_retry_mends(seconds: float) -> None:
    detail = result_rows.exception_detail("work", _deferring(seconds))

    assert (detail["outcome"], detail["retryable"]) == ("error", False)
    assert (
        detail["message"]
        == f"Defer says to wait {float(seconds)} s; raise it with at most {HUNDRED_YEARS_S} s"
    )
    assert "delay_s" not in detail


@pytest.mark.parametrize("seconds", [10**400, "soon", None])
def test_a_wait_that_is_no_such_number_is_an_error_that_no_retry_mends(seconds: Any) -> None:
    detail = result_rows.exception_detail("work", _deferring(seconds))

    assert (detail["outcome"], detail["retryable"]) == ("error", False)
    assert detail["message"]


def test_a_value_that_json_does_not_have_is_no_result() -> None:
    with pytest.raises(
        result_rows.BadResult, match="the value that stage 'mean' returned cannot be kept as JSON"
    ):
        result_rows.value_detail("mean", {"mean": float("nan")})
    assert result_rows.value_detail("mean", [None]) == {"outcome": "ok", "result": "[null]"}
