"""What the outcome of an attempt says that ended with a signal: ``rows``, without a process."""

import json
from decimal import Decimal
from typing import Any

import numpy
import pytest

from spinney.define.job import LockTaken
from spinney.define.params.redaction import Redactor
from spinney.model.attempts.signals import Defer, Fail, Hold
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


@pytest.mark.parametrize("value", [Fail("no file"), Fail, ValueError("no file")])
def test_an_exception_that_is_returned_is_to_be_raised(value: Any) -> None:
    with pytest.raises(
        result_rows.BadResult,
        match=r"stage 'work' returned (Fail|ValueError); write 'raise \1\(…\)' in place",
    ):
        result_rows.value_detail("work", value)


def test_a_key_that_no_json_object_can_have_is_named_as_one() -> None:
    with pytest.raises(
        result_rows.BadResult, match="as JSON: a key of a dict is no text, number, date or enum; use"
    ):
        result_rows.value_detail("mean", {(1, 2): 3})


def test_a_coroutine_that_is_returned_is_to_be_awaited() -> None:
    async def size() -> int:
        return 3

    with pytest.raises(
        result_rows.BadResult, match=r"stage 'work' returned a coroutine; write 'return await …'"
    ):
        result_rows.value_detail("work", size())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (numpy.float64(1.5), "1.5"),
        ({"n": numpy.int64(3), "ok": numpy.bool_(True)}, '{"n":3,"ok":true}'),
        (numpy.zeros((2, 2)), "[[0.0,0.0],[0.0,0.0]]"),
        (Decimal("1.10"), '"1.10"'),
    ],
)
def test_what_numpy_and_decimal_computed_is_a_result(value: Any, text: str) -> None:
    assert result_rows.value_detail("mean", value) == {"outcome": "ok", "result": text}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (numpy.float64("nan"), "NaN or infinity"),
        ([numpy.array([1.0, numpy.inf])], "NaN or infinity"),
        (numpy.broadcast_to(numpy.int8(1), 2**50), "not JSON serializable: numpy.ndarray"),
        (numpy.datetime64("2026-01-31T12:00", "ns"), "not JSON serializable: numpy.datetime64"),
        ([numpy.array(["NaT"], "datetime64[ns]")], "not JSON serializable: numpy.ndarray"),
    ],
)
def test_an_array_that_json_cannot_hold_is_no_result(value: Any, reason: str) -> None:
    with pytest.raises(result_rows.BadResult, match=reason):
        result_rows.value_detail("mean", value)


def test_an_exception_of_spinney_is_named_without_its_module() -> None:
    detail = result_rows.exception_detail("work", Fail("no"))

    assert json.loads(detail["error"])["type"] == "Fail"


def _of_tasks(*errors: BaseException) -> BaseException:
    """A group as ``asyncio.TaskGroup`` raises it, and as one within another does."""
    return BaseExceptionGroup("unhandled errors in a TaskGroup", [BaseExceptionGroup("inner", errors)])


@pytest.mark.parametrize(
    "signal",
    [Fail("no", retryable=False, code=7), Defer(5, "later", lane=True), Hold("look"), LockTaken("disk")],
)
@pytest.mark.parametrize("others", [(), (Hold("another"),)])
def test_a_group_of_signals_means_the_first_of_them(signal: BaseException, others: Any) -> None:
    detail = result_rows.exception_detail("work", _of_tasks(signal, *others))

    assert detail == result_rows.exception_detail("work", signal)


def test_a_group_of_one_error_has_its_type_and_message_and_the_traceback_of_both() -> None:
    detail = result_rows.exception_detail("work", _of_tasks(KeyError("n")))
    described = json.loads(detail["error"])

    assert (detail["message"], described["type"], detail["retryable"]) == ("KeyError: 'n'", "KeyError", True)
    assert "unhandled errors in a TaskGroup" in described["traceback"]


def test_a_group_of_several_names_the_first_without_its_secrets() -> None:
    error = _of_tasks(ValueError("wrong: sesame"), Hold("look"))

    detail = result_rows.exception_detail("work", error, Redactor(texts=("sesame",)))

    assert detail["outcome"] == "error"
    assert detail["message"] == (
        "unhandled errors in a TaskGroup (1 sub-exception); the first is ValueError: wrong: ••••••"
    )
    assert json.loads(detail["error"])["type"] == "BaseExceptionGroup"
    assert "sesame" not in json.dumps(detail)


def test_a_group_whose_members_cannot_be_shown_is_an_error() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    detail = result_rows.exception_detail("work", _of_tasks(Odd(), Odd()))

    assert (detail["outcome"], detail["message"]) == ("error", "its message cannot be shown")
