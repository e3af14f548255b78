"""On a real node: what a stage submits is there when, and only when, the stage is recorded as passed."""

import os
import signal

from node_fixtures import Cluster, cluster, kept, lines, working

from long_tests import long_alone
from spinney.model.jobs import Filter
from spinney.model.states import State
from waiting import until

__all__ = ["cluster", "kept", "working"]

APP = "sending_app:app"
SETTINGS = {"app": APP}
"""Of the node that ``working`` has."""


def _mails(cluster: Cluster, after: int = 0) -> list[int]:
    """Those that are younger than that job."""
    return [job.id for job in cluster.store.jobs(Filter(type="mail"), after=after, limit=10_000)]


def test_what_a_stage_submits_runs_and_is_nobodys_child(working: Cluster) -> None:
    (job,) = working.run("report", {"mails": 1200}, collection="alpha", submitter="ann")

    ids = _mails(working, job.id)
    assert job.state is State.COMPLETED
    assert len(ids) == 1200
    mails = working.settled(ids)
    assert {(m.state, m.queue, m.collection, m.submitter, m.share) for m in mails} == {
        (State.COMPLETED, "mail", "alpha", "ann", str(ids[0]))
    }
    assert all(m.parent_id is None for m in mails)


@long_alone
def test_of_a_node_killed_between_a_stages_end_and_its_record_nothing_is_left(cluster: Cluster) -> None:
    # Given a stage that has submitted and comes to its end, on a node that is frozen before it can record that
    node = cluster.node(app=APP, name="oak")
    notes, go = cluster.file("notes"), cluster.file("go")
    (job_id,) = cluster.submit("report", {"mails": 1200, "note_in": str(notes), "wait_for": str(go)})
    until(lambda: lines(notes) == ["submitted"], "it has submitted")
    supervisor = node.supervisor()
    os.kill(supervisor, signal.SIGSTOP)
    go.touch()
    until(lambda: lines(notes) == ["submitted", "ends"], "the stage has ended")
    # When the node is killed
    os.kill(supervisor, signal.SIGKILL)
    node.wait()
    # Then nobody sees anything of what it submitted
    assert _mails(cluster) == []
    # And when another runs the stage again, all are there once
    cluster.node(app=APP, name="oak")
    assert cluster.settled([job_id])[0].state is State.COMPLETED
    assert lines(notes) == ["submitted", "ends"] * 2
    ids = until(lambda: len(mails := _mails(cluster)) >= 1200 and mails, "they are born")
    assert [cluster.store.job(i).params["n"] for i in ids] == list(range(1200))
    assert len(cluster.settled(ids)) == 1200


def test_one_with_a_key_outlives_the_attempt_and_is_submitted_once(working: Cluster) -> None:
    (job,) = working.run("keyed", {})

    assert job.state is State.COMPLETED
    assert len(working.attempts(job.id)) == 2
    (sent,) = _mails(working, job.id)
    assert working.store.get_data(job.id)["sent"] == [sent, sent]
    assert working.settled([sent])[0].state is State.COMPLETED


def test_a_stage_sets_the_priority_of_its_job_and_of_what_it_spawns(working: Cluster) -> None:
    (job,) = working.run("tree", {})

    (child,) = working.store.children(job.id)
    assert (job.state, job.priority, child.priority) == (State.COMPLETED, 5, 5)
