"""Where a running attempt stands is written into its job's folder, while it goes on."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from node_fixtures import DEADLINE_S, Cluster, kept, now_us, working

from spinney.model.errors import Refused
from spinney.model.states import State
from spinney.model.values.paths import ROOT_TOKEN, job_folder
from spinney.node.workers import stack_taker
from spinney.node.workers.proctree import is_stopped
from spinney.node.workers.stack_dump import task_stack
from spinney.node.workers.stack_memory import StackMemory
from waiting import until

__all__ = ["kept", "working"]

SETTINGS = {"app": "stacks_app:app"}


def stacks_of(cluster: Cluster, job: int, kind: str) -> str:
    """The text of the only file with stacks of this kind in the job's folder."""
    (path,) = (cluster.folders / job_folder(job) / ".spinney").glob(f"*.{kind}")
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_text()


def requested(cluster: Cluster, job: int) -> str:
    """Wait until the job runs, request its stacks, and return them."""
    until(lambda: cluster.store.job(job).state is State.RUNNING)
    fence = cluster.store.stack_requests.ask(job, now_us=now_us())
    until(lambda: not cluster.store.stack_requests.is_due(fence, job_id=job))
    return stacks_of(cluster, job, "stack")


@pytest.mark.parametrize(
    ("type_", "lines"),
    [
        (
            "in_python",
            ["thread MainThread:", "in in_python", "in wait_for_flag", "thread helper of the stage:"],
        ),
        ("in_thread", ["thread stage_", "in in_thread", "in wait_for_flag"]),
        ("in_task", ["task of the stage:", "in in_task", "return await await_flag(flag)", "in await_flag"]),
        ("in_context", ["task of the stage:", "in in_context", "in flagged", "in await_flag"]),
        ("in_program", ["in in_program", ": /bin/sh -c until"]),
    ],
)
def test_the_stacks_of_a_stage_that_goes_on(working: Cluster, type_: str, lines: list[str]) -> None:
    flag = working.place / "flag"
    neighbour, job = working.submit("in_thread", {"flag": str(flag)}) + working.submit(
        type_, {"flag": str(flag)}
    )
    until(lambda: working.store.job(neighbour).state is State.RUNNING)

    text = requested(working, job)

    positions = [text.find(line) for line in lines]
    assert -1 not in positions, text
    assert positions == sorted(positions), text
    assert "stage_runners" not in text
    assert ("contextlib" in text) == (type_ == "in_context")  # the stage's own
    assert ("in_thread" in text) == (type_ == "in_thread")  # no other attempt's
    flag.touch()
    assert [each.state for each in working.settled([neighbour, job])] == [State.COMPLETED] * 2


def test_neither_the_tasks_nor_the_processes_of_other_attempts_are_named(working: Cluster) -> None:
    flag = working.place / "flag"
    (other,) = working.submit("neighbour", {"flag": str(flag), "name": "whose it is"})
    (job,) = working.submit("in_task", {"flag": str(flag)})
    until(lambda: working.store.job(other).state is State.RUNNING)
    until(lambda: "/bin/sh" in requested(working, job))

    text = requested(working, job)

    assert "whose it is" not in text
    assert "task await_flag:" in text
    flag.touch()
    assert [each.state for each in working.settled([other, job])] == [State.COMPLETED] * 2


def test_a_call_of_c_code_hides_no_stack(working: Cluster) -> None:
    pipe = working.place / "pipe"
    os.mkfifo(pipe)
    (job,) = working.submit("in_c", {"pipe": str(pipe)})

    text = requested(working, job)

    assert "inside a long call of C code" in text
    assert "in in_c" in text
    pipe.write_text("x")
    (after,) = working.settled([job])
    assert after.state is State.COMPLETED


def test_a_worker_that_was_stopped_is_called_so(working: Cluster) -> None:
    pid_file = working.place / "pid"
    (job,) = working.submit("stops_itself", {"pid_file": str(pid_file)})
    until(lambda: pid_file.exists() and is_stopped(int(pid_file.read_text() or 0)))
    pid = int(pid_file.read_text())

    text = requested(working, job)

    assert f"(the worker did not answer, stopped by a signal until 'kill -CONT {pid}')" in text
    os.kill(pid, signal.SIGCONT)
    (after,) = working.settled([job])
    assert after.state is State.COMPLETED


def test_an_attempt_that_lasts_leaves_its_stacks_once_and_goes_on(working: Cluster) -> None:
    flag = working.place / "flag"
    (job,) = working.submit("slow", {"flag": str(flag)})
    folder = working.folders / job_folder(job) / ".spinney"
    until(lambda: list(folder.glob("*.stack_after")))
    text = stacks_of(working, job, "stack_after")
    flag.touch()

    (after,) = working.settled([job])

    assert "in slow" in text
    assert after.state is State.COMPLETED
    assert stacks_of(working, job, "stack_after") == text


def test_before_a_time_limit_ends_an_attempt_its_stacks_are_kept(working: Cluster) -> None:
    jobs = working.run("overdue") + working.run("script")

    assert [job.state for job in jobs] == [State.FAILED] * 2
    assert "in overdue" in stacks_of(working, jobs[0].id, "stack_timeout")
    assert "time.sleep(60)" in stacks_of(working, jobs[1].id, "stack_timeout")


def test_the_stacks_of_overdue_tasks_show_where_they_stood_and_not_that_they_are_cancelled(
    working: Cluster,
) -> None:
    jobs = working.settled(working.submit("overdue_task", {}, {}))

    assert [job.message for job in jobs] == ["exceeded its time limit of 0.5 s"] * 2
    for job in jobs:
        text = stacks_of(working, job.id, "stack_timeout")
        assert "in overdue_task" in text
        assert "in await_flag" in text


class Endless:
    """An awaitable that keeps the generator in which it is awaited."""

    def __init__(self) -> None:
        self.awaited_in: Any = None

    def __await__(self) -> Iterator[None]:
        return self

    def __iter__(self) -> Iterator[None]:
        return self

    def __next__(self) -> None:
        return None


async def test_the_stack_of_a_task_ends_where_an_awaitable_refers_back_to_it() -> None:
    awaitable = Endless()

    async def numbers() -> AsyncIterator[int]:
        await awaitable
        yield 1

    async def read() -> None:
        awaitable.awaited_in = numbers()
        await anext(awaitable.awaited_in)

    task = asyncio.ensure_future(read())
    await asyncio.sleep(0)

    names = [frame.f_code.co_name for frame, _ in task_stack(task, "a task").positions]

    assert names == ["read", "numbers"]
    task.cancel()


class EndedWorker:
    """A worker that answers nothing any more."""

    name, pid, alive, concurrent = "slot0.1", os.getpid(), False, False

    def __init__(self) -> None:
        self.stack_memory = StackMemory()

    def request_stacks(self, fence: int) -> None:
        """It does not read it."""


async def test_an_attempt_may_be_ended_when_its_stacks_are_taken_though_the_disk_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, taken = threading.Event(), asyncio.Event()
    (tmp_path / ROOT_TOKEN).touch()
    monkeypatch.setattr(stack_taker, "write_document", lambda path, document: answers.wait())
    taker = stack_taker.StackTaker(tmp_path, asyncio.ensure_future)
    child: Any = EndedWorker()
    try:
        taker.begin(child, 7, "s", 5, stack_taker.TIMEOUT, on_taken=lambda fence: taken.set())
        assert taker.is_taking(5)
        async with asyncio.timeout(DEADLINE_S):
            while taker.is_taking(5):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert not taken.is_set()
    finally:
        answers.set()
    await asyncio.wait_for(taken.wait(), DEADLINE_S)
    child.stack_memory.close()


def test_what_does_not_run_is_refused(working: Cluster) -> None:
    (job,) = working.run("overdue")
    with pytest.raises(Refused, match="no attempt of job"):
        working.store.stack_requests.ask(job.id, now_us=now_us())
