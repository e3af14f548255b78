"""A whole node: what is submitted runs, in every isolation, and ends as its stage said."""

import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_fixtures import DEADLINE_S, Cluster, cluster, kept, lines, now_us, working

import job_verbs
from small_disk import small_disk
from spinney.folders import folders
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.store.sql import open_store
from waiting import until

__all__ = ["cluster", "kept", "working"]

SETTINGS = {"slots": 4}
"""Of the node that ``working`` has."""


@pytest.fixture
def neighbour(working: Cluster) -> Iterator[None]:
    """A job in another slot, from before an attempt is ended until after: it must end as if nothing had happened."""
    go, notes = working.file("neighbour's go"), working.file("neighbour's notes")
    (job_id,) = working.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "the neighbour runs")
    yield
    go.touch()
    assert working.settled([job_id])[0].state is State.COMPLETED
    assert [a.outcome for a in working.attempts(job_id)] == [Outcome.OK]


def test_small_jobs_travel_as_lists_and_all_complete(working: Cluster) -> None:
    # Given a node, and enough jobs for look-ahead, several lists and several transactions
    jobs = working.run("noop", *({"n": n} for n in range(1500)))
    # Then each has completed after exactly one attempt
    assert {j.state for j in jobs} == {State.COMPLETED}
    assert all(len(working.attempts(j.id)) == 1 for j in jobs[::100])


def test_every_isolation_runs(working: Cluster) -> None:
    pids = {}
    for kind in ("cold", "threaded", "flowing"):
        first, second = working.run(kind, {}, {})
        assert {first.state, second.state} == {State.COMPLETED}
        pids[kind] = [working.store.results(j.id)[kind] for j in (first, second)]
    # Cold stages never share a process; threads and coroutines share one.
    assert len(set(pids["cold"])) == 2
    assert len({*pids["threaded"], *pids["flowing"]}) == 1
    (job,) = working.run("shout")
    assert working.store.results(job.id)["shout"] == {"ok": True}


def test_a_low_soft_limit_of_open_files_limits_no_slots_and_stays_for_stages(cluster: Cluster) -> None:
    # Given a node whose soft limit of open files leaves room for few workers, as 1,024 does for some hundreds
    parent = (
        "import os, resource, sys\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (52, hard))\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    node = cluster.node(slots=8, parent=parent)
    # When there is work for all its slots
    place = {"place": str(cluster.place), "n": 8, "log": str(cluster.file("log"))}
    (job,) = cluster.run("meet", place)
    # Then all slots run at once, and what the stages run has the limit that the node was started with
    assert job.state is State.COMPLETED
    limits = [resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in node.workers()]
    assert {soft for soft, _ in limits} == {52}


def test_threads_fill_all_slots_at_once_without_a_worker_each(working: Cluster) -> None:
    jobs = working.run("threaded", *({"seconds": 1.0} for _ in range(4)))
    attempts = [working.attempts(j.id)[0] for j in jobs]
    assert max(a.started_us for a in attempts) < min(a.ended_us or 0 for a in attempts)
    assert len({working.store.results(j.id)["threaded"] for j in jobs}) == 1, "they share a process"


def test_slots_are_filled_with_workers_as_long_jobs_ask_for_them(working: Cluster) -> None:
    go, notes = working.file("go"), working.file("notes")
    ids = working.submit("wait_for", *({"file": str(go), "note_in": str(notes)} for _ in range(4)))
    until(lambda: len(set(lines(notes))) == 4, "four at once in four processes")
    go.touch()
    assert {j.state for j in working.settled(ids)} == {State.COMPLETED}


def test_output_is_in_the_folder_when_the_job_is_recorded(working: Cluster) -> None:
    notes = working.file("notes")
    (job,) = working.run("shows_itself", {"note_in": str(notes), "seconds": 0})
    fence = lines(notes)[0]
    out = folders.path(working.folders, job.id) / folders.OWN / f"shows_itself.{fence}.stdout"
    assert out.read_text() == "hello from the stage\n"


@pytest.mark.parametrize("how", ["ends", "dies", "beside others"])
def test_lost_output_is_told_on_its_attempt(working: Cluster, how: str) -> None:
    (job,) = working.run(
        "loses_beside_others" if how == "beside others" else "loses", {"dies": how == "dies"}
    )
    assert job.state is (State.FAILED if how == "dies" else State.COMPLETED)
    (attempt,) = working.attempts(job.id)
    lost = "some of its output was lost (18 bytes: "
    assert (attempt.message or "").partition(lost)[0] == (
        "its worker was killed by SIGKILL (if memory ran out, 'dmesg' says so); " if how == "dies" else ""
    )
    assert lost in (attempt.message or "")
    # And what came after it is not
    (after,) = working.run("shows_itself", {"note_in": str(working.file("notes")), "seconds": 0})
    assert working.attempts(after.id)[0].message is None


def test_a_long_attempt_is_shown_as_running(working: Cluster) -> None:
    go, notes = working.file("go"), working.file("notes")
    (job_id,) = working.submit("wait_for", {"file": str(go), "note_in": str(notes)})
    until(lambda: working.store.job(job_id).state is State.RUNNING, "shown as running")
    go.touch()
    assert working.settled([job_id])[0].state is State.COMPLETED


def test_running_is_durable_before_user_code_where_a_second_run_is_forbidden(working: Cluster) -> None:
    go, notes = working.file("go"), working.file("notes")
    (job_id,) = working.submit("once", {"file": str(go), "note_in": str(notes)})
    until(lambda: lines(notes), "user code runs")
    assert working.store.job(job_id).state is State.RUNNING
    go.touch()
    working.settled([job_id])


@pytest.mark.usefixtures("neighbour")
def test_a_time_limit_ends_the_attempt_with_all_it_started(working: Cluster) -> None:
    notes = working.file("notes")
    (job,) = working.run("too_long", {"note_in": str(notes)})
    assert job.state is State.FAILED
    (attempt,) = working.attempts(job.id)
    assert attempt.outcome is Outcome.TIMEOUT
    assert "time limit of 0.3 s" in (attempt.message or "")
    for pid in lines(notes):  # the stubborn program, when it came so far
        assert int(pid) not in working.living()
    (after,) = working.run("noop")
    assert after.state is State.COMPLETED
    assert working.nodes[-1].process.poll() is None


@pytest.mark.usefixtures("neighbour")
def test_an_overdue_coroutine_ends_alone(working: Cluster) -> None:
    (other,) = working.submit("flowing", {"seconds": 1.0})
    (job,) = working.run("flowing_too_long")
    assert working.attempts(job.id)[0].outcome is Outcome.TIMEOUT
    working.settled([other])
    assert len(working.attempts(other)) == 1


@pytest.mark.usefixtures("neighbour")
def test_a_killed_worker_hits_its_attempt_alone(working: Cluster) -> None:
    others = working.submit("nap", *({} for _ in range(100)))
    (job,) = working.run("dies_once")
    assert job.state is State.COMPLETED
    first, second = working.attempts(job.id)
    assert (first.outcome, second.outcome) == (Outcome.DIED, Outcome.OK)
    assert "SIGKILL" in (first.message or "")
    assert {j.state for j in working.settled(others)} == {State.COMPLETED}
    assert all([a.outcome for a in working.attempts(o)] == [Outcome.OK] for o in others)


@pytest.mark.usefixtures("neighbour")
def test_a_job_that_kills_its_workers_is_failed_as_poison(working: Cluster) -> None:
    (job,) = working.run("always_dies")
    assert job.state is State.FAILED
    assert "poison" in (job.message or "")
    assert len(working.attempts(job.id)) == 3


@pytest.mark.usefixtures("neighbour")
def test_a_cancel_is_told_to_the_attempt_first(working: Cluster) -> None:
    notes = working.file("notes")
    (job_id,) = working.submit("polite", {"note_in": str(notes)})
    until(lambda: "begun" in lines(notes), "it runs")
    job_verbs.cancel(working.store, job_id, tree=False, by="test", reason=None, now_us=now_us())
    assert working.settled([job_id])[0].state is State.CANCELLED
    assert "saw the wish" in lines(notes)


@pytest.mark.usefixtures("neighbour")
def test_a_cancel_is_forced_on_an_attempt_that_does_not_listen(working: Cluster) -> None:
    notes = working.file("notes")
    (job_id,) = working.submit("deaf", {"note_in": str(notes)})
    until(lambda: lines(notes), "it runs")
    job_verbs.cancel(working.store, job_id, tree=False, by="test", reason=None, now_us=now_us())
    assert working.settled([job_id])[0].state is State.CANCELLED
    assert working.attempts(job_id)[0].outcome is Outcome.CANCELLED


def test_deferred_jobs_come_back_on_time(working: Cluster) -> None:
    (job,) = working.run("defers_once")
    deferred, passed = working.attempts(job.id)
    assert deferred.outcome is Outcome.DEFER
    assert passed.started_us - (deferred.ended_us or 0) >= 200_000
    assert passed.attempt == 1


def test_a_wait_that_cannot_be_kept_is_an_error_that_no_attempt_follows(working: Cluster) -> None:
    # Given a stage with attempts to spare, and waits without end or of more than a hundred years
    waits = {"inf": "inf", "-inf": "-inf", "nan": "nan", "1e12": "1000000000000.0"}
    # When attempts end with them
    jobs = working.run("defers_for", *({"seconds": s} for s in waits))
    # Then each job has failed at once, and says why and what to write
    for job, message in zip(jobs, waits.values(), strict=True):
        assert (job.state, job.message) == (
            State.FAILED,
            f"Defer says to wait {message} s; raise it with at most 3162240000 s",
        )
        assert [a.outcome for a in working.attempts(job.id)] == [Outcome.ERROR]


def test_the_handle_of_a_job_reaches_the_store(working: Cluster) -> None:
    (job,) = working.run("talks")
    assert working.store.results(job.id) == {"talks": [1, 1]}
    assert working.store.get_data(job.id) == {"seen": 1, "list": ["a"]}


def test_children_run_and_their_parent_waits_for_them(working: Cluster) -> None:
    (job,) = working.run("family", {"children": 30})
    assert job.state is State.COMPLETED
    assert {c.state for c in working.store.children(job.id)} == {State.COMPLETED}


def test_an_answer_that_is_too_long_for_a_message_is_an_error_of_its_attempt_alone(working: Cluster) -> None:
    # Given a job with more data than fit into one answer, when it asks for all of them
    (job,) = working.run("asks_for_all")
    # Then its attempt has the error, and says it
    assert job.state is State.FAILED
    assert "exceeds the limit" in (working.attempts(job.id)[-1].message or "")
    # And the node goes on
    assert working.run("noop")[0].state is State.COMPLETED
    assert working.nodes[-1].process.poll() is None


_FAULT = """
import sys
if "spinney.node.supervisor_main" in sys.orig_argv:
    from spinney.node.dispatch.assembly import DispatchAssembly
    async def _mark_started(self, fences):
        raise RuntimeError("a fault in a task beside")
    DispatchAssembly._mark_started = _mark_started
"""


def test_a_fault_in_a_task_beside_the_work_ends_the_node_with_its_reason(cluster: Cluster) -> None:
    # Given a node in which a task fails that shows long attempts as running
    cluster.file("sitecustomize.py").write_text(_FAULT)
    path = os.pathsep.join((str(cluster.place), os.environ.get("PYTHONPATH", "")))
    node = cluster.node(env={"PYTHONPATH": path})
    # When there is one
    cluster.submit("wait_for", {"file": str(cluster.file("go")), "note_in": str(cluster.file("notes"))})
    # Then the node ends its workers, says why, and ends itself, before the guard has to do it
    _, log = node.process.communicate(timeout=DEADLINE_S)
    assert node.process.returncode == 1
    assert "fault in spinney (RuntimeError: a fault in a task beside)" in log
    assert not cluster.living()


def test_a_node_takes_no_jobs_while_another_folder_is_in_the_place_of_its_root(cluster: Cluster) -> None:
    # Given a node whose folder root is a share that is not mounted any more
    node = cluster.node()
    away = cluster.folders.rename(cluster.file("away"))
    cluster.folders.mkdir()
    until(lambda: "it has no token" in (cluster.store.nodes()[0].trouble or ""), "it is degraded")

    # When a job comes, it waits, and nothing is written to the mount point
    jobs = cluster.submit("noop")
    beats = node.beats()
    until(lambda: node.beats() > beats + 5, "the node has had time to claim it")
    assert cluster.store.job(jobs[0]).state == State.PENDING
    assert list(cluster.folders.iterdir()) == []

    # Then it runs when the share is back
    cluster.folders.rmdir()
    away.rename(cluster.folders)
    assert [job.state for job in cluster.settled(jobs)] == [State.COMPLETED]


def test_a_node_takes_no_jobs_while_its_folder_root_is_read_only(cluster: Cluster, tmp_path: Path) -> None:
    # Given a node whose folder root turns read-only, as a file system does that finds an error
    with small_disk(cluster.folders, 4) as disk:
        folders.write_token(disk.folder, cluster.store.facts()["folder_token"])
        node = cluster.node()
        subprocess.run(["mount", "-o", "remount,ro", disk.folder], check=True)
        until(lambda: "is read-only" in (cluster.store.nodes()[0].trouble or ""), "it is degraded")

        # When a job comes, it waits for another node, or until the root can be written to
        (job_id,) = cluster.submit("noop")
        beats = node.beats()
        until(lambda: node.beats() > beats + 5, "the node has had time to claim it")
        assert cluster.store.job(job_id).state is State.PENDING
        subprocess.run(["mount", "-o", "remount,rw", disk.folder], check=True)
        assert cluster.settled([job_id])[0].state is State.COMPLETED
        node.stop()


def test_after_an_older_backup_was_restored_no_new_job_gets_the_folder_of_another(cluster: Cluster) -> None:
    # Given a backup of a store, and a job that ran after it
    file, backup = cluster.file("spinney.db"), cluster.file("backup.db")
    with (
        contextlib.closing(sqlite3.connect(file)) as source,
        contextlib.closing(sqlite3.connect(backup)) as copy,
    ):
        source.backup(copy)
    node = cluster.node()
    (lost,) = cluster.run("noop")
    (folders.make(cluster.folders, lost.id) / "result").write_text("of the lost job")
    node.stop()
    cluster.store.close()

    # When the backup is restored, and a node starts
    backup.rename(file)
    for suffix in ("-wal", "-shm"):
        cluster.file(f"spinney.db{suffix}").unlink(missing_ok=True)
    cluster.store = open_store(cluster.url)
    node = cluster.node()

    # Then the next job has a number and a folder of its own, and the log says why
    (job,) = cluster.run("noop")
    assert job.id == lost.id + 1
    log = node.stop()
    assert f"there is a folder of job {lost.id}, which the store does not have" in log
    node = cluster.node()
    assert "which the store does not have" not in node.stop()


def test_a_lock_lets_one_in_at_a_time(working: Cluster) -> None:
    notes = working.file("notes")
    jobs = working.run("locked", *({"place": "a", "note_in": str(notes)} for _ in range(4)))
    assert {j.state for j in jobs} == {State.COMPLETED}
    assert lines(notes) == ["in", "out"] * 4


def test_stages_follow_each_other(working: Cluster) -> None:
    log = working.file("log")
    jobs = working.run("stages", *({"log": str(log)} for _ in range(50)))
    assert {j.state for j in jobs} == {State.COMPLETED}
    for job in jobs:
        ran = [line.split()[1] for line in lines(log) if line.split()[0] == str(job.id)]
        assert ran == ["first", "second", "third"]


def test_workers_are_replaced_when_worn_and_ended_when_idle(cluster: Cluster) -> None:
    node = cluster.node(recycle_after_jobs=50, idle_end_s=0.3, slots=2)
    (before,) = node.workers()
    jobs = cluster.run("nap", *({} for _ in range(300)))
    assert {j.state for j in jobs} == {State.COMPLETED}
    until(lambda: before not in node.workers(), "the first worker has been replaced")
    until(lambda: len(node.workers()) <= 1, "idle workers end")


def test_a_worker_that_is_killed_while_it_is_idle_is_logged_and_replaced(cluster: Cluster) -> None:
    node = cluster.node(slots=1)
    (before,) = node.workers()
    os.kill(before, signal.SIGKILL)
    until(lambda: before not in node.workers(), "it has gone")

    (job,) = cluster.run("nap")

    assert job.state is State.COMPLETED
    assert "ended between attempts (SIGKILL); its log is " in node.stop()


@pytest.mark.parametrize(("waiting", "started"), [(0, 1), (1, 2)])
def test_workers_start_together_before_the_node_joins_where_jobs_are_waiting(
    cluster: Cluster, waiting: int, started: int
) -> None:
    # Given a store that knows the application, with jobs or without
    cluster.node().stop()
    ids = cluster.submit("nap", *[{}] * waiting) if waiting else []

    # When a node comes that may start two workers at a time
    node = cluster.node(slots=2, log_level="debug")
    for job_id in ids:
        assert cluster.settled([job_id])[0].state is State.COMPLETED
    before_it_joined = node.stop().partition("works slots=")[0]

    # Then it has started both while it waited for the first, or the first alone
    assert before_it_joined.count("started worker slot") == started


def test_a_node_whose_application_declares_nothing_says_so(cluster: Cluster) -> None:
    printed = cluster.node(app="empty_app:app").stop()

    assert "empty_app:app declares no job type, so this node runs nothing; import the modules" in printed


def test_workers_that_cannot_be_started_degrade_the_node_and_are_logged_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Given a node whose application breaks while it runs, so that no further worker can load it
    code, tries, log = tmp_path / "spoilt_app.py", cluster.file("tries"), tmp_path / "oak.log"
    good = (
        "from spinney import Spinney\napp = Spinney()\n@app.job(isolation='cold')\ndef cold() -> None: ...\n"
    )
    code.write_text(good)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    node = cluster.start(app="spoilt_app:app", env={"PYTHONPATH": path}, log=log).joined()
    code.write_text(f"open({str(tries)!r}, 'a').write('again\\n')\nraise OSError('spoilt')\n")
    # When a job needs a worker of its own, which is tried again and again
    (job,) = cluster.submit("cold")
    until(lambda: len(lines(tries)) > 2, "the start is tried again")
    # Then the node is degraded, and its log has the cause once
    until(lambda: (info := node.info()) is not None and info.trouble is not None, "it is degraded")
    assert "spoilt" in str(node.info())
    assert log.read_text().count("degraded: the node cannot start a worker: ") == 1
    assert log.read_text().count("OSError: spoilt") == 1
    # And when the application is mended, the job runs and the trouble is over
    code.write_text(good)
    assert [j.state for j in cluster.settled([job])] == [State.COMPLETED]
    until(lambda: (info := node.info()) is not None and info.trouble is None, "it is over")


_HURRIED = """
import sys
if "spinney.node.supervisor_main" in sys.orig_argv:
    from spinney.node.dispatch import worker_pool
    worker_pool.START_SLOW_S = worker_pool.ENDING_S = 0.2
"""


def test_a_worker_that_loads_the_application_for_long_is_told_and_keeps_no_jobs(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Given a node whose application waits for something when it is loaded, beside a job for a new worker
    code, gate, log = tmp_path / "gated_app.py", tmp_path / "gate", tmp_path / "oak.log"
    good = "from spinney import Spinney\napp = Spinney()\n@app.job\ndef noop() -> None: ...\n"
    code.write_text(good)
    cluster.file("sitecustomize.py").write_text(_HURRIED)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    node = cluster.node(app="gated_app:app", env={"PYTHONPATH": path}, log=log, log_level="debug", slots=1)
    os.mkfifo(gate)
    code.write_text(f"open({str(gate)!r}).close()\n{good}")
    (worker,) = node.workers()
    os.kill(worker, signal.SIGKILL)
    (job,) = cluster.submit("noop")
    # Then the node says which worker waits, and hands the job back
    until(lambda: (info := node.info()) is not None and "has been loading gated_app:app" in str(info), "told")
    until(lambda: "leases are taken back" in log.read_text(), "it is taken back")
    until(lambda: cluster.store.job(job).state is State.PENDING, "it is recorded")
    # And when the application is loaded, the job runs and the trouble is over
    gate.open("w").close()
    assert [j.state for j in cluster.settled([job])] == [State.COMPLETED]
    assert [attempt.outcome for attempt in cluster.attempts(job)] == ["ok"]
    until(lambda: (info := node.info()) is not None and info.trouble is None, "it is over")


def test_a_worker_that_does_not_exit_keeps_its_slot_only_for_a_while(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Given workers that serve one job each, and wait for ever when they end
    (tmp_path / "lingering_app.py").write_text(
        "import atexit, threading\nfrom spinney import Spinney\natexit.register(threading.Event().wait)\n"
        "app = Spinney()\n@app.job\ndef noop() -> None: ...\n"
    )
    cluster.file("sitecustomize.py").write_text(_HURRIED)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    log = tmp_path / "oak.log"
    cluster.node(app="lingering_app:app", env={"PYTHONPATH": path}, log=log, slots=1, recycle_after_jobs=1)
    # When one has run its job, then the log says why it is killed, and the only slot runs the next job
    assert cluster.run("noop")[0].state is State.COMPLETED
    until(lambda: "has not exited for 0.2 s after its end" in log.read_text(), "it is killed")
    assert cluster.run("noop")[0].state is State.COMPLETED


def test_a_job_that_needs_a_worker_of_its_own_runs_although_the_application_loads_slowly(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Given a node whose application takes longer to load than is usual
    cluster.file("sitecustomize.py").write_text(_HURRIED)
    (tmp_path / "slow_app.py").write_text(
        "import time\nfrom spinney import Spinney\ntime.sleep(0.6)\napp = Spinney()\n"
        "@app.job(isolation='cold')\ndef cold() -> None: ...\n"
    )
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    cluster.node(app="slow_app:app", env={"PYTHONPATH": path}, log=tmp_path / "oak.log")
    # When a job needs a worker that loads it once more
    (job,) = cluster.submit("cold")
    # Then the worker keeps the job: any other would load the application as long
    assert [j.state for j in cluster.settled([job])] == [State.COMPLETED]


def test_a_shared_worker_that_loads_the_application_for_long_keeps_no_jobs(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Given a node whose application waits for something when it is loaded anew, beside a job for its shared worker
    code, gate, log = tmp_path / "gated_app.py", tmp_path / "gate", tmp_path / "oak.log"
    good = "from spinney import Spinney\napp = Spinney()\n@app.job(isolation='thread')\ndef noop() -> None: ...\n"
    code.write_text(good)
    cluster.file("sitecustomize.py").write_text(_HURRIED)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    node = cluster.node(app="gated_app:app", env={"PYTHONPATH": path}, log=log, log_level="debug", slots=1)
    os.mkfifo(gate)
    code.write_text(f"open({str(gate)!r}).close()\n{good}")
    (job,) = cluster.submit("noop")
    # Then it hands the job back, and does not claim it again
    until(lambda: "leases are taken back" in log.read_text(), "it is taken back")
    until(lambda: cluster.store.job(job).state is State.PENDING, "it is recorded")
    beats = node.beats()
    until(lambda: node.beats() >= beats + 5, "it had occasions to claim it")
    assert log.read_text().count("leases are taken back") == 1
    # And when the application is loaded, this job and others run, all in that worker
    gate.open("w").close()
    assert [j.state for j in cluster.settled([job])] == [State.COMPLETED]
    assert [attempt.outcome for attempt in cluster.attempts(job)] == ["ok"]
    cluster.settled(cluster.submit("noop"))
    assert log.read_text().count("started worker concurrent.") == 1


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_an_application_that_leaves_no_file_to_be_opened_degrades_the_node(
    cluster: Cluster, tmp_path: Path, isolation: str
) -> None:
    # Given an application that uses up all descriptors when it is loaded anew
    code = tmp_path / "greedy_app.py"
    good = f"from spinney import Spinney\napp = Spinney()\n@app.job(isolation={isolation!r})\ndef noop() -> None: ...\n"
    code.write_text(good)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    node = cluster.node(app="greedy_app:app", env={"PYTHONPATH": path}, slots=1)
    code.write_text(f"{good}{_GREEDY}")
    # When a worker for a job is started
    (worker,) = node.workers()
    os.kill(worker, signal.SIGKILL)
    (job,) = cluster.submit("noop")
    # Then the node says what is wrong, and the job runs when that is mended
    until(lambda: (info := node.info()) is not None and "Too many open files" in str(info.trouble), "told")
    code.write_text(good)
    assert [j.state for j in cluster.settled([job])] == [State.COMPLETED]
    assert [attempt.outcome for attempt in cluster.attempts(job)] == ["ok"]


_GREEDY = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
kept = []
try:
    while True:
        kept.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
"""


def test_a_node_ends_when_its_run_time_directory_is_gone(cluster: Cluster) -> None:
    # Given a node whose run-time directory somebody removes, as logind does at the last logout
    folder = cluster.file("run")
    node = cluster.node(slots=2, run_dir=str(folder))
    cluster.run("nap")
    shutil.rmtree(folder)

    # When it has to start a second worker
    cluster.submit("nap", {"seconds": 600.0}, {"seconds": 600.0})
    _, log = node.process.communicate(timeout=DEADLINE_S)

    # Then it ends and says why, for systemd to start it again
    assert node.process.returncode == 1
    assert f"the run-time directory {folder} no longer exists" in log


def test_a_worker_that_keeps_too_much_memory_is_replaced_before_the_next_job(cluster: Cluster) -> None:
    # Given one worker, and a limit that its application alone does not reach
    node = cluster.node(slots=1, worker_memory_bytes=160 * 2**20)

    def pid_of(mebibytes: int, seconds: float = 0.0) -> int:
        (job,) = cluster.run("hoards", {"mebibytes": mebibytes, "seconds": seconds})
        assert job.state is State.COMPLETED
        pid = cluster.store.results(job.id)["hoards"]
        assert isinstance(pid, int)
        return pid

    # When it keeps little, it stays; what it keeps while it idles is looked at, too
    kept = {pid_of(0), pid_of(1), pid_of(200)}
    assert len(kept) == 1
    # Then it is replaced when it keeps much
    until(lambda: not kept & set(node.workers()), "the worker that keeps too much ends")
    assert pid_of(0) not in kept
    assert "Traceback" not in node.stop()


_IMPATIENCE = """
import sys
if "spinney.node.supervisor_main" in sys.orig_argv:
    from spinney.node.services.folders import folder_watch
    folder_watch.PATIENCE_S = 0.2
"""


def test_a_share_that_does_not_answer_is_told_and_keeps_the_node_from_jobs_and_not_from_its_end(
    cluster: Cluster,
) -> None:
    # Given a node whose folder root stops to answer: who opens this file waits for ever
    cluster.file("sitecustomize.py").write_text(_IMPATIENCE)
    path = os.pathsep.join((str(cluster.place), os.environ.get("PYTHONPATH", "")))
    node = cluster.node(env={"PYTHONPATH": path}, log=cluster.file("log"))
    os.mkfifo(cluster.file("silent"))
    cluster.file("silent").rename(cluster.folders / folders.TOKEN)
    # Then it says so, and takes no jobs
    until(lambda: f"{cluster.folders} does not answer" in cluster.file("log").read_text(), "it is told")
    (job_id,) = cluster.submit("noop")
    beats = node.beats()
    until(lambda: node.beats() > beats + 2, "it goes on")
    assert cluster.store.job(job_id).state is State.PENDING
    # And it ends when it is told to
    node.term()
    assert node.wait() == 0
    assert not cluster.living()
