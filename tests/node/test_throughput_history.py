"""The node that leads rolls up throughput; others leave it to that one."""

from pathlib import Path

import pytest

from new_store import new_store
from spinney.features.stats.history_sql import MINUTE_S
from spinney.model.jobs import Submission
from spinney.model.types import StageSpec, TypeSpec
from spinney.node.context import NodeContext
from spinney.node.lifecycle.recovery import LocalHost
from spinney.node.services.throughput_history import ThroughputRecorder
from spinney.node.settings import NodeSettings
from spinney.node.signals import NodeStatus
from spinney.node.store_thread import StoreThread
from spinney.store.sql import open_store

NOW_US = 10 * MINUTE_S * 1_000_000


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
        await ThroughputRecorder(context)._record()

    history = store.throughput_history
    figures = history.by_slice(MINUTE_S, 0, 10, [lane for lane, *_ in history.lanes()])
    assert {minute: figure.pending for minute, figure in figures.items()} == ({9: 1} if leads else {})
    store.close()
