"""The node that leads rolls up throughput; others leave it to that one."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from new_store import new_store
from spinney.features.stats.history_sql import MINUTE_S
from spinney.model.jobs import Submission
from spinney.model.types import StageSpec, TypeSpec
from spinney.node.context import NodeContext
from spinney.node.local_host import LocalHost
from spinney.node.services.throughput_history import ThroughputRecorder
from spinney.node.settings import NodeSettings
from spinney.node.signals import NodeStatus
from spinney.node.store_thread import StoreThread
from spinney.store.parts import Store
from spinney.store.sql import open_store

NOW_US = 10 * MINUTE_S * 1_000_000


async def no_pause(seconds: float) -> None:
    """Do not wait."""


def leading(place: Path, url: str, opened: Callable[[], Store], now_us: Callable[[], int]) -> NodeContext:
    """What a node that leads has, as far as the recorder uses it."""
    return NodeContext(
        settings=NodeSettings(store=url, app="jobs:app", folders=str(place / "folders")),
        host=LocalHost(host="h", boot_id="b", run_dir=place, folder_root=place / "folders"),
        writer=(unused := StoreThread("unused", opened)),  # never started: a call of it would wait for ever
        reader=unused,
        now_us=now_us,
        status=NodeStatus(is_leader=True),
    )


@pytest.mark.parametrize("leads", [True, False])
async def test_given_a_minute_then_the_leader_alone_records_it(tmp_path: Path, leads: bool) -> None:
    url = new_store(tmp_path / "spinney.db")
    store = open_store(url)
    store.register([TypeSpec(name="one", stages=(StageSpec(name="work"),))], [])
    store.submit([Submission(type="one")], now_us=1)
    async with StoreThread("reader", lambda: open_store(url)) as reader:
        context = NodeContext(
            settings=NodeSettings(store=url, app="jobs:app", folders=str(tmp_path / "folders")),
            host=LocalHost(host="h", boot_id="b", run_dir=tmp_path, folder_root=tmp_path / "folders"),
            writer=reader,
            reader=reader,
            now_us=lambda: NOW_US,
            status=NodeStatus(is_leader=leads),
        )
        recorder = ThroughputRecorder(context, lambda: open_store(url), pause=no_pause)
        await recorder._next_minute()

    history = store.throughput_history
    figures = history.by_slice(MINUTE_S, 0, 10, [lane for lane, *_ in history.lanes()])
    assert {minute: figure.pending for minute, figure in figures.items()} == ({9: 1} if leads else {})
    store.close()


async def test_given_steps_that_take_long_then_each_minute_is_recorded_without_the_readers_thread(
    tmp_path: Path,
) -> None:
    url = new_store(tmp_path / "spinney.db")
    clock_us = [NOW_US + 17_000_000]

    async def pause(seconds: float) -> None:
        clock_us[0] += round(seconds * 1e6)
        if clock_us[0] > NOW_US + 5 * MINUTE_S * 1_000_000:
            raise asyncio.CancelledError

    def opened() -> Store:
        clock_us[0] += 9_000_000  # so long does a step take
        return open_store(url)

    context = leading(tmp_path, url, opened, lambda: clock_us[0])
    with pytest.raises(asyncio.CancelledError):
        await ThroughputRecorder(context, opened, pause=pause).run()

    store = open_store(url)
    assert [*store.throughput_history.by_slice(MINUTE_S, 0, 100, [])] == [10, 11, 12, 13, 14]
    store.close()


async def test_given_a_minute_that_cannot_be_recorded_then_it_is_logged_and_the_next_one_is_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = new_store(tmp_path / "spinney.db")
    clock_us = [NOW_US]

    async def pause(seconds: float) -> None:
        clock_us[0] += round(seconds * 1e6)
        if clock_us[0] > NOW_US + 2 * MINUTE_S * 1_000_000:
            raise asyncio.CancelledError

    def opened() -> Store:
        if clock_us[0] == NOW_US + MINUTE_S * 1_000_000:
            raise ArithmeticError("no such figure")
        return open_store(url)

    context = leading(tmp_path, url, opened, lambda: clock_us[0])
    with pytest.raises(asyncio.CancelledError):
        await ThroughputRecorder(context, opened, pause=pause).run()

    (entry,) = caplog.records
    assert "the record of throughput" in entry.getMessage()
    assert entry.exc_info
    assert entry.exc_info[0] is ArithmeticError
    store = open_store(url)
    assert [*store.throughput_history.by_slice(MINUTE_S, 0, 100, [])] == [11]
    store.close()
