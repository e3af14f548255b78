"""The guard: whatever happens to whom, nothing of a node outlives it."""

import contextlib
import fcntl
import os
import signal
import time
from pathlib import Path

import pytest
from node_fixtures import DEADLINE_S, Cluster, cluster, lines, now_us

from spinney.model.errors import UsageError
from spinney.model.states import State
from spinney.node import supervisor
from spinney.node.lifecycle.deadline import Deadline
from spinney.node.settings import NodeSettings
from waiting import until

__all__ = ["cluster"]


def _stubborn_work(cluster: Cluster) -> list[int]:
    """Jobs that run, with programs below them that ignore TERM and have left session and parent."""
    log, stubborn = cluster.file("log"), cluster.file("stubborn")
    ids = cluster.submit(
        "stages", *({"log": str(log), "seconds": 3600.0, "stubborn": str(stubborn)} for _ in range(2))
    )
    until(lambda: len(lines(stubborn)) == 2, "programs that have detached themselves")
    return ids


def test_a_killed_supervisor_takes_everything_with_it(cluster: Cluster) -> None:
    # Given a node that runs programs which nobody's death and no TERM impresses
    node = cluster.node()
    _stubborn_work(cluster)
    assert len(cluster.living()) > 4
    # When its supervisor is killed
    os.kill(node.supervisor(), signal.SIGKILL)
    # Then the guard ends everything and itself
    assert node.wait() == 1
    assert not cluster.living()
    # And it says how it is started again
    assert node.process.stderr is not None
    assert (
        f"Start it again: spinney node node_app:app --name oak --store {cluster.url} "
        in node.process.stderr.read()
    )


def test_a_supervisor_killed_by_a_signal_without_a_name_is_reported_by_its_number(cluster: Cluster) -> None:
    node = cluster.node()
    os.kill(node.supervisor(), 40)
    _, log = node.process.communicate(timeout=DEADLINE_S)
    assert node.process.returncode == 1
    assert "the supervisor died of signal 40; ending everything" in log
    assert "Traceback" not in log
    assert not cluster.living()


def test_a_supervisor_that_stands_still_is_ended_within_its_lease(cluster: Cluster) -> None:
    node = cluster.node(lease_period_s=1.5)
    _stubborn_work(cluster)
    os.kill(node.supervisor(), signal.SIGSTOP)
    assert node.wait() == 1
    assert not cluster.living()


@pytest.mark.parametrize("killed", [False, True], ids=["late", "killed"])
def test_a_node_that_stood_still_says_so_when_it_is_continued(cluster: Cluster, killed: bool) -> None:
    """A suspended machine, say. Another node of its host may have killed what was left of it."""
    node = cluster.node(lease_period_s=1.5)
    supervisor = node.supervisor()
    for pid in (supervisor, node.process.pid):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2.5)  # longer than the lease, and than a guard that runs takes from one look to the next
    if killed:
        os.kill(supervisor, signal.SIGKILL)
        process = Path(f"/proc/{supervisor}")
        # It can be reaped when its main thread is a zombie and its other threads are gone.
        until(
            lambda: (
                "State:\tZ" in (process / "status").read_text()
                and len(list((process / "task").iterdir())) == 1
            ),
            "the supervisor is dead",
        )
    os.kill(node.process.pid, signal.SIGCONT)
    _, log = node.process.communicate(timeout=DEADLINE_S)
    assert node.process.returncode == 1
    cause = "the supervisor died of SIGKILL" if killed else "the supervisor has not renewed its lease in time"
    assert f"{cause}, because this node stood still for " in log


def test_a_node_that_was_declared_dead_stops_at_once(cluster: Cluster) -> None:
    node = cluster.node(lease_period_s=60.0)
    _stubborn_work(cluster)
    info = node.info()
    assert info is not None
    cluster.store.recover(info.id, None, now_us=now_us())
    _, log = node.process.communicate(timeout=30)
    assert node.process.returncode == 1
    assert (
        "this node was declared dead; its jobs go on at other nodes, or here when it is started again" in log
    )
    assert log.splitlines()[-1].startswith("spinney: node oak has ended by itself, for the reason above; ")
    assert not cluster.living()


@pytest.mark.parametrize("fault", ["late", "guard killed", "declared dead"])
def test_a_log_that_nobody_reads_keeps_no_node_from_ending_its_attempts(
    cluster: Cluster, tmp_path: Path, fault: str
) -> None:
    """As of a terminal that is stopped by Ctrl-S, or a log collector that hangs."""
    unread = tmp_path / "log"
    os.mkfifo(unread)
    reader = os.open(unread, os.O_RDONLY | os.O_NONBLOCK)
    node = cluster.start(log=unread, lease_period_s=1.5 if fault == "late" else 60.0).joined()
    _stubborn_work(cluster)
    _fill(unread)
    if fault == "late":
        os.kill(node.supervisor(), signal.SIGSTOP)
    elif fault == "guard killed":
        node.kill()
    else:
        cluster.store.recover(node.info().id, None, now_us=now_us())  # type: ignore[union-attr]
    until(lambda: not cluster.living(), "everything has ended")
    os.close(reader)


def _fill(pipe: Path) -> None:
    """Leave no room in a pipe."""
    writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, b"\n"):
            pass
    os.close(writer)


def test_what_died_with_its_node_goes_on_in_the_next_and_what_may_not_run_twice_is_orphaned(
    cluster: Cluster,
) -> None:
    """However the supervisor's last moments interleave with the deaths of its workers: none is forgotten or blamed."""
    # Given a node with a lease that would last for long, and work of every kind
    node = cluster.node(slots=8, lease_period_s=600)
    _stubborn_work(cluster)
    go, notes, once = cluster.file("go"), cluster.file("notes"), cluster.file("once")
    jobs = cluster.submit("wait_for", *[{"file": str(go), "note_in": str(notes)}] * 5)
    (job_id,) = cluster.submit("once", {"file": str(go), "note_in": str(once)})
    until(lambda: (len(lines(notes)), len(lines(once))) == (5, 1), "all run")
    # When its guard is killed, everything ends, programs that have detached themselves, too
    node.kill()
    until(lambda: not cluster.living(), "everything has ended")
    # Then another of its name succeeds it at once
    go.touch()
    cluster.node(slots=8, lease_period_s=600)
    assert {job.state for job in cluster.settled(jobs)} == {State.COMPLETED}
    assert [[a.outcome for a in cluster.attempts(job)] for job in jobs] == [["lost", "ok"]] * 5
    assert cluster.settled([job_id])[0].state is State.ORPHANED
    assert len(lines(once)) == 1


def test_an_application_that_cannot_be_loaded_is_one_sentence(cluster: Cluster) -> None:
    node = cluster.start(app="no_such_module:app")
    _, log = node.process.communicate(timeout=30)
    assert node.process.returncode == 2
    assert "there is no module 'no_such_module'" in log
    assert "cannot start a worker" not in log
    assert "Traceback" not in log
    assert not cluster.living()
    assert not list(cluster.run_dir.glob("node-*.lock"))


def test_a_limit_of_open_files_that_is_too_low_for_a_node_is_named(cluster: Cluster) -> None:
    parent = (
        "import os, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    node = cluster.start(parent=parent)
    _, log = node.process.communicate(timeout=30)
    assert node.process.returncode == 2
    assert "a node may have 30 files open here, and it needs at least 64; raise the hard limit" in log


def test_an_application_whose_code_names_another_store_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "elsewhere_app.py").write_text(
        "from spinney import Spinney\n"
        f"same = Spinney('sqlite:///{cluster.place}/../{cluster.place.name}/spinney.db')\n"
        "other = Spinney('postgresql://me:secret@db.example.org/jobs')\n"
    )
    env = {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    node = cluster.start(app="elsewhere_app:other", env=env)
    _, log = node.process.communicate(timeout=30)
    assert node.process.returncode == 2
    assert (
        "elsewhere_app:other names the store postgresql://me@db.example.org/jobs in its code, but this node works on "
        f"{cluster.url}; start it with --store postgresql://me@db.example.org/jobs, or leave the store out of the code"
    ) in log
    assert "Traceback" not in log
    cluster.node(app="elsewhere_app:same", env=env)


def test_a_server_that_the_code_names_in_another_way_is_noted_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = NodeSettings(store="postgresql://127.0.0.1/jobs", app="a:b", folders="x")

    supervisor._require_own_store(settings, "postgresql://me:secret@127.0.0.1:5432/jobs")
    assert not caplog.messages

    supervisor._require_own_store(settings, "postgresql://me:secret@localhost/jobs")
    (message,) = caplog.messages
    assert message.startswith("a:b names the store postgresql://me@localhost/jobs in its code, but this node")

    with pytest.raises(UsageError, match="leave the store out of the code"):
        supervisor._require_own_store(settings, "sqlite:///jobs.db")


def test_a_store_that_is_not_there_is_one_sentence(cluster: Cluster) -> None:
    cluster.url = f"sqlite:///{cluster.place / 'nowhere.db'}"
    node = cluster.start()
    _, log = node.process.communicate(timeout=30)
    assert node.process.returncode == 1
    assert "spinney init" in log
    assert "Traceback" not in log


def test_deadline_is_seen_by_both_ends() -> None:
    guard = Deadline.make()
    supervisor = Deadline(os.dup(guard.fd))
    assert not guard.holds
    assert not guard.passed(10**18)
    supervisor.renew(100)
    assert guard.holds
    assert not guard.passed(100)
    assert guard.passed(101)


def test_a_supervisor_that_leaves_while_the_guard_looks_is_not_late(monkeypatch):
    deadline = Deadline.make()
    reads = iter([10**12, 0])  # the lease, and what leaving makes of it
    monkeypatch.setattr(deadline, "_until", lambda: next(reads))
    assert not deadline.passed(5)
