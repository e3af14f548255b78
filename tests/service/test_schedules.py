"""Schedules as a person handles them: checked like a submission, asked for by name, told to the nodes."""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from new_store import new_store
from spinney import Spinney
from spinney.commands import Command, LocalPerformer
from spinney.features.schedules.commands import (
    DropSchedule,
    ListComingTimes,
    ListScheduleRuns,
    PauseSchedule,
    PutSchedule,
    RunSchedule,
)
from spinney.model.errors import BadParameters, Refused, UnknownType, UsageError
from spinney.model.jobs import PARAMS_MAX_BYTES
from spinney.store.parts import Store
from spinney.store.sql import open_store

NOW_US = time.time_ns() // 1000


@pytest.fixture
def wakeups() -> list[int]:
    return []


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    app = Spinney()

    @app.job
    def report(day: str = "today", width: int = 80) -> None: ...

    @app.job(locks=["receiver:{serno}"])
    def read(serno: str) -> None: ...

    store = open_store(new_store(tmp_path / "jobs.db"))
    store.register([t.spec for t in app.types.values()], [])
    yield store
    store.close()


@pytest.fixture
def schedules(store: Store, wakeups: list[int]) -> LocalPerformer:
    return LocalPerformer(store=store, clock=lambda: NOW_US, wake_nodes=lambda: wakeups.append(1), by="ann")


def hourly(type_: str = "report", **more: Any) -> PutSchedule:
    return PutSchedule(**{"name": "often", "type": type_, "every_s": 3600} | more)


def test_what_is_put_is_checked_kept_and_told_to_the_nodes(
    schedules: LocalPerformer, store: Store, wakeups: list[int]
) -> None:
    answer = schedules.do(hourly(params={"width": 3}))

    assert list(store.schedules.all()) == [answer]
    assert (answer.by, answer.params) == ("ann", {"width": 3})
    assert wakeups == [1]


@pytest.mark.parametrize(
    ("schedule", "error", "says"),
    [
        (hourly("reprt"), UnknownType, "did you mean 'report'"),
        (hourly(params={"width": "x"}), BadParameters, "'width' must be a whole number"),
        (hourly(params={"widht": 3}), BadParameters, "did you mean 'width'"),
        (hourly("read"), BadParameters, "'serno' is missing"),
        (hourly("read", params={"serno": "a/b"}), BadParameters, "names the lock"),
        (hourly(params={"day": "x" * PARAMS_MAX_BYTES}), BadParameters, "bytes long"),
        (hourly(every_s=None, cron="0 24 * * *"), UsageError, "Bad hour"),
        (
            hourly(every_s=None, cron="0 6 * * *", zone="Europe/Brelin"),
            UsageError,
            "did you mean 'Europe/Berlin'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_stored(
    schedules: LocalPerformer,
    store: Store,
    wakeups: list[int],
    schedule: PutSchedule,
    error: type[Exception],
    says: str,
) -> None:
    with pytest.raises(error, match=says):
        schedules.do(schedule)
    assert (list(store.schedules.all()), wakeups) == ([], [])


def test_one_that_is_there_is_replaced_when_asked(schedules: LocalPerformer) -> None:
    schedules.do(hourly())
    with pytest.raises(Refused, match="--replace"):
        schedules.do(hourly(every_s=60))
    assert schedules.do(hourly(every_s=60, replace=True)).every_s == 60


def test_its_verbs(schedules: LocalPerformer, store: Store, wakeups: list[int]) -> None:
    schedules.do(hourly())
    wakeups.clear()
    assert schedules.do(PauseSchedule(name="often", paused=True, reason="move")).paused
    assert wakeups == [], "nobody needs to wake for that"
    assert not schedules.do(PauseSchedule(name="often", paused=False)).paused
    job_id = schedules.do(RunSchedule(name="often")).id
    assert store.job(job_id).submitter == "ann"
    assert wakeups == [1, 1]
    schedules.do(DropSchedule(name="often"))
    assert list(store.schedules.all()) == []
    calls = [entry.call for entry, _ in store.audit.entries()]
    assert len(calls) == len(set(calls)) == 5


def test_its_next_times_are_told_paused_or_not(schedules: LocalPerformer) -> None:
    schedules.do(hourly(paused=True))
    coming = schedules.do(ListComingTimes(name="often", count=3))
    assert [b - a for a, b in pairwise(coming)] == [3600 * 10**6] * 2
    assert coming[0] > NOW_US
    assert list(schedules.do(ListScheduleRuns(name="often")).items) == []


@pytest.mark.parametrize(
    "verb",
    [
        PauseSchedule(name="oftn", paused=True),
        DropSchedule(name="oftn"),
        RunSchedule(name="oftn"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_the_nearest(
    schedules: LocalPerformer, verb: Command
) -> None:
    schedules.do(hourly())
    with pytest.raises(Refused, match="no schedule 'oftn' \\(did you mean 'often'"):
        schedules.do(verb)
