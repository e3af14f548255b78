"""How nodes on PostgreSQL learn that there is work: by what is announced, and, when nothing is heard, by polling."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from node_fixtures import Cluster, lines, now_us

from servers import postgres_schema, postgres_url
from spinney.model.jobs import Submission
from spinney.model.states import State
from spinney.node.services.notifications import PAUSE_S
from waiting import until

NEVER_S = 3600.0
"""A pause between polls that no test outlasts: what is found then was heard of."""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with postgres_schema() as url:
        # Only now: the private server has its own lock in the user's run-time directory.
        (tmp_path / "runtime").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        made = Cluster(tmp_path, url)
        yield made
        made.close()


def elsewhere(cluster: Cluster, name: str) -> dict[str, Any]:
    """As if on another host: no datagram gets there."""
    return {"name": name, "run_dir": str(cluster.place / f"run-{name}")}


def submit(cluster: Cluster, type_: str, *params: dict[str, Any], **options: Any) -> list[int]:
    """Without waking anybody."""
    order = Submission(type=type_, params=[json.dumps(p) for p in params or ({},)], **options)
    return list(cluster.store.submit([order], now_us=now_us()).ids)


def ears(cluster: Cluster) -> list[int]:
    """The backends that listen to this store."""
    schema = cluster.url.rpartition("schema=")[2]
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        listeners = connection.execute(
            "select pid from pg_stat_activity where query = %s", (f'listen "spinney_{schema}"',)
        ).fetchall()
    return [pid for (pid,) in listeners]


def cut_off(pids: list[int]) -> None:
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(pid) from unnest(%s) as p(pid)", (pids,))


@contextmanager
def nobody_can_listen(cluster: Cluster) -> Iterator[list[int]]:
    """Every connection that listens is ended as soon as it is there; yields which."""
    over, ended = threading.Event(), []

    def run() -> None:
        while not over.wait(0.01):
            if pids := ears(cluster):
                cut_off(pids)
                ended.extend(pids)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ended
    finally:
        over.set()
        thread.join()


def test_a_node_that_does_not_poll_starts_what_is_announced_and_listens_again_when_it_was_cut_off(
    cluster: Cluster,
) -> None:
    node = cluster.node(poll_s=NEVER_S, **elsewhere(cluster, "oak"))
    before = until(lambda: ears(cluster), "it listens")

    ids = submit(cluster, "noop")
    cluster.store.notify()
    assert cluster.settled(ids)[0].state is State.COMPLETED

    # What was said while it was deaf is found when it listens again.
    ids = submit(cluster, "noop")
    cut_off(before)
    assert cluster.settled(ids)[0].state is State.COMPLETED
    assert set(until(lambda: ears(cluster), "it listens again")).isdisjoint(before)
    assert "polls" in node.stop()


def test_polling_alone_suffices(cluster: Cluster) -> None:
    cluster.node(**elsewhere(cluster, "oak"))
    with nobody_can_listen(cluster) as ended:
        until(lambda: ended, "it is cut off")
        for _ in range(3):
            ids = submit(cluster, "noop")
            assert cluster.settled(ids, PAUSE_S + 10)[0].state is State.COMPLETED


def test_a_node_alone_announces_nothing_and_wakes_others_for_children_that_it_has_no_slots_for(
    cluster: Cluster,
) -> None:
    # Given a node alone
    cluster.node(name="oak", slots=1)
    until(lambda: len(ears(cluster)) == 1, "the one listens")
    listener = cluster.store.listen()
    assert listener is not None
    # When it runs a parent and its child, then it tells nobody
    alone, log = cluster.place / "alone", cluster.file("log")
    alone.mkdir()
    cluster.run("meet", {"place": str(alone), "n": 1, "log": str(cluster.file("alone.log"))})
    cluster.store.notify("the end")
    heard: list[str] = []
    until(lambda: heard.extend(listener.poll()) or "the end" in heard, "the end is heard")
    assert heard == ["the end"]
    listener.close()
    # When there is another, and two children each of which waits for the other, so that no node can run both
    until(lambda: len(ears(cluster)) == 1, "nobody else listens")
    cluster.node(poll_s=NEVER_S, slots=1, **elsewhere(cluster, "elm"))
    until(lambda: len(ears(cluster)) == 2, "the other listens")
    ids = cluster.submit("meet", {"place": str(cluster.place), "n": 2, "log": str(log)})
    # Then that is woken
    assert cluster.settled(ids)[0].state is State.COMPLETED
    assert len(set(lines(log))) == 2
