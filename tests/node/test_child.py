"""The supervisor's side: how workers are seen to die, and how they are ended."""

import asyncio
import gc
import json
import os
import signal
import sys
import weakref
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from executor_fixtures import alive, host, open_fds, shared_host, signal_thread

from spinney.node.workers import proctree
from spinney.node.workers.shared_page import read_running
from spinney.node.workers.stack_taker import StackTaker

__all__ = ["host", "shared_host"]


@pytest_asyncio.fixture(loop_scope="module")
async def worker(host):
    child = host.keep()
    await host.until(lambda: child.ready)
    return child


@pytest.mark.parametrize(
    ("how", "signal_name", "code", "cause"),
    [
        ("kill", "SIGKILL", None, "its worker was killed by SIGKILL (if memory ran out, 'dmesg' says so)"),
        ("segfault", "SIGSEGV", None, "its worker was killed by SIGSEGV"),
        ("realtime", "signal 40", None, "its worker was killed by signal 40"),
        ("exit", None, 5, "its worker exited with code 5"),
    ],
)
async def test_a_death_is_told_with_its_cause_and_whom_it_hit(host, worker, how, signal_name, code, cause):
    host.give(worker, "noop", (1, "{}"), (2, "{}"))
    host.give(worker, "dies", (3, json.dumps({"how": how})), (4, "{}"))
    end = await host.ended(worker)
    assert (end.signal, end.code, end.forced) == (signal_name, code, False)
    assert str(end) == cause
    assert [line.fence for line in end.running] == list(read_running(worker._page_path)) == [3]
    assert set(host.rows) == {1, 2}, "what had ended is told before the death"
    assert host.printed(3) == "last words\n"
    assert not worker.alive
    assert worker.running() == []


async def test_a_death_while_idle_hits_nobody_and_no_other_worker(host, worker):
    other = host.start()
    await host.until(lambda: other.ready)
    os.kill(worker.pid, signal.SIGKILL)
    end = await host.ended(worker)
    assert (end.signal, end.running) == ("SIGKILL", ())
    assert await host.run(other, "noop") is None


async def test_what_a_dead_worker_left_is_ended_before_its_exit_is_told(host, worker, tmp_path):
    """Given a worker with a tree below that ignores TERM, when it is killed, then exit means that
    the tree is gone."""
    file = tmp_path / "pid"
    host.give(worker, "stubborn", (1, json.dumps({"file": str(file)})))
    await host.until(lambda: file.exists() and file.read_text())
    os.kill(worker.pid, signal.SIGKILL)
    await host.ended(worker)
    assert not alive(int(file.read_text()))
    assert proctree.children(os.getpid()) == []


async def test_term_is_heard_in_a_long_sleep_though_the_kernel_gives_it_to_another_thread(
    host, worker, tmp_path, monkeypatch
):
    file = tmp_path / "state"
    host.give(worker, "tidy_beside_a_thread", (1, json.dumps({"file": str(file)})))
    await host.until(lambda: file.exists() and file.read_text() == "begun")
    term = lambda procs, number: [signal_thread(proc.pid, number) for proc in procs]  # noqa: E731
    monkeypatch.setattr(proctree, "kill_all", term)
    await worker.kill_attempt(10)
    assert (await host.ended(worker)).signal == "SIGTERM"
    assert file.read_text() == "cleaned up"


async def test_what_ignores_term_is_killed_with_all_below_after_the_shortest_grace(host, worker, tmp_path):
    file = tmp_path / "pid"
    host.give(worker, "stubborn", (1, json.dumps({"file": str(file)})))
    await host.until(lambda: file.exists() and file.read_text())
    loop = asyncio.get_running_loop()
    begun = loop.time()
    patient = asyncio.create_task(worker.kill_attempt(60))
    await worker.kill_attempt(0.3)
    assert loop.time() - begun >= 0.3
    assert not alive(int(file.read_text()))
    assert (await host.ended(worker)).signal == "SIGKILL"
    await asyncio.wait_for(patient, 10)


async def test_ending_twice_or_too_late_is_harmless(host, worker):
    await worker.kill_attempt(5)
    await worker.kill_attempt(5)
    worker.recall()
    worker.end()
    worker.send_run([])
    assert (await host.ended(worker)).signal == "SIGTERM"
    assert list(host.exits) == [worker.name]


async def test_a_worker_can_be_ended_before_it_is_ready(host):
    child = host.start()
    await child.kill_attempt(10)
    await host.ended(child)


async def test_a_python_that_is_not_there_is_an_error_and_leaves_nothing_open_and_no_page(host, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    before, pages = open_fds(), set(host.place.glob("*.page"))
    with pytest.raises(FileNotFoundError):
        host.start()
    assert open_fds() == before
    assert set(host.place.glob("*.page")) == pages


async def test_workers_leave_no_descriptors_behind(host, worker):
    await worker.kill_attempt(5)
    await host.ended(worker)
    before = open_fds()
    child = host.start()
    await host.until(lambda: child.ready)
    await child.kill_attempt(5)
    await host.ended(child)
    child.page.close()
    assert open_fds() == before
    assert host.pids == set()


async def test_memory_is_told(host, worker):
    await host.run(worker, "noop")
    assert 5_000_000 < worker.rss_bytes < 500_000_000


async def test_when_memory_runs_out_the_kernel_ends_workers_before_their_supervisor(host, worker):
    own, of_worker = _oom_score("self"), _oom_score(worker.pid)
    assert of_worker == min(own + proctree.OOM_MORE, 1000)


def _oom_score(pid):
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


async def test_the_nodes_lock_is_inherited_by_workers_and_programs(host, tmp_path):
    """Given a lock file, when a worker runs a program, then both hold it."""
    lock_fd = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    worker = host.start(lock_fd=lock_fd)
    detail = await host.run(worker, "fds", type_="program")
    os.close(lock_fd)
    assert str(tmp_path / "lock") in json.loads(detail["result"])
    open_files = psutil.Process(worker.pid).open_files()
    assert str(tmp_path / "lock") in [file.path for file in open_files]


async def test_a_failure_to_report_its_end_is_a_failure_of_the_task_that_its_owner_watches(host, monkeypatch):
    """Given a worker whose remaining processes cannot be listed, when it dies, then the error is raised in a task that
    its owner has started, and is not lost."""
    started: list[asyncio.Future[None]] = []
    child = host.start(start_task=lambda work: started.append(asyncio.ensure_future(work)))

    def fails(live_pids):
        raise OSError("no list")

    monkeypatch.setattr(proctree, "reap_strays", fails)
    os.kill(child.pid, signal.SIGKILL)
    await host.until(lambda: started)
    with pytest.raises(OSError, match="no list"):
        await started[0]
    host.children.remove(child)  # its end is never reported
    await asyncio.wrap_future(host.pump.remove(child.name))


async def test_a_long_list_is_taken_although_the_worker_reads_slowly(host):
    child = host.keep()
    params = json.dumps({"text": "x" * 10_000})
    for start in range(1, 400, 20):
        host.give(child, "value_of", *[(fence, params) for fence in range(start, start + 20)])
    await host.until(lambda: len(host.rows) == 400)
    assert list(host.rows) == list(range(1, 401))


async def test_a_worker_that_talks_nonsense_is_ended(host, worker):
    """Given bytes that are no message from a worker, then it is killed rather than believed."""
    host.give(worker, "talks_nonsense", (1, "{}"))
    end = await host.ended(worker)
    assert (end.signal, [line.fence for line in end.running]) == ("SIGKILL", [1])


async def test_term_lets_user_code_clean_up_and_rows_kept_back_are_told(host, worker, tmp_path, monkeypatch):
    """Given quick attempts before a long one, when TERM comes before they were fetched, then the worker's last words
    are their rows, and the long one has cleaned up and is told to have been running."""
    monkeypatch.setattr(worker, "_look_later", lambda: None)
    file = tmp_path / "state"
    quick = [[f, f, 1, "{}", None, f] for f in range(1, 4)]
    long = [9, 9, 1, json.dumps({"file": str(file)}), None, 9]
    worker.send_run([("sample", "noop", quick), ("sample", "tidy", [long])])
    await host.until(lambda: file.exists() and file.read_text() == "begun")
    assert set(host.rows) <= {
        1,
        2,
        3,
    }  # an attempt that took a millisecond sends its row at once
    await worker.kill_attempt(20)
    end = await host.ended(worker)
    assert file.read_text() == "cleaned up"
    assert (end.signal, end.forced) == ("SIGTERM", True)
    assert set(host.rows) == {1, 2, 3}
    assert [line.fence for line in end.running] == [9]


async def test_a_worker_that_is_ended_after_its_stacks_were_taken_is_forgotten(host):
    """Given a worker whose stacks were taken while it ran, as before a time limit ends it, when it has ended, then
    nothing keeps it in memory."""
    child = host.start()
    tasks: list[asyncio.Future[None]] = []
    taker = StackTaker(host.root, lambda work: tasks.append(asyncio.ensure_future(work)))
    host.give(child, "tidy", (1, json.dumps({"file": str(host.place / "state")})))
    await host.until(child.running)
    taker.begin(child, 1, "tidy", 1, "stack_timeout")
    await tasks.pop()
    await child.kill_attempt(0)
    await host.ended(child)
    host.children.remove(child)
    child.page.close()
    reference = weakref.ref(child)
    del child
    gc.collect()
    assert reference() is None
