"""The command that submits a job takes values of Python, and none of them is changed on its way without a word."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from spinney.client.calls import command_call
from spinney.errors import BadParameters, UsageError
from spinney.operations import PutInbox, PutSchedule, SubmitJob


class Reply(BaseModel):
    sender: str = Field(alias="from")


@dataclass
class Login:
    password: SecretStr


@dataclass
class Size:
    width: float


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (Path("a/b"), "a/b"),
        (Decimal("1.10"), "1.10"),
        (datetime(2030, 1, 31, 8, tzinfo=UTC), "2030-01-31T08:00:00+00:00"),
        (timedelta(minutes=15), "PT15M"),
        (IPv4Address("10.0.0.1"), "10.0.0.1"),
        (Reply(**{"from": "ann"}), {"from": "ann"}),
        ([None, "null", {"a": (1, 2)}], [None, "null", {"a": [1, 2]}]),
    ],
)
def test_values_of_python_are_sent_as_stages_read_them(value: Any, sent: Any) -> None:
    call = command_call(SubmitJob(type="tell", params={"x": value}, data={"y": value}))
    assert call.json == {"type": "tell", "params": {"x": sent}, "data": {"y": sent}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "'x' cannot be kept as JSON: it holds a number that JSON does not have"),
        ([float("inf")], "'x' cannot be kept as JSON: it holds a number that JSON does not have"),
        (deque([float("nan")]), "'x' cannot be kept as JSON: it holds a number that JSON does not have"),
        ({float("nan")}, "'x' cannot be kept as JSON: it holds a number that JSON does not have"),
        (Size(float("nan")), "'x' cannot be kept as JSON: it holds a number that JSON does not have"),
        (
            MappingProxyType({"gain": float("nan")}),
            "'x' cannot be kept as JSON: it holds a number that JSON does not have",
        ),
        (SecretStr("a long password"), "pass its value"),
        (Login(SecretStr("a long password")), "pass its value"),
        (2**70, "64-bit"),
        (object(), "object"),
        (b"\xff", "bytes"),
        ("\ud800", "UTF-8"),
    ],
)
@pytest.mark.parametrize("field", ["params", "data"])
def test_what_would_be_sent_as_something_else_is_refused(field: str, value: Any, message: str) -> None:
    submit: Callable[..., SubmitJob] = SubmitJob
    with pytest.raises(BadParameters, match=message):
        submit(type="tell", **{field: {"x": value}})


def test_a_time_may_be_a_datetime_with_a_zone() -> None:
    at = datetime(2030, 1, 31, 8, tzinfo=UTC)
    submit: Callable[..., SubmitJob] = SubmitJob
    assert submit(type="tell", at=at) == submit(type="tell", at="2030-01-31T08:00:00Z")
    with pytest.raises(UsageError, match="at: the time needs a zone"):
        submit(type="tell", at=at.replace(tzinfo=None))


def test_parameters_of_schedules_and_inboxes_are_no_worse() -> None:
    value = {"x": Path("a")}
    assert PutSchedule(name="n", type="tell", every_s=60, params=value).params == {"x": "a"}
    assert PutInbox(name="n", folder="/srv/in", type="tell", params=value).params == {"x": "a"}
