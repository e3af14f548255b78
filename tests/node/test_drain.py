"""TERM drains; a second one stops at once."""

import os
import signal
from pathlib import Path

from node_fixtures import Cluster, cluster, lines

from spinney.model.states import State
from waiting import until

__all__ = ["cluster"]


def test_what_runs_may_finish_and_the_rest_goes_back_and_nothing_is_left(cluster: Cluster) -> None:
    # Given a node that runs one job and has look-ahead behind it
    node = cluster.node(slots=1)
    cluster.run("nap", *({} for _ in range(5)))  # so that run times are known
    go, notes = cluster.file("go"), cluster.file("notes")
    (running,) = cluster.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    behind = cluster.submit("nap", *({} for _ in range(50)))
    # When it is told to drain
    node.term()
    until(lambda: (info := node.info()) and info.state == "draining", "draining")
    # Then what runs ends well, and nothing else has used an attempt
    go.touch()
    assert node.wait() == 0
    assert cluster.store.job(running).state is State.COMPLETED
    left = [cluster.store.job(i) for i in behind]
    assert {j.state for j in left} == {State.PENDING}
    assert {j.attempts for j in left} == {0}
    # And of the node there is nothing any more
    assert not cluster.living()
    assert not cluster.store.nodes()
    kinds = {p.name.split("-")[0] for p in cluster.run_dir.iterdir()}
    assert kinds <= {"next.lock", "write.lock", "beats.lock", "start", "logs"}


def test_what_does_not_finish_in_time_is_handed_back_uncounted_or_orphaned_if_it_may_not_run_twice(
    cluster: Cluster,
) -> None:
    node = cluster.node(slots=3, drain_limit_s=0.2)
    notes = cluster.file("notes")
    endless = {"file": "/never", "note_in": str(notes)}
    ids = cluster.submit("wait_for", endless, endless)
    (once,) = cluster.submit("once", endless)
    until(lambda: len(lines(notes)) == 3, "all run")
    node.stop()
    for job in map(cluster.store.job, ids):
        assert (job.state, job.attempts, job.interruptions) == (State.PENDING, 0, 0)
    assert cluster.store.job(once).state is State.ORPHANED
    assert not cluster.living()


def test_two_terms_by_hand_are_two_however_close_they_come(cluster: Cluster) -> None:
    node = cluster.node(drain_limit_s=3600, log=cluster.file("log"))
    notes = cluster.file("notes")
    (job_id,) = cluster.submit("deaf", {"note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    # When a second TERM comes as soon as the guard has taken the first
    node.term()
    until(lambda: "SIGTERM: handed on" in cluster.file("log").read_text(), "the guard has the first")
    node.term()
    # Then it stops at once
    assert node.wait() == 1
    job = cluster.store.job(job_id)
    assert (job.state, job.attempts) == (State.PENDING, 0)
    assert not cluster.living()


_PARENT = """
import os, subprocess, sys, threading
from spinney.node.workers.proctree import die_with_parent
from spinney.node.lifecycle.guard import PARENT_GONE
us = os.getpid()
node = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: die_with_parent(us, PARENT_GONE))
for _ in range(8):
    threading.Thread(target=threading.Event().wait).start()
"""


def test_a_node_drains_once_when_its_parent_is_killed_with_all_its_threads(cluster: Cluster) -> None:
    # Given a node whose parent has many threads: the kernel signals the death of each
    node = cluster.start(parent=_PARENT, log=cluster.file("log"))
    until(cluster.store.nodes, "the node joins")
    go, notes = cluster.file("go"), cluster.file("notes")
    (job_id,) = cluster.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    # When the parent is killed
    node.kill()
    until(lambda: [n.state for n in cluster.store.nodes()] == ["draining"], "draining")
    go.touch()
    # Then what runs finishes
    until(lambda: not cluster.living(), "the node has left")
    assert cluster.store.job(job_id).state is State.COMPLETED
    assert [a.outcome for a in cluster.attempts(job_id)] == ["ok"]
    assert cluster.file("log").read_text().count("handed on") == 1


def test_a_second_term_stops_at_once(cluster: Cluster) -> None:
    node = cluster.node(drain_limit_s=3600)
    notes = cluster.file("notes")
    (job_id,) = cluster.submit("deaf", {"note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    node.term()
    until(lambda: (info := node.info()) and info.state == "draining", "draining")
    assert node.process.poll() is None
    node.process.send_signal(signal.SIGINT)
    assert node.wait() == 1
    job = cluster.store.job(job_id)
    assert (job.state, job.attempts) == (State.PENDING, 0)
    assert not cluster.living()


def test_a_drain_does_not_wait_for_a_worker_that_loads_the_application(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Given a worker that waits for something while it loads the application, and has a job
    code, gate, begun = tmp_path / "gated_app.py", tmp_path / "gate", tmp_path / "begun"
    good = "from spinney import Spinney\napp = Spinney()\n@app.job\ndef noop() -> None: ...\n"
    code.write_text(good)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    node = cluster.node(app="gated_app:app", env={"PYTHONPATH": path}, slots=1, drain_limit_s=3600)
    os.mkfifo(gate)
    code.write_text(f"open({str(begun)!r}, 'w').close()\nopen({str(gate)!r}).close()\n{good}")
    (worker,) = node.workers()
    os.kill(worker, signal.SIGKILL)
    (job,) = cluster.submit("noop")
    until(begun.exists, "another worker loads it")
    # When the node is told to drain
    node.term()
    # Then it ends, and the job is as if it had never left its queue
    assert node.wait() == 0
    assert (cluster.store.job(job).state, cluster.store.job(job).attempts) == (State.PENDING, 0)
    assert not cluster.living()


def test_a_node_told_to_end_before_it_joined_ends(cluster: Cluster) -> None:
    node = cluster.start()
    node.supervisor()
    node.term()
    node.wait()
    assert not cluster.living()
    assert not cluster.store.nodes()
