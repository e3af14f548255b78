"""The doctor beside nodes: no false alarm while they work, and what becomes of one that is gone."""

import os
import signal
import time
from contextlib import suppress

import pytest
from node_fixtures import Cluster, cluster, now_us

from long_tests import long_alone
from spinney.commands.control import Control
from spinney.features.doctor.folder_check import FolderCheck
from spinney.features.doctor.service import Doctor
from spinney.model.errors import Refused
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.node.lifecycle import dead_nodes
from spinney.node.local_host import LocalHost
from spinney.store.sql import open_store
from waiting import until

__all__ = ["cluster"]

ANN = Actor(by="ann", call="c")
SLOW_RULES = {"database-damaged", "index-damaged", "audit-broken"}


@long_alone
def test_while_nodes_work_nothing_is_found(cluster: Cluster) -> None:
    nodes = [cluster.node(name=name, retention_s=0.1) for name in ("oak", "elm")]
    cluster.store.retention.set("noop", "completed", 0.0, ANN, now_us=now_us())
    files = FolderCheck(cluster.folders, cluster.store)
    rules = {c.rule for c in [*cluster.store.doctor.checks(), *files.checks()]} - SLOW_RULES
    log = str(cluster.file("log"))
    jobs = [
        *cluster.submit("noop", *({"n": n} for n in range(1_500))),
        *cluster.submit("family", *({"children": 20} for _ in range(20))),
        *cluster.submit("locked", *({"place": "here", "note_in": log} for _ in range(8))),
        *cluster.submit("stages", *({"log": log} for _ in range(30))),
        *cluster.submit("defers_once", *({} for _ in range(10))),
        *cluster.submit("shout", *({} for _ in range(10))),
    ]
    looked = 0
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        violations = [
            *cluster.store.doctor.examine(rules, now_us=now_us()),
            *files.examine(rules, now_us=now_us()),
        ]
        assert violations == []
        looked += 1
        counts = cluster.counts()
        if not set(counts) - {State.COMPLETED} and len(jobs) > sum(counts.values()):
            break
    else:
        pytest.fail(f"the work does not end: {cluster.counts()}")
    assert looked > 3
    for node in nodes:
        node.stop()
    assert list(cluster.store.doctor.examine(now_us=now_us())) == []


def test_a_node_that_lives_is_not_buried_though_it_does_not_beat(cluster: Cluster) -> None:
    node = cluster.node(lease_period_s=600.0)
    os.kill(node.supervisor(), signal.SIGSTOP)
    here = LocalHost.own(cluster.run_dir, cluster.folders)
    (info,) = cluster.store.nodes()

    with pytest.raises(Refused, match=f"node oak is alive on this host .its guard's pid is {node.pid}."):
        dead_nodes.require_not_running(here, info)


def test_the_work_of_a_node_that_was_killed_is_taken_back_without_another(cluster: Cluster) -> None:
    """Given a node that was killed with all it started, and no other; when somebody says that it is dead, then
    what had begun counts as lost, what had not goes back uncounted, and nothing of it runs any more."""
    log = str(cluster.file("log"))
    cluster.node(slots=1)
    node = cluster.nodes[0]
    (job,) = cluster.submit("stages", {"log": log, "seconds": 3600.0})
    until(lambda: cluster.store.job(job).state == State.RUNNING, "it runs")
    # All at once: a supervisor that saw its worker die would record it
    for how in (signal.SIGSTOP, signal.SIGKILL):
        for pid in cluster.living():
            with suppress(ProcessLookupError):
                os.kill(pid, how)
    until(lambda: node.process.poll() is not None and not cluster.living(), "all of it is gone")
    here = LocalHost.own(cluster.run_dir, cluster.folders)
    (info,) = cluster.store.nodes()
    until(lambda: here.proven_gone(info), "the kernel has taken its lock back, too")
    dead_nodes.require_not_running(here, info)
    an_hour_later = now_us() + 3_600_000_000
    control = Control(store=cluster.store, clock=lambda: an_hour_later, wake_nodes=lambda: None, by="ann")

    concerned = control.part(Doctor).recover_dead_node(
        "oak",
        lambda dead: dead_nodes.recover_dead_node(
            lambda: open_store(cluster.url), here, dead, lambda: an_hour_later
        ),
    )

    assert concerned == [job]
    assert cluster.store.job(job).state == State.PENDING
    assert [a.outcome for a in cluster.attempts(job)] == ["lost"]
    assert cluster.store.nodes() == []
    assert list(cluster.run_dir.glob("node-*")) == [], "nothing is left in the run-time directory"
    entries = [entry for entry, _ in cluster.store.audit.entries()]
    assert [(e.by, e.verb, e.count) for e in entries] == [("ann", "declare dead", 1)]
