"""The host of thread and async stages: many attempts at once, each told apart."""

import asyncio
import json
import os
import signal

import pytest
import pytest_asyncio
from executor_fixtures import alive, host, shared_host, signal_thread

from spinney.node.worker.loop_watch import BLOCKED_S, LOOK_S
from spinney.node.worker.running_attempt import LATE_S, RunningAttempt

__all__ = ["host", "shared_host"]


@pytest_asyncio.fixture(loop_scope="module")
async def worker(host):
    return host.keep(concurrent=True)


async def run(host, worker, stage, params="{}", *, fence=1):
    return await host.run(worker, stage, params, fence=fence, type_="many")


@pytest.mark.parametrize("stage", ["meets", "meets_async"])
async def test_many_run_at_once_and_what_they_print_is_told_apart(host, worker, stage):
    jobs, done = [(fence, json.dumps({"n": fence})) for fence in range(1, 9)], worker.page.done()
    host.give(worker, stage, *jobs, type_="many")
    await host.until(lambda: len(host.rows) == 8 and len(host.marked) == 8)
    for fence, _ in jobs:
        assert host.detail(fence) == {"outcome": "ok", "result": str(fence), "output": True}
        assert host.printed(fence).rstrip() == f"before {fence}\nafter {fence}"
    if stage == "meets":
        assert host.printed(3, "stderr") == "aside 3\n"
    assert worker.running() == []
    assert worker.page.done() - done == 8


async def test_what_loading_printed_is_in_the_workers_log(host, worker):
    await run(host, worker, "meets_async")
    await host.until(lambda: "loading prints" in worker.log_file.read_text())


async def test_what_goes_past_python_is_in_the_workers_log_and_the_job_says_so(host, worker):
    detail = await run(host, worker, "past_python")
    assert detail == {"outcome": "ok", "log": worker.log_file.name}
    await host.until(lambda: "past python" in worker.log_file.read_text())


@pytest.mark.parametrize("stage", ["thread_raises", "async_raises"])
async def test_what_a_stage_raises_is_its_outcome(host, worker, stage):
    kinds = {"plain": "error", "fail": "error", "defer": "defer", "warn": "warning", "exit": "error"}
    kinds["interrupt"] = "error"
    for fence, (kind, outcome) in enumerate(kinds.items(), 1):
        detail = await run(host, worker, stage, json.dumps({"kind": kind}), fence=fence)
        assert detail["outcome"] == outcome, kind
    assert worker.alive


@pytest.mark.parametrize(("kind", "outcome"), [("exit", "error"), ("interrupt", "error"), ("stop", None)])
async def test_a_subtask_that_would_end_the_event_loop_ends_no_more_than_its_attempt(
    host, worker, kind, outcome
):
    # Given a task beside it
    host.give(worker, "task_waits", (1, "{}"), type_="many")
    await host.until(lambda: host.printed(1))
    # When a subtask of another attempt calls exit, is interrupted or stops the loop
    detail = await run(host, worker, "subtask_raises", json.dumps({"kind": kind}), fence=2)
    # Then that attempt alone ends by it, and tasks run as before
    assert (detail and detail["outcome"]) == outcome
    assert await run(host, worker, "async_writes", fence=3) is None
    worker.request_cancel(1)
    await host.until(lambda: 1 in host.marked)
    assert host.printed(1) == "begun\ncleaned up\n"


@pytest.mark.parametrize(
    ("stage", "error"),
    [
        ("thread_breaks_the_clock", "ZeroDivisionError"),
        ("async_breaks_the_clock", "ZeroDivisionError"),
        ("closes_the_loops_descriptor", "Bad file descriptor"),
    ],
)
async def test_a_worker_in_which_an_attempt_can_no_longer_be_reported_ends(host, stage, error):
    worker = host.start(concurrent=True)
    host.give(worker, stage, (1, "{}"), type_="many")
    how = await host.ended(worker)
    assert (how.code, [running.fence for running in how.running]) == (1, [1])
    assert error in worker.log_file.read_text()


async def test_a_thread_hears_of_its_cancel(host, worker):
    host.give(worker, "thread_waits", (1, "{}"), (2, "{}"), type_="many")
    await host.until(lambda: host.printed(1) and host.printed(2))
    assert sorted(line.fence for line in worker.running()) == [1, 2]
    worker.request_cancel(2)
    await host.until(lambda: 2 in host.rows)
    assert host.detail(2)["result"] == '"heard"'
    assert [line.fence for line in worker.running()] == [1]


async def test_a_task_is_cancelled_and_cleans_up(host, worker):
    host.give(worker, "task_waits", (1, "{}"), (2, "{}"), type_="many")
    await host.until(lambda: host.printed(1) and host.printed(2))
    worker.request_cancel(1)
    await host.until(lambda: 1 in host.marked and 1 in host.rows)
    assert host.detail(1)["outcome"] == "cancelled"
    assert host.printed(1) == "begun\ncleaned up\n"
    assert ([line.fence for line in worker.running()], host.printed(2)) == ([2], "begun\n")


async def test_a_task_that_is_cancelled_before_it_has_begun_ends(host, worker, tmp_path):
    # Given a task that cannot begin, because another one holds the event loop up
    host.give(worker, "blocks", (1, json.dumps({"file": str(tmp_path / "go on")})), type_="many")
    await host.until(lambda: host.printed(1))
    host.give(worker, "task_waits", (2, "{}"), type_="many")
    # When it is cancelled, and the worker has heard of it
    worker.request_cancel(2)
    await run(host, worker, "thread_passes", fence=3)
    (tmp_path / "go on").touch()
    # Then it has ended as such
    await host.until(lambda: 2 in host.rows)
    assert host.detail(2)["outcome"] == "cancelled"
    assert host.printed(2) == ""


async def test_how_long_another_one_has_blocked_its_event_loop_is_told(host, worker, tmp_path):
    host.give(worker, "task_waits", (1, "{}"), type_="many")
    await host.until(lambda: host.printed(1))
    for fence in (2, 3):
        file = tmp_path / f"go on {fence}"
        host.give(worker, "blocks", (fence, json.dumps({"file": str(file)})), type_="many")
        await host.until(lambda fence=fence: host.printed(fence))
        await asyncio.sleep(2 * BLOCKED_S + 3 * LOOK_S)
        file.touch()
        await host.until(lambda fence=fence: fence in host.rows)
        assert "blocked" not in (host.detail(fence) or {})
    worker.request_cancel(1)
    await host.until(lambda: 1 in host.rows)
    seconds, who = host.detail(1)["blocked"]
    assert (seconds >= BLOCKED_S, who) == (True, "stage blocks of job 3")
    # Nothing of that stays with the next one
    assert (await run(host, worker, "meets_async", fence=4)) == {
        "outcome": "ok",
        "result": "0",
        "output": True,
    }


async def test_nobody_is_late_that_is_ended_with_the_worker_however_often_that_is_requested(host, tmp_path):
    # Given a task, and another one that blocks the event loop
    worker = host.start(concurrent=True)
    host.give(worker, "task_waits", (1, "{}"), type_="many")
    await host.until(lambda: host.printed(1))
    host.give(worker, "blocks", (2, json.dumps({"file": str(tmp_path / "go on")})), type_="many")
    await host.until(lambda: host.printed(2))
    # When the worker gets TERM twice, as from an operator and then from its node
    for fence in (3, 4):
        os.kill(worker.pid, signal.SIGTERM)
        host.give(worker, "thread_passes", (fence, "{}"), type_="many")
        await host.until(lambda fence=fence: fence in host.returned)  # the worker has got it
        await asyncio.sleep(2 * LATE_S)
    (tmp_path / "go on").touch()
    await host.until(lambda: {1, 2} <= set(host.rows))
    # Then no attempt is named whose own cancellation was requested
    assert host.blockers == []


@pytest.mark.parametrize(
    ("waited_s", "stopped", "late"), [(0.01, False, False), (0.2, False, True), (0.2, True, False)]
)
def test_a_cancellation_is_late_only_when_the_event_loop_has_had_time_for_it(waited_s, stopped, late):
    parts = dict.fromkeys(("assignment", "line", "port", "output", "started_us", "since_ns", "written_bytes"))
    attempt = RunningAttempt(**parts, stopped=stopped, cancel_requested_s=7.0)
    assert attempt.is_late(7.0 + waited_s) is late
    attempt.cancel_requested_s = None
    assert not attempt.is_late(7.0 + waited_s)


async def test_who_begins_while_another_one_blocks_the_event_loop_is_blocked_from_then_on(
    host, worker, tmp_path
):
    file = tmp_path / "go on"
    host.give(worker, "blocks", (1, json.dumps({"file": str(file)})), type_="many")
    await host.until(lambda: host.printed(1))
    others = range(2, 12)
    for fence in others:
        host.give(worker, "blocks", (fence, "{}"), type_="many")
        await asyncio.sleep(LOOK_S / 2)
    await asyncio.sleep(2 * BLOCKED_S)
    file.touch()
    await host.until(lambda: all(fence in host.rows for fence in others))
    blocked = [fence for fence in others if "blocked" in (host.detail(fence) or {})]
    assert blocked
    for fence in blocked:
        _, started_us, ended_us, *_ = host.rows[fence]
        seconds, _ = host.detail(fence)["blocked"]
        assert seconds <= (ended_us - started_us) / 1e6


async def test_a_wish_that_comes_when_the_stage_is_through_leaves_what_it_did(host, worker):
    assert await run(host, worker, "wishes_itself_gone_and_writes", fence=5) is None
    assert (host.folder(5) / "file").read_text() == "kept"


@pytest.mark.parametrize("how", ["returns", "awaits"])
async def test_a_fork_of_a_task_does_not_speak_for_the_worker(host, worker, how):
    assert (await run(host, worker, "forks", json.dumps({"how": how})))["result"] == "1"
    assert await run(host, worker, "blocks", fence=2) is None


async def test_what_has_ended_is_told_while_another_task_holds_the_event_loop_up(host, worker, tmp_path):
    host.give(worker, "blocks", (1, "{}"), (2, json.dumps({"file": str(tmp_path / "go on")})), type_="many")
    await host.until(lambda: 1 in host.rows)
    assert [line.fence for line in worker.running()] == [2]
    (tmp_path / "go on").touch()
    await host.until(lambda: 2 in host.rows)


async def test_what_has_ended_is_told_though_the_event_loop_is_held_up_to_the_end(host, worker, tmp_path):
    # Given a task that ended in the same turn of the event loop in which another one blocks it for good
    never = json.dumps({"file": str(tmp_path / "never")})
    host.give(worker, "blocks", (1, "{}"), (2, never), type_="many")
    await host.until(lambda: host.printed(2))
    assert [line.fence for line in worker.running()] == [2]
    # When the worker is ended, because that one does not hear
    killing = asyncio.ensure_future(worker.kill_attempt(20))
    # Then what had ended has been told before the worker is killed
    await host.until(lambda: 1 in host.rows)
    os.kill(worker.pid, signal.SIGKILL)
    await killing


async def test_a_task_that_cancels_itself_has_failed(host, worker):
    detail = await run(host, worker, "cancels_itself")
    assert detail["outcome"] == "error"
    assert "cancelled its own task" in detail["message"]


async def test_a_task_that_cancels_itself_last_has_returned_and_ends_no_other(host, worker):
    host.give(worker, "task_waits", (1, "{}"), type_="many")
    await host.until(lambda: host.printed(1))
    assert (await run(host, worker, "cancels_itself_last", fence=2))["result"] == "3"
    worker.request_cancel(1)
    await host.until(lambda: 1 in host.marked)
    assert host.printed(1) == "begun\ncleaned up\n"


async def test_the_handle_works_in_an_event_loop(host, worker):
    host.answers = {"get_data": {"a": 1}, "data_names": ["a"]}
    assert (await run(host, worker, "asks"))["result"] == '{"a":1}'


async def test_what_it_wrote_is_kept(host, worker):
    assert await run(host, worker, "async_writes", fence=5) is None
    assert (host.folder(5) / "file").read_text() == "kept"


async def test_processes_left_behind_are_ended_when_nothing_else_runs(host, worker, tmp_path):
    file = tmp_path / "pid"
    assert await run(host, worker, "thread_leaves", json.dumps({"file": str(file)})) is None
    assert not alive(int(file.read_text()))
    assert worker.alive


async def test_end_finishes_what_was_begun_and_hands_back_at_once_what_comes_later(host, worker):
    host.give(worker, "thread_waits", (1, "{}"), type_="many")
    await host.until(lambda: host.printed(1))
    worker.end()
    host.give(worker, "thread_passes", (2, "{}"), type_="many")
    await host.until(lambda: host.returned == [2])
    worker.request_cancel(1)
    assert (await host.ended(worker)).code == 0
    assert host.detail(1)["result"] == '"heard"'


async def test_a_thread_that_an_attempt_left_keeps_no_worker_from_its_end(host, worker):
    detail = await run(host, worker, "leaves_a_thread")
    worker.end()
    how = await host.ended(worker)
    assert (how.code, how.signal) == (0, None)
    assert (detail["outcome"], host.printed(1)) == ("ok", "left\n")


async def test_what_a_library_does_at_the_exit_of_a_worker_is_done(host, worker, tmp_path):
    await run(host, worker, "leaves_an_exporter", json.dumps({"file": str(tmp_path / "sent")}))
    worker.end()
    assert (await host.ended(worker)).code == 0
    assert (tmp_path / "sent").read_text() == "flushed"


async def test_term_stops_all_and_what_they_end_with_does_not_count(host, worker):
    host.give(worker, "thread_waits", (1, "{}"), type_="many")
    host.give(worker, "task_waits", (2, "{}"), type_="many")
    await host.until(lambda: host.printed(1) and host.printed(2))
    await worker.kill_attempt(20)
    how = await host.ended(worker)
    assert how.signal == "SIGTERM"
    assert how.running == ()
    assert [host.detail(fence)["outcome"] for fence in (1, 2)] == ["returned", "returned"]
    assert [host.printed(fence) for fence in (1, 2)] == ["begun\n", "begun\ncleaned up\n"]


async def test_term_is_heard_though_the_kernel_gives_it_to_another_thread(host, worker):
    """As it does when a signal is just pending for the main thread, which then goes on waiting for messages."""
    host.give(worker, "thread_waits", (1, "{}"), type_="many")
    host.give(worker, "task_waits", (2, "{}"), type_="many")
    await host.until(lambda: host.printed(1) and host.printed(2))
    signal_thread(worker.pid, signal.SIGTERM)
    assert (await host.ended(worker)).signal == "SIGTERM"
    assert host.printed(2) == "begun\ncleaned up\n"


async def test_what_was_printed_before_its_death_is_kept(host, worker):
    host.give(worker, "thread_waits", (1, "{}"), (2, "{}"), type_="many")
    await host.until(lambda: host.printed(1) and host.printed(2))
    os.kill(worker.pid, signal.SIGKILL)
    how = await host.ended(worker)
    assert (how.signal, sorted(line.fence for line in how.running)) == ("SIGKILL", [1, 2])
    assert (host.printed(1), host.printed(2)) == ("begun\n", "begun\n")


async def test_more_than_have_room_wait_and_are_handed_back_at_the_end(host, worker, monkeypatch):
    """Given a page of two lines, when five are given, then two run and the end hands back three."""
    from spinney.node.workers import child

    monkeypatch.setattr(child, "CONCURRENT_LINES", 2)
    small = host.start(concurrent=True)
    host.give(small, "thread_waits", *[(fence, "{}") for fence in range(1, 6)], type_="many")
    await host.until(lambda: len(small.running()) == 2)
    small.end()
    await host.until(lambda: len(host.returned) == 3)
    for line in small.running():
        small.request_cancel(line.fence)
    assert (await host.ended(small)).code == 0
    assert len(host.rows) == 2


async def test_where_no_more_threads_can_be_started_attempts_wait_for_a_free_one(host):
    """Given a worker that cannot start another thread, when more attempts come than it has threads, then it goes on,
    they run when a thread becomes free, and so does what an async stage leaves to a thread."""
    worker = host.start(concurrent=True)
    host.give(worker, "thread_exhausts", (1, "{}"), type_="many")
    await host.until(lambda: host.printed(1))
    host.folder(6).mkdir(parents=True)
    host.give(worker, "meets_async", (6, "{}"), type_="many")
    host.give(worker, "thread_waits", *[(fence, "{}") for fence in range(2, 6)], type_="many")
    await host.until(lambda: not worker.alive or {line.fence for line in worker.running()} >= {1, 2, 3, 4, 5})
    for fence in range(1, 6):
        worker.request_cancel(fence)
    await host.until(lambda: not worker.alive or len(host.rows) == 6)
    assert [host.detail(fence)["outcome"] for fence in range(1, 7)] == ["ok"] * 6


async def test_it_imports_no_database_and_no_command_line(host, worker):
    modules = json.loads((await run(host, worker, "thread_modules"))["result"])
    assert "spinney.node.worker.concurrent_worker" in modules
    assert not {"sqlalchemy", "alembic", "typer", "rich"} & set(modules)
