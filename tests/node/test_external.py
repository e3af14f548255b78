"""External stages on real nodes: they leave them alone, and look after the external workers that run them."""

import time

import pytest
from node_fixtures import Cluster, cluster, now_us

from explanations import explained
from spinney.commands.control import Control
from spinney.features.external.service import External
from spinney.model.errors import UsageError
from spinney.model.external import Settlement
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.node.settings import NodeSettings
from spinney.wakeup.local import wake_local_nodes
from waiting import until

__all__ = ["cluster"]

APP = "external_app:app"


def external(cluster: Cluster) -> External:
    return Control(
        store=cluster.store, clock=now_us, wake_nodes=lambda: wake_local_nodes(cluster.run_dir), by="ann"
    ).part(External)


def test_a_node_runs_what_stands_before_and_behind_an_external_stage_and_leaves_it_alone(
    cluster: Cluster,
) -> None:
    # Given a node with a job in its hands that comes to an external stage
    cluster.node(app=APP)
    (job_id,) = cluster.submit("talk", {"file": "a.wav", "language": "de"})
    until(lambda: cluster.store.job(job_id).stage == "listen", "the node has fetched it")
    why = explained(cluster.store, job_id, now_us())
    assert why.cause == "no external worker"

    # When an external worker joins, which is given it at once, although the node was there first and idle
    ear = external(cluster)
    external_worker = ear.join("ear", [("talk", "listen")], lease_s=60)
    (work,) = until(lambda: ear.claim(external_worker.key, seen=0).work, "it is claimed")
    assert (work.job_id, work.params, work.results) == (
        job_id,
        {"file": "a.wav", "language": "de"},
        {"fetch": 5},
    )
    ear.settle(external_worker.key, work.job_id, work.fence, Settlement(outcome=Outcome.OK, result="hello"))

    # Then the node goes on with it
    (job,) = cluster.settled([job_id])
    assert job.state is State.COMPLETED
    assert [(a.stage, a.node) for a in cluster.attempts(job_id)] == [
        ("fetch", "oak"),
        ("listen", "external:ear"),
        ("keep", "oak"),
    ]
    assert cluster.store.results(job_id)["keep"] == "5 hello"


def test_a_node_takes_back_what_a_silent_party_had_and_what_takes_too_long(cluster: Cluster) -> None:
    cluster.node(app=APP)
    silent_job, slow_job = cluster.submit("solo", {}, {})
    ear = external(cluster)
    silent = ear.join("silent", [("solo", "solo")], lease_s=2)
    slow = ear.join("slow", [("solo", "solo")], lease_s=600)
    begun = time.monotonic()
    assert [w.job_id for w in ear.claim(silent.key, seen=0).work] == [silent_job]
    assert [w.job_id for w in ear.claim(slow.key, seen=0).work] == [slow_job]

    # The time limit counts although the slow one may be silent for long
    until(lambda: cluster.store.job(slow_job).state is State.FAILED, "it exceeds its time limit")
    assert time.monotonic() - begun >= 2
    assert cluster.attempts(slow_job)[-1].outcome is Outcome.TIMEOUT
    until(
        lambda: not [p for p in cluster.store.external_workers.all() if p.name == "silent"],
        "the silent external worker has left",
    )
    assert [p.name for p in cluster.store.external_workers.all()] == ["slow"]


def test_no_node_is_called_as_parties_are() -> None:
    with pytest.raises(UsageError, match="begins the names of external workers"):
        NodeSettings(store="sqlite:///x.db", app="a:b", folders="f", name="external:ear")
