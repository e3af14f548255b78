"""Queues set while real nodes work: on two nodes over PostgreSQL, and a node with a list of its own."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node_fixtures import Cluster, cluster, now_us

from long_tests import long_alone
from servers import postgres_schema
from spinney.model.operators.queues import QueueChange
from spinney.model.queue_selection import QueueSelection
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from waiting import until

__all__ = ["cluster"]

ANN = Actor(by="ann", call="c", reason="because")
"""Every node obeys within so long."""


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """On PostgreSQL: what the test sets reaches the nodes through the store alone, as from another host."""
    with postgres_schema() as url:
        # Only now: the private server has its own lock in the user's run-time directory.
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        cluster = Cluster(tmp_path, url)
        yield cluster
        cluster.close()


def change(cluster: Cluster, queue: str, **what: Any) -> int:
    """Returns when it is in force."""
    cluster.store.queue_admin.change(queue, QueueChange(**what), ANN, now_us=now_us())
    return now_us()


def occupied(cluster: Cluster) -> int:
    return cluster.store.queue_admin.get("q").running


def at_once(cluster: Cluster, ids: list[int], since_us: int, until_us: int) -> int:
    """The most that ran at one moment within that time."""
    ran = [a for i in ids for a in cluster.attempts(i) if a.started_us]
    ends = [(a.started_us, a.ended_us or now_us()) for a in ran]
    moments = [since_us, *(start for start, _ in ends if since_us <= start <= until_us)]
    return max(sum(start <= moment < end for start, end in ends) for moment in moments)


def test_a_limit_that_is_set_while_two_nodes_work_is_obeyed_by_both(apart: Cluster) -> None:
    for name in ("oak", "elm"):
        apart.node(name=name, slots=3)
    # More than are run before the test ends, of which the first are looked at.
    ids = apart.submit("nap", *[{"seconds": 0.06}] * 3000, queue="q")[:600]
    # Slots are occupied as soon as their workers are being started, which on a slow machine takes long.
    until(lambda: at_once(apart, ids[:200], 0, now_us()) > 2, "more than two workers have started")
    until(lambda: occupied(apart) == 6, "all slots work")

    change(apart, "q", set={"limit": 2})
    until(lambda: occupied(apart) <= 2, "it falls to the limit")
    fallen_us = now_us()
    end = time.monotonic() + 1.0
    seen = set()
    while time.monotonic() < end:
        seen.add(occupied(apart))
    raised_us = now_us()  # before: a third begins as soon as that is committed
    change(apart, "q", set={"limit": 5})
    until(lambda: occupied(apart) == 5, "more start")
    change(apart, "q", declared=("limit",))
    until(lambda: occupied(apart) == 6, "there is no limit any more")
    nodes = {a.node for i in ids for a in apart.attempts(i)}

    assert max(seen) == 2
    assert at_once(apart, ids, fallen_us, raised_us) <= 2
    assert nodes == {"oak", "elm"}


@long_alone
def test_a_queue_that_is_pinned_while_two_nodes_work_is_left_by_the_other(apart: Cluster) -> None:
    for name in ("oak", "elm"):
        apart.node(name=name, slots=2)
    before = apart.run("nap", *[{"seconds": 0.05}] * 20, queue="q")
    assert {job.node for job in before} == {"oak", "elm"}

    change(apart, "q", pin=("elm",))
    after = apart.run("nap", *[{"seconds": 0.05}] * 20, queue="q")

    assert {job.node for job in after} == {"elm"}


def test_a_node_serves_the_queues_that_it_was_started_for_alone(cluster: Cluster) -> None:
    node = cluster.node(active=("q", "r"))
    info = node.info()
    assert info is not None
    assert info.serves == QueueSelection(active=("q", "r"))

    (other,) = cluster.submit("noop")
    (job,) = cluster.run("noop", queue="q")

    assert (job.state, job.node) == (State.COMPLETED, "oak")
    assert cluster.store.job(other).state is State.PENDING
    cluster.node(name="elm", ignored=("q",))
    assert cluster.settled([other])[0].node == "elm"
