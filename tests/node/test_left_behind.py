"""What an attempt changes of its worker: the next one finds it as it was, or another worker."""

import json
import os

import pytest
import pytest_asyncio
from executor_fixtures import host, shared_host

from spinney.node.workers import proctree

__all__ = ["host", "shared_host"]


@pytest_asyncio.fixture(loop_scope="module")
async def worker(host):
    return host.keep()


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
CHANGES = [
    "umask",
    "environment",
    "environment replaced",
    "environment of programs",
    "time zone",
    "limits",
    "recursion limit",
    "handler",
    "mask",
    "alarm",
    "wakeup",
    "directory",
    "context",
]


async def test_the_process_is_put_back_for_the_next_attempt_of_the_same_list(host, worker):
    # Given one list in which every attempt that changes something is followed by one that looks
    jobs = [("shows_state", "{}")]
    for what in CHANGES:
        jobs += [("changes", json.dumps({"what": what})), ("shows_state", "{}")]
    # When it is run
    groups = [("sample", stage, [[n, n, 1, params, None, n]]) for n, (stage, params) in enumerate(jobs, 1)]
    worker.send_run(groups)
    await host.until(lambda: len(host.rows) == len(jobs))
    # Then all that look see the same. In doubt, as while the pump reads, an attempt counts as one with output.
    seen = {
        stage: [host.detail(n) for n, job in enumerate(jobs, 1) if job[0] == stage] for stage in dict(jobs)
    }
    assert all(detail in (None, {"outcome": "ok", "output": True}) for detail in seen["changes"])
    states = [detail["result"] for detail in seen["shows_state"]]
    for what, state in zip(CHANGES, states[1:], strict=True):
        assert state == states[0], what


async def test_a_shared_process_is_put_back_when_nothing_runs_in_it(host):
    worker = host.keep(concurrent=True)
    before = await host.run(worker, "thread_shows_state", fence=100, type_="many")
    changes = (
        "umask",
        "environment",
        "environment of programs",
        "time zone",
        "limits",
        "recursion limit",
        "directory",
        "context",
    )
    for fence, what in enumerate(changes, 1):
        await host.run(worker, "thread_changes", json.dumps({"what": what}), fence=fence, type_="many")
    assert await host.run(worker, "thread_shows_state", fence=101, type_="many") == before


async def test_a_shared_process_that_cannot_be_put_back_ends_when_nothing_runs_in_it(host):
    worker = host.keep(concurrent=True)
    host.give(worker, "thread_waits", (1, "{}"), type_="many")
    assert await host.run(worker, "thread_lowers_for_good", fence=2, type_="many") is None
    assert await host.run(worker, "thread_passes", fence=3, type_="many") is None
    worker.request_cancel(1)
    assert (await host.ended(worker)).code == 0
    assert host.detail(1)["result"] == '"heard"'


@pytest.mark.parametrize(
    ("stage", "params"),
    [
        ("leaves_thread", "{}"),
        ("leaves_work_in_pool", "{}"),
        ("lowers_for_good", "{}"),
        pytest.param("becomes_nobody", "{}", marks=AS_ROOT),
        ("leaks", '{"files": 600}'),
    ],
)
async def test_what_cannot_be_put_back_ends_the_worker_after_that_attempt(host, worker, stage, params):
    host.give(worker, "uses_pool", (5, "{}"))
    host.give(worker, stage, (1, params))
    host.give(worker, "noop", (2, "{}"))
    how = await host.ended(worker)
    assert (how.code, how.running) == (0, ())
    assert host.detail(1) is None or host.detail(1)["outcome"] == "ok"
    assert 2 not in host.rows, "the next attempt runs elsewhere"
    if "thread" in stage or "pool" in stage:
        assert "this worker is replaced" in worker.log_file.read_text()
        assert "from a thread that was left" not in host.printed(2)


@pytest.mark.parametrize(
    ("stage", "type_"), [("uses_up_descriptors", "sample"), ("thread_uses_up_descriptors", "many")]
)
async def test_a_program_left_behind_ends_although_no_descriptor_is_left(host, tmp_path, stage, type_):
    worker, file = host.start(concurrent=type_ == "many", open_files=100), tmp_path / "pid"
    detail = await host.run(worker, stage, json.dumps({"file": str(file)}), fence=1, type_=type_)
    assert detail is None or detail["outcome"] == "ok"
    assert proctree.identify(int(file.read_text())) is None
    assert (await host.ended(worker)).code == 0


async def test_files_that_are_kept_open_and_idle_threads_of_a_pool_are_no_reason_to_end(host, worker):
    pids = [
        await host.run(worker, stage, fence=n)
        for n, stage in enumerate(("uses_pool", "leaks", "uses_pool"), 1)
    ]
    await host.run(worker, "leaks", '{"files": 100}', fence=9)
    pids.append(await host.run(worker, "leaks", fence=10))
    assert {pid["result"] for pid in pids} == {str(worker.pid)}
