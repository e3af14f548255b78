"""Folders of deleted jobs: those that cannot be removed keep no other from going, and are not told for ever."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import job_verbs
from spinney.folders import folders
from spinney.model.jobs import NodeInfo, Submission
from spinney.model.types import StageSpec, TypeSpec
from spinney.node.context import NodeContext
from spinney.node.local_host import LocalHost
from spinney.node.services import maintenance
from spinney.node.services.folders.deleted_folders import DeletedFolders
from spinney.node.services.maintenance import Maintenance
from spinney.node.settings import NodeSettings
from spinney.node.signals import NodeSignals
from spinney.node.store_thread import StoreThread
from spinney.store.parts import Store
from spinney.store.sql import open_store

JOBS = 130
IN_THE_WAY = list(range(1, 100))
"""They share a directory, which is a file here: so none of them can be removed, whoever we are."""
FREE = list(range(100, JOBS + 1))


class Place:
    """A store whose jobs are all deleted, and a folder root."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}/x.db"
        self.store: Store = open_store(self.url)
        self.store.create()
        self.store.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])
        self.root = path / "folders"
        self.root.mkdir()
        (self.root / folders.TOKEN).touch()
        ids = self.store.submit([Submission(type="t", params=["{}"] * JOBS)], now_us=1).ids
        assert list(ids) == [*IN_THE_WAY, *FREE]
        for job_id in FREE:
            folders.make(self.root, job_id)
        for job_id in ids:
            job_verbs.cancel(self.store, job_id, tree=False, by="ann", reason=None, now_us=2)
            job_verbs.delete(self.store, job_id, by="ann", now_us=3)
        self.obstacle = self.root / "00" / "00" / "00"
        self.obstacle.touch()

    def left(self) -> list[int]:
        return list(self.store.deleted_folders(JOBS))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.store.close()


async def test_housekeeping_comes_to_those_behind_folders_that_cannot_be_removed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "EVERY_S", 0.0)
    through = asyncio.Event()

    def look() -> None:
        if place.left() == IN_THE_WAY:
            through.set()

    async with (
        StoreThread("writer", lambda: open_store(place.url)) as writer,
        StoreThread("reader", lambda: open_store(place.url)) as reader,
    ):
        info = NodeInfo(
            id=0,
            name="oak",
            boot_id="b",
            host="h",
            pid=1,
            slots=1,
            state="active",
            beat=0,
            started_us=1,
            seen_us=1,
            version="1",
            types=(),
        )
        node_id = place.store.join(info, now_us=4)
        signals = NodeSignals()
        signals.round_begins.connect(look)
        context = NodeContext(
            settings=NodeSettings(store=place.url, app="jobs:app", folders=str(place.root)),
            host=LocalHost(host="h", boot_id="b", run_dir=place.root, folder_root=place.root),
            writer=writer,
            reader=reader,
            now_us=lambda: 4,
            signals=signals,
        )
        keeping = Maintenance(context, node_id=node_id)
        tasks = [asyncio.create_task(keeping.rounds()), asyncio.create_task(keeping.tidy())]
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                await through.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    assert place.left() == IN_THE_WAY
    assert not any(folders.path(place.root, job_id).exists() for job_id in FREE)


async def test_what_resists_is_told_once_a_change(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with (
        StoreThread("writer", lambda: open_store(place.url)) as writer,
        StoreThread("reader", lambda: open_store(place.url)) as reader,
    ):
        context: Any = SimpleNamespace(writer=writer, reader=reader, folder_root=place.root)
        deleted = DeletedFolders(context, home=0)
        for _ in range(11):  # five rounds, the first with what can be removed
            await deleted.step()
        messages = caplog.messages
        assert len(messages) == 2, messages
        assert messages[0].startswith("the folder of the deleted job 1 stays: cannot remove")
        assert messages[1].startswith("99 folders of deleted jobs stay")

        caplog.clear()
        place.obstacle.unlink()
        for _ in range(6):
            await deleted.step()

    assert place.left() == []
    assert caplog.messages == ["all folders of deleted jobs are removed"]
