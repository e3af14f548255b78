"""Wherever a length of time may stand, a number of seconds, a timedelta and text such as "5m" mean the same."""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from spinney import Backoff, Defer, Spinney
from spinney.client import Client
from spinney.features.bulk.commands import CanaryFields
from spinney.features.external.commands import JoinExternalWorker, SettleAttempt
from spinney.features.retention.commands import SetRetention
from spinney.features.schedules.commands import PutSchedule
from spinney.model.errors import UsageError
from spinney.model.external import Settlement
from spinney.model.outcomes import Outcome
from spinney.model.settings.schedules import Schedule
from spinney.model.types import StageSpec, TypeSpec
from spinney.reports.settings import MailSettings, WebhookSettings
from spinney.service.canary import Canary
from spinney.terminal.options.arguments import length as option
from spinney.web.settings import read

SENTENCE = "is no length of time; write numbers with w, d, h, m or s, as in 30d, 12h or 1h30m"


def job(**options: Any) -> TypeSpec:
    return Spinney().job(name="work", **options)(lambda: None).spec


def stage(**options: Any) -> StageSpec:
    line = Spinney().pipeline("line")
    line.program("scan", ["scan"], **options)
    return line.spec.stages[0]


def schedule(every: Any) -> float | None:
    app = Spinney()
    app.job(name="work")(lambda: None)
    return app.schedules[app.schedule("work", every=every)].every_s


def lease(length: Any) -> float:
    lane = {"type": "t", "stage": "s"}
    return JoinExternalWorker(name="n", lanes=[lane], lease_s=length).lease_s


def delay(length: Any) -> float | None:
    return SettleAttempt(worker="1-1", job=1, fence=1, outcome="defer", delay_s=length).delay_s


BY_CODE: dict[str, Callable[[Any], Any]] = {
    "timeout of a job": lambda length: job(timeout=length).stages[0].timeout_s,
    "grace of a job": lambda length: job(grace=length).stages[0].grace_s,
    "keep of a job": lambda length: job(keep={"completed": length}).keep["completed"],
    "timeout of a stage": lambda length: stage(timeout=length).timeout_s,
    "interval of app.schedule": schedule,
    "interval of a schedule": lambda length: Schedule(name="s", type="t", every_s=length).every_s,
    "Defer": lambda length: Defer(length).seconds,
    "first pause of a backoff": lambda length: Backoff(base_s=length).base_s,
    "longest pause of a backoff": lambda length: Backoff(cap_s=length).cap_s,
    "patience of mail": lambda length: MailSettings(host="mail", give_up_s=length).give_up_s,
    "patience of webhooks": lambda length: WebhookSettings(retry_most_s=length).retry_most_s,
    "delay of an external stage": lambda length: Settlement(outcome=Outcome.DEFER, delay_s=length).delay_s,
    "wait for a canary": lambda length: Canary(first=1, stop_at=0.1, patience_s=length).patience_s,
    "canary of a command": lambda length: CanaryFields(first=1, patience_s=length).patience_s,
    "interval of a schedule that is put": lambda length: (
        PutSchedule(name="s", type="t", every_s=length).every_s
    ),
    "retention": lambda length: SetRetention(type="t", state="failed", keep_s=length).keep_s,
    "lease of an external worker": lease,
    "delay of an external attempt": delay,
    "client: patience": lambda length: Client("http://localhost", timeout_s=length)._http.timeout.read,
}


@pytest.mark.parametrize("place", BY_CODE)
def test_a_length_of_time_means_the_same_everywhere(place: str) -> None:
    for length in (300, 300.0, "5m", "4m60s", timedelta(minutes=5)):
        assert BY_CODE[place](length) == 300, length


@pytest.mark.parametrize("place", BY_CODE)
def test_what_is_no_length_of_time_is_refused_everywhere_in_the_same_words(place: str) -> None:
    for wrong in ("5", "5 minutes", "soon", True, math.nan, math.inf, 10**400, [5]):
        with pytest.raises((UsageError, ValueError), match=SENTENCE) as refused:
            BY_CODE[place](wrong)
        # Text that is wrong is not mended by a number, which is what "5" looks like.
        assert (", or give a number of seconds" in str(refused.value)) is not isinstance(wrong, str), wrong


def test_the_api_refuses_it_in_these_words_too() -> None:
    for wrong in ("5", "soon", True, math.nan):
        with pytest.raises(ValidationError, match=SENTENCE):
            CanaryFields(first=1, patience_s=wrong)


def test_the_api_describes_both_ways_and_keeps_the_bounds() -> None:
    number, text, null = SetRetention.model_json_schema()["properties"]["keep_s"]["anyOf"]
    assert (number["type"], number["minimum"], text["type"], null["type"]) == ("number", 0, "string", "null")
    with pytest.raises(ValidationError, match="greater than 0"):
        CanaryFields(first=1, patience_s="0m")


def test_a_settings_file_takes_them(tmp_path: Any) -> None:
    for length in (90, "90s", "1m30s"):
        assert read({"body_patience_s": length}, tmp_path).body_patience_s == 90
    with pytest.raises(UsageError, match=SENTENCE):
        read({"body_patience_s": "90"}, tmp_path)


def test_an_option_of_the_command_line_takes_a_bare_number_of_seconds_as_well() -> None:
    parse = option("--window", 10, 840)
    assert [parse("300"), parse("5m"), parse(300.0)] == [300] * 3
    with pytest.raises(UsageError, match="--window: 'soon' is no length"):
        parse("soon")
    with pytest.raises(UsageError, match=r"--window must be between 10 and 840 seconds, not '1h'"):
        parse("1h")


def test_what_is_kept_of_a_number_is_that_number() -> None:
    """As JSON an int is no float: a type or a schedule that nobody changed must not look changed after an upgrade."""
    timeout = job(timeout=5).stages[0].timeout_s
    kept = [Backoff(base_s=2).base_s, Schedule(name="s", type="t", every_s=30).every_s, timeout]
    assert [repr(number) for number in kept] == ["2", "30", "5.0"]
