import asyncio
from typing import Any

import pytest

from spinney.features.bulk import page as bulk_runs
from spinney.features.bulk.page import BulkRun, BulkRuns, Stopped
from spinney.model.errors import Refused
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.bulk_runs import BulkStep, Plan, Report

PLAN = Plan(order=Order(verb=Verb.CANCEL), job_filter=None, jobs=2)


async def begun(runs: BulkRuns, work: Any) -> BulkRun:
    return await runs.begin(PLAN, "ada", "/jobs", work)


async def test_given_a_short_run_when_begun_then_its_end_is_waited_for() -> None:
    async def work(run: BulkRun) -> Report:
        return Report(touched=2)

    async with BulkRuns() as runs:
        run = await begun(runs, work)

    assert run.done
    assert run.report.touched == 2


async def test_given_a_long_run_when_begun_then_it_goes_on_and_only_its_asker_sees_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_runs, "PATIENCE_S", 0.01)
    go = asyncio.Event()

    async def work(run: BulkRun) -> Report:
        run.step(Report(touched=1), BulkStep(touched=[1]))
        await go.wait()
        return Report(touched=2)

    async with BulkRuns() as runs:
        run = await begun(runs, work)
        assert not run.done
        assert run.report.touched == 1
        assert runs.of(run.id, "ada") is run
        assert runs.of(run.id, "grace") is None
        go.set()

    assert run.report.touched == 2


async def test_given_the_server_ends_when_a_run_takes_its_next_step_then_it_stops_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_runs, "PATIENCE_S", 0.01)

    async def work(run: BulkRun) -> Report:
        done = Report()
        while True:
            done.touched += 1
            run.step(done, BulkStep(touched=[done.touched]))
            await asyncio.sleep(0)

    async with BulkRuns() as runs:
        run = await begun(runs, work)

    assert run.done
    assert isinstance(run.error, Stopped)
    assert run.report.touched > 0


async def test_given_a_run_that_is_refused_at_once_when_begun_then_its_asker_hears_of_it() -> None:
    async def work(run: BulkRun) -> Report:
        raise Refused("not now")

    async with BulkRuns() as runs:
        with pytest.raises(Refused, match="not now"):
            await begun(runs, work)
