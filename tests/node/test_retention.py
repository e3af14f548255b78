"""A node removes jobs whose time is over, rows and folders together, while it works."""

import os
import time
from pathlib import Path

import pytest
from node_fixtures import Cluster, cluster, lines

import job_verbs
from spinney.folders import folders
from spinney.model.errors import StoreUnusable
from spinney.model.jobs import Filter, Submission
from spinney.model.rights.actor import Actor
from spinney.model.types import StageSpec, TypeSpec
from spinney.node.context import NodeContext
from spinney.node.local_host import LocalHost
from spinney.node.services.retention import Pruner, _stays
from spinney.node.settings import NodeSettings
from spinney.node.signals import NodeStatus
from spinney.node.store_thread import StoreThread
from spinney.store.sql import open_store
from waiting import until

__all__ = ["cluster"]

ANN = Actor(by="ann", call="c")


def test_rows_and_folders_go_together_and_the_node_goes_on(cluster: Cluster) -> None:
    cluster.node(retention_s=0.1)
    first = cluster.run("shout", *({} for _ in range(5)))
    assert all(folders.path(cluster.folders, job.id).is_dir() for job in first)

    cluster.store.retention.set("*", "completed", 0.0, ANN, now_us=time.time_ns() // 1000)

    until(lambda: cluster.store.jobs(Filter()) == [], "all rows are gone")
    until(
        lambda: not any(folders.path(cluster.folders, job.id).exists() for job in first),
        "all folders are gone",
    )
    until(lambda: not cluster.store.deleted_folders(10), "nothing is left to be told")
    entries = [entry for entry, _ in cluster.store.audit.entries() if entry.verb == "remove"]
    assert {entry.by for entry in entries} == {"node oak"}
    assert sum(entry.count for entry in entries) == 5
    cluster.store.retention.set("*", "completed", None, ANN, now_us=time.time_ns() // 1000)
    assert [job.state for job in cluster.run("shout")] == ["completed"]


def test_a_node_whose_clock_is_a_month_ahead_removes_nothing_and_says_why(cluster: Cluster) -> None:
    # Given: jobs are kept for 30 days, and a node whose clock is right has removed what was due
    now_us = time.time_ns() // 1000
    cluster.store.retention.set("*", "completed", 30 * 86_400.0, ANN, now_us=now_us)
    cluster.store.retention.set("*", "cancelled", 0.0, ANN, now_us=now_us)
    oak = cluster.node(retention_s=0.1)
    (kept,) = cluster.run("shout")
    (due,) = cluster.submit("shout", at_us=now_us + 3_600_000_000)
    job_verbs.cancel(cluster.store, due, tree=False, by="ann", reason=None, now_us=now_us)
    until(lambda: _ids(cluster) == [kept.id], "what is due is removed")
    oak.stop()

    # When: the next leader's clock is 31 days ahead
    log = cluster.file("elm.log")
    cluster.start(name="elm", env=_ahead(cluster.place, days=31), log=log, retention_s=0.1).joined()

    # Then
    def warnings() -> list[str]:
        assert _ids(cluster) == [kept.id], "the job is a few seconds old"
        return [line for line in lines(log) if "no jobs are removed" in line]

    assert "spinney keep --sweep" in until(warnings)[0]
    assert _ids(cluster) == [kept.id]


def _ids(cluster: Cluster) -> list[int]:
    return [job.id for job in cluster.store.jobs(Filter())]


def _ahead(place: Path, days: int) -> dict[str, str]:
    """The environment in which Python is told a time of day so many days ahead; monotonic clocks are right."""
    folder = place / "ahead"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        f"import time\n_true_ns = time.time_ns\n"
        f"time.time_ns = lambda: _true_ns() + {days * 86_400 * 10**9}\ntime.time = lambda: time.time_ns() / 1e9\n"
    )
    return {"PYTHONPATH": os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))}


@pytest.mark.parametrize("draining", [False, True])
async def test_while_it_drains_nothing_is_removed(tmp_path: Path, draining: bool) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    store = open_store(url)
    store.create()
    store.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])
    (job,) = store.submit([Submission(type="t")], now_us=1).ids
    job_verbs.cancel(store, job, tree=False, by="ann", reason=None, now_us=2)
    (tmp_path / "folders").mkdir()
    (tmp_path / "folders" / folders.TOKEN).touch()
    folder = folders.make(tmp_path / "folders", job)
    store.retention.set("t", "cancelled", 1.0, ANN, now_us=3)

    async with StoreThread("reader", lambda: open_store(url)) as reader:
        context = NodeContext(
            settings=NodeSettings(store=url, app="jobs:app", folders=str(tmp_path / "folders")),
            host=LocalHost(host="h", boot_id="b", run_dir=tmp_path, folder_root=tmp_path / "folders"),
            writer=reader,
            reader=reader,
            now_us=lambda: 2_000_000,
            status=NodeStatus(is_leader=True, draining=draining),
        )
        retaining = Pruner(context)
        await retaining._walk()

    assert [left.id for left in store.jobs(Filter())] == ([job] if draining else [])
    assert folder.exists() is draining
    assert list(store.deleted_folders(10)) == [], "rows and folders went in one go"
    store.close()


def test_a_folder_that_resists_is_left_to_be_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / folders.TOKEN).touch()
    for job_id in (1, 2, 3):
        folders.make(tmp_path, job_id)
    remove = folders.remove

    def resist(root: Path, job_id: int) -> None:
        if job_id == 2:
            raise StoreUnusable("cannot remove it; see that it is writable")
        remove(root, job_id)

    monkeypatch.setattr(folders, "remove", resist)

    assert folders.remove_each(tmp_path, [1, 2, 3], _stays) == [1, 3]
    assert [folders.path(tmp_path, n).exists() for n in (1, 2, 3)] == [False, True, False]
    assert "folder of the removed job 2 stays" in caplog.text
