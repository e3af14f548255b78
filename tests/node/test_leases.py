"""Every node is judged by its own lease, whoever looks; see ``spinney.node.lifecycle.recovery``."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from node_fixtures import NODE, Cluster, cluster, lines

from new_store import new_store
from spinney.model.errors import UsageError
from spinney.model.fleet import LEASE_MAX_S
from spinney.model.states import State
from spinney.node.lifecycle.recovery import LivenessWatch
from spinney.node.settings import NodeSettings
from spinney.store.sql import open_store
from waiting import until

__all__ = ["cluster"]

LONG = replace(NODE, id=2, name="elm", lease_s=60.0)


def test_a_node_is_dead_when_its_counter_stood_for_its_lease() -> None:
    watch = LivenessWatch()
    assert watch.look([NODE, LONG], 100.0, 100.0) == []
    assert watch.look([NODE, LONG], 115.0, 115.0) == []
    assert not watch.alive(NODE)
    assert watch.look([NODE, LONG], 115.1, 115.1) == [NODE]
    assert watch.look([LONG], 160.0, 160.0) == []
    assert watch.look([LONG], 160.1, 160.1) == [LONG]


def test_a_counter_that_moves_starts_the_period_anew() -> None:
    watch = LivenessWatch()
    watch.look([NODE], 100.0, 100.0)
    moved = replace(NODE, beat=8)
    assert watch.look([moved], 114.0, 114.0) == []
    assert watch.alive(moved)
    assert watch.look([moved], 128.0, 128.0) == []
    assert watch.look([moved], 129.1, 129.1) == [moved]


def test_a_node_of_an_older_version_is_judged_by_the_longest_lease() -> None:
    watch, older = LivenessWatch(), replace(NODE, lease_s=None)
    watch.look([older], 100.0, 100.0)
    assert watch.look([older], 100.0 + LEASE_MAX_S, 100.0 + LEASE_MAX_S) == []
    assert watch.look([older], 100.1 + LEASE_MAX_S, 100.1 + LEASE_MAX_S) == [older]


def test_an_observer_that_stood_still_between_question_and_answer_buries_nobody() -> None:
    watch = LivenessWatch()
    watch.look([NODE], 100.0, 100.0)
    # The answer of 101 is looked at only at 200: whether the node has beaten since, it does not say.
    assert watch.look([NODE], 101.0, 200.0) == []
    # And an answer that came late says only that the counter was new when it came, at the latest.
    moved = replace(NODE, beat=8)
    assert watch.look([moved], 201.0, 300.0) == []
    assert watch.look([moved], 314.0, 314.0) == []
    assert watch.look([moved], 315.1, 315.1) == [moved]


def test_two_incarnations_of_a_name_are_each_judged_by_the_lease_they_joined_with(tmp_path: Path) -> None:
    store = open_store(new_store(tmp_path / "spinney.db"))
    for lease_s in (60.0, 15.0):
        store.join(replace(NODE, lease_s=lease_s), now_us=1)
    watch = LivenessWatch()
    watch.look(store.nodes(), 0.0, 0.0)
    assert [node.lease_s for node in watch.look(store.nodes(), 15.1, 15.1)] == [15.0]
    assert [node.lease_s for node in watch.look(store.nodes(), 60.1, 60.1)] == [60.0, 15.0]
    store.close()


def test_no_lease_is_longer_than_others_wait_for_a_node_that_does_not_say_its_own() -> None:
    usual = {"store": "sqlite:////x.db", "app": "a:b", "folders": "x"}
    assert NodeSettings(**usual, lease_period_s=LEASE_MAX_S).lease_period_s == LEASE_MAX_S
    with pytest.raises(UsageError, match="it must be 3600 or less"):
        NodeSettings(**usual, lease_period_s=LEASE_MAX_S + 1)


def test_a_node_with_a_short_lease_leaves_one_with_a_long_lease_its_work(cluster: Cluster) -> None:
    """Promise 3, between nodes with different ``--lease``."""
    # Given a node of another host with a long lease, whose supervisor stands still while an attempt runs
    elm = cluster.node(name="elm", host="far", slots=1, lease_period_s=7.0, beat_s=0.1)
    go, notes = cluster.file("go"), cluster.file("notes")
    ids = cluster.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: len(lines(notes)) == 1, "it runs")
    oak = cluster.node(name="oak", slots=1, lease_period_s=4.0, beat_s=0.1)
    os.kill(elm.supervisor(), signal.SIGSTOP)
    # When a node with a short lease runs the job again
    until(lambda: len(lines(notes)) == 2, "it runs again")
    # Then the guard of the first had ended it, as its own lease says
    assert elm.process.poll() is not None
    go.touch()
    (job,) = cluster.settled(ids)
    assert (job.state, job.node) == (State.COMPLETED, "oak")
    oak.stop()
