"""Inboxes on real nodes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node_fixtures import Cluster, Node, cluster, kept, now_us, working

from spinney.model.jobs import Filter
from spinney.model.rights.actor import Actor
from spinney.model.settings.inboxes import Arrival, ArrivalOutcome, Inbox
from spinney.model.types import StageSpec, TypeSpec
from spinney.wakeup.local import wake_local_nodes
from waiting import until

__all__ = ["cluster", "kept", "working"]

ANN = Actor(by="ann", call="c")
SETTINGS = {"app": "inbox_app:app"}
"""Of the node that ``working`` has."""


@pytest.fixture
def receiving(working: Cluster) -> Iterator[Cluster]:
    """``working``, without its inbox in the end."""
    yield working
    working.store.inboxes.remove("in", ANN, now_us=now_us())


def put(cluster: Cluster, folder: Path, **fields: Any) -> None:
    folder.mkdir(exist_ok=True)
    if "read" not in cluster.store.types():
        cluster.store.register([TypeSpec(name="read", stages=(StageSpec(name="read"),))], ())
    inbox = Inbox(name="in", folder=str(folder), type="read", **{"rest_s": 0.1} | fields)
    cluster.store.inboxes.put(inbox, ANN, now_us=now_us())
    wake_local_nodes(cluster.run_dir)


def inbox(cluster: Cluster) -> Inbox:
    return cluster.store.inboxes.all()[0]


def arrivals(cluster: Cluster) -> list[Arrival]:
    return list(cluster.store.inboxes.arrivals("in", limit=1000))


def server(cluster: Cluster) -> Node:
    """The node that looks into the inbox."""
    name = until(lambda: inbox(cluster).node, "a node looks there")
    return next(node for node in cluster.nodes if node.name == name)


def read(cluster: Cluster) -> list[str]:
    """What the jobs of all arrivals have read."""
    jobs = cluster.settled([a.job_id for a in arrivals(cluster) if a.job_id is not None])
    return sorted(cluster.store.results(job.id)["read"] for job in jobs)


def test_every_file_is_read_once_though_the_node_that_takes_them_is_killed(cluster: Cluster) -> None:
    # Given two nodes that see an inbox, which one of them looks into
    for name in ("oak", "ash"):
        cluster.start(name=name, app="inbox_app:app", lease_period_s=5.0)
    for node in cluster.nodes:
        node.joined()
    folder = cluster.place / "in"
    put(cluster, folder)
    first = server(cluster)
    # When files are dropped, and that node is killed while it takes them
    for number in range(60):
        (folder / f"{number:02}").write_text(f"{number:02}")
    until(lambda: len(arrivals(cluster)) >= 5, "some are taken")
    first.kill()
    # Then the other goes on, and each file is read by one job
    until(
        lambda: len([a for a in arrivals(cluster) if a.outcome is ArrivalOutcome.TAKEN]) == 60,
        "all are taken",
    )
    assert read(cluster) == [f"{number:02} on " for number in range(60)]
    assert len(cluster.store.jobs(Filter(), limit=100)) == 60
    assert list(folder.iterdir()) == []
    # also where the killed one had taken all of them
    until(lambda: inbox(cluster).node != first.name, "the other looks into it")


def test_a_scan_is_done_by_the_node_that_looks_there(receiving: Cluster) -> None:
    folder = receiving.place / "in"
    put(receiving, folder, rest_s=3600)
    (folder / "a").write_text("a")
    server(receiving)
    receiving.store.inboxes.scan("in", ANN, now_us=now_us())
    wake_local_nodes(receiving.run_dir)
    until(lambda: arrivals(receiving), "it is taken")
    until(lambda: inbox(receiving).scan_us is None, "the request is fulfilled")
    assert read(receiving) == ["a on "]


def test_a_node_that_an_operator_drains_leaves_its_inboxes_to_others(cluster: Cluster) -> None:
    for name in ("oak", "ash"):
        cluster.start(name=name, app="inbox_app:app")
    for node in cluster.nodes:
        node.joined()
    folder = cluster.place / "in"
    put(cluster, folder)
    first = server(cluster)
    cluster.store.fleet.drain(first.name, ANN, now_us=now_us())
    wake_local_nodes(cluster.run_dir)
    until(lambda: inbox(cluster).node not in (None, first.name), "the other one looks there")
    (folder / "a").write_text("a")
    until(lambda: arrivals(cluster), "it is taken")
    assert read(cluster) == ["a on "]


def test_no_folder_with_the_stores_own_files_is_an_inbox(receiving: Cluster) -> None:
    beside_the_store = Path(receiving.url.removeprefix("sqlite:///")).parent
    put(receiving, beside_the_store, rest_s=0)
    until(lambda: "Spinney's own files" in (inbox(receiving).problem or ""), "the problem is told")
    put(receiving, receiving.folders, rest_s=0)
    until(lambda: f"({receiving.folders})" in (inbox(receiving).problem or ""), "the problem is told")
    assert arrivals(receiving) == []


@contextlib.contextmanager
def _local(place: Path) -> Iterator[Cluster]:
    cluster = Cluster(place, local_folders=True)
    try:
        yield cluster
    finally:
        cluster.close()


def test_a_job_runs_on_the_host_that_took_its_file(tmp_path: Path) -> None:
    with _local(tmp_path) as cluster:
        # Given two hosts with folders of their own, of which only one is to look into the inbox
        for host in ("elm", "fir"):
            root = cluster.place / f"folders-{host}"
            root.mkdir()
            env = {"SPINNEY_TEST_HOST": host}
            cluster.start(name=host, host=host, folders=str(root), app="inbox_app:app", env=env)
        for node in cluster.nodes:
            node.joined()
        folder = cluster.place / "in"
        put(cluster, folder, host="fir")
        assert server(cluster).name == "fir"
        # When files are dropped
        for number in range(8):
            (folder / str(number)).write_text(str(number))
        until(
            lambda: len([a for a in arrivals(cluster) if a.outcome is ArrivalOutcome.TAKEN]) == 8,
            "all are taken",
        )
        # Then their jobs run there
        assert read(cluster) == [f"{number} on fir" for number in range(8)]


def test_a_node_leaves_an_inbox_whose_folder_is_gone_and_comes_back(cluster: Cluster) -> None:
    node = cluster.node(app="inbox_app:app")
    folder = cluster.place / "in"
    put(cluster, folder)
    server(cluster)
    folder.rmdir()
    until(lambda: inbox(cluster).node is None, "no node looks there")
    (violation,) = cluster.store.doctor.examine({"inbox-stuck"}, now_us=now_us())
    assert f"{folder} does not exist any more" in violation.sentence
    folder.mkdir()
    (folder / "a").write_text("a")
    until(lambda: arrivals(cluster), "it is taken")
    assert inbox(cluster).problem is None
    assert read(cluster) == ["a on "]
    assert "Traceback" not in node.stop()
    assert inbox(cluster).node is None


def test_two_hundred_uploads_at_once_are_each_taken(receiving: Cluster) -> None:
    folder = receiving.place / "in"
    folder.mkdir()
    for n in range(200):
        (folder / str(n)).write_text(str(n))
    put(receiving, folder, rest_s=0)
    until(
        lambda: len([a for a in arrivals(receiving) if a.outcome is ArrivalOutcome.TAKEN]) == 200,
        "all are taken",
    )
    assert len(set(read(receiving))) == 200
