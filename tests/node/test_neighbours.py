"""Attempts that share a worker with one that has to be ended, or that kills it: nothing of that is theirs."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from node_fixtures import Cluster, cluster, kept, lines, now_us, working
from test_claims import Scene, lease, spec

import job_verbs
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.model.types import Isolation
from spinney.node.dispatch import worker_pool
from spinney.node.dispatch.crash_suspects import CrashSuspects
from spinney.node.dispatch.slots import PoolWorker
from spinney.node.dispatch.worker_pool import CLEAN_UP_S, LOOK_S, WorkerPool
from spinney.node.lifecycle import unsynced_files
from spinney.node.workers.shared_page import Running
from spinney.node.workers.worker_reports import Exit
from waiting import until

__all__ = ["cluster", "kept", "working"]

SETTINGS = {"slots": 5}
"""Of the node that ``working`` has."""
NEIGHBOURS = ("thread_waits", "task_waits", "program_waits")


def uncounted(cluster: Cluster, job_id: int) -> bool:
    """Whether its first attempt that counted has passed; one that went back may be in the history."""
    *back, last = cluster.attempts(job_id)
    return {a.outcome for a in back} <= {Outcome.RETURNED} and (last.outcome, last.attempt) == (Outcome.OK, 1)


@pytest.mark.parametrize("kind", ["deaf_thread", "overdue_thread"])
def test_neighbours_of_an_attempt_that_is_ended_by_force_go_back_uncounted(
    working: Cluster, kind: str
) -> None:
    # Given an attempt that does not hear, and neighbours of every kind in its worker
    go, notes = working.file("go"), working.file("notes")
    stay = [working.submit(type_, {"file": str(go), "note_in": str(notes)})[0] for type_ in NEIGHBOURS]
    (once,) = working.submit("thread_once", {"file": str(go), "note_in": str(notes)})
    until(lambda: len(lines(notes)) == 4, "the neighbours run")
    (named,) = working.submit(kind, {"note_in": str(notes)})
    until(lambda: len(lines(notes)) == 5, "all run")
    # When it is ended by force
    if kind == "deaf_thread":
        job_verbs.cancel(working.store, named, tree=False, by="test", reason=None, now_us=now_us())
    (ended,) = working.settled([named])
    # Then that one has ended as it was asked to
    outcome = Outcome.CANCELLED if kind == "deaf_thread" else Outcome.TIMEOUT
    assert [a.outcome for a in working.attempts(named)] == [outcome]
    assert ended.state is (State.CANCELLED if kind == "deaf_thread" else State.FAILED)
    # And the neighbours run again, whole
    until(
        lambda: all(lines(notes).count(word) == 2 for word in ("thread", "task", "program")), "they run again"
    )
    go.touch()
    for job in working.settled(stay):
        assert (job.state, working.store.results(job.id)) == (State.COMPLETED, {job.type: "whole"})
        assert uncounted(working, job.id)
    # And only what its type forbids to run twice is orphaned
    assert working.settled([once])[0].state is State.ORPHANED


def test_a_segfault_costs_its_neighbours_nothing_and_the_guilty_job_is_found_alone(working: Cluster) -> None:
    # Given an attempt that takes its worker with it, and neighbours
    go, now, notes = working.file("go"), working.file("now"), working.file("notes")
    stay = [working.submit(type_, {"file": str(go), "note_in": str(notes)})[0] for type_ in NEIGHBOURS]
    (once,) = working.submit("thread_once", {"file": str(go), "note_in": str(notes)})
    (guilty,) = working.submit("segfaults", {"file": str(now), "note_in": str(notes)})
    until(lambda: len(lines(notes)) == 5, "all run")
    # When it does so
    now.touch()
    # Then it is poison by what it did alone
    (job,) = working.settled([guilty])
    assert (job.state, "poison" in (job.message or "")) == (State.FAILED, True)
    assert [a.outcome for a in working.attempts(guilty)] == [Outcome.RETURNED] + [Outcome.DIED] * 2
    # And the others, which run again, have lost nothing
    go.touch()
    for job in working.settled(stay):
        assert (job.state, job.interruptions, working.store.results(job.id)) == (
            State.COMPLETED,
            0,
            {job.type: "whole"},
        )
        assert uncounted(working, job.id)
    assert working.settled([once])[0].state is State.ORPHANED


@pytest.mark.parametrize("in_task", [False, True])
def test_an_attempt_that_blocks_the_event_loop_is_to_blame_for_the_time_limits_of_others(
    working: Cluster, in_task: bool
) -> None:
    # Given an attempt that blocks the event loop, and another one that cannot begin because of it
    go, notes = working.file("go"), working.file("notes")
    (blocker,) = working.submit(
        "blocks_the_loop", {"file": str(go), "note_in": str(notes), "in_task": in_task}
    )
    until(lambda: lines(notes), "the event loop is blocked")
    (other,) = working.submit("flowing_briefly")
    # When that one has exceeded its time limit
    until(lambda: len(lines(notes)) == 2, "the blocking one runs again")
    # Then it goes back, and passes beside the other one, which runs alone now
    assert working.settled([other])[0].state is State.COMPLETED
    assert uncounted(working, other)
    assert f"job {blocker} blocked its event loop" in (working.attempts(other)[0].message or "")
    go.touch()
    assert working.settled([blocker])[0].state is State.COMPLETED
    first, second = working.attempts(blocker)
    assert (first.outcome, second.outcome, second.attempt) == (Outcome.TIMEOUT, Outcome.OK, 2)
    assert "blocked the event loop" in (first.message or "")


class FakeShared:
    """A shared worker in which two attempts run, 101 and 102."""

    concurrent = True

    def __init__(self) -> None:
        self.fences = [101, 102]
        self.ended = False
        self.killed: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def running(self) -> list[Running]:
        return [Running(fence=fence, started_us=7, started_boot_ns=0) for fence in self.fences]

    def end(self) -> None:
        self.ended = True

    async def kill_attempt(self, grace_s: float) -> None:
        self.killed.set_result(grace_s)


def pool_of(tmp_path: Path, pump: Any = None, **parts: Any) -> WorkerPool:
    context = SimpleNamespace(settings=SimpleNamespace(output_bytes=0), folder_root=tmp_path)
    parameters: dict[str, Any] = {
        "context": context,
        "queue": SimpleNamespace(request_claim=None),
        "make_child": None,
        "pages": tmp_path,
        "logs": tmp_path,
        "requests": None,
        "spawn": asyncio.ensure_future,
        "on_hello": None,
        "ending": lambda: False,
        "on_start_trouble": None,
    }
    with mock.patch.object(worker_pool, "Pump", return_value=pump):
        return WorkerPool(**parameters | parts)


class FakeParts:
    """What a pool needs to see a worker off: its child, its output, dispatcher and queue. Notes what happens."""

    name, ready = "many", True

    def __init__(self) -> None:
        self.steps: list[object] = []
        self.page = self

    def close(self) -> None: ...

    def remove(self, name: str) -> Future[dict[int, str]]:
        drained: Future[dict[int, str]] = Future()
        drained.set_result({})
        return drained

    def exited(self, worker: PoolWorker, how: Exit, remarked: object) -> None:
        self.steps.append("recorded")

    def request_claim(self) -> None: ...

    async def sync(self, root: Path, job_ids: Sequence[int]) -> None:
        self.steps.append(list(job_ids))

    async def flushed(self) -> None: ...


async def test_what_killed_attempts_wrote_is_synced_before_they_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt may keep what it finds, and syncs only what it writes itself."""
    parts: Any = FakeParts()
    monkeypatch.setattr(unsynced_files, "sync_folders", parts.sync)
    ends: list[asyncio.Task[None]] = []
    pool = pool_of(
        tmp_path,
        pump=parts,
        queue=parts,
        spawn=lambda end: ends.append(asyncio.ensure_future(end)),
    )
    pool.attach(parts)
    worker: Any = PoolWorker("many", None)
    worker.child, worker.hello_received = parts, True
    worker.held = {100 + n: SimpleNamespace(lease=lease(n, 0, "t")) for n in (1, 2, 3)}
    pool._workers[parts] = worker
    pool.exited(parts, died(101, 102))
    await asyncio.gather(*ends)
    assert parts.steps == [[1, 2], "recorded"]


@pytest.mark.parametrize("grace_s", [3600.0, 0.0])
async def test_a_shared_worker_is_killed_when_its_neighbours_have_finished_or_their_grace_is_over(
    tmp_path: Path, grace_s: float
) -> None:
    pool = pool_of(tmp_path)
    worker, child = PoolWorker("many", None), FakeShared()
    worker.child = child  # type: ignore[assignment]
    worker.endings[101] = (Outcome.CANCELLED, "cancelled while it ran")
    # When the one is ended that does not hear
    pool.end_attempt(worker, grace_s)
    # Then the worker takes nothing more, and the other one may finish
    assert (child.ended, worker.retiring, worker.forced) == (True, True, False)
    if grace_s:
        done, _ = await asyncio.wait([child.killed], timeout=3 * LOOK_S)
        assert not done
        child.fences.remove(102)
    assert await asyncio.wait_for(child.killed, 20) == CLEAN_UP_S
    assert worker.forced


# --- whom the desk believes ----------------------------------------------------------------------


async def shared(*on_lost: str) -> Scene:
    """Two attempts, 101 and 102, in the shared worker."""
    types = [
        spec(f"t{n}", isolation=Isolation.THREAD, on_lost=lost, timeout_s=2) for n, lost in enumerate(on_lost)
    ]
    scene = Scene(*types)
    careful = scene.dispatcher.take([lease(n + 1, n, f"t{n}") for n in range(len(types))])
    await scene.dispatcher.take_marked(careful)
    return scene


def died(*fences: int) -> Exit:
    lines = tuple(Running(fence=fence, started_us=7, started_boot_ns=0) for fence in fences)
    return Exit(code=None, signal="SIGSEGV", forced=False, running=lines)


@pytest.mark.parametrize("worker_outcome", ["error", "hold", "defer", "cancelled", "returned"])
@pytest.mark.parametrize(("on_lost", "outcome"), [("requeue", Outcome.RETURNED), ("orphan", Outcome.LOST)])
async def test_what_a_worker_that_is_being_killed_says_of_the_others_is_an_interruption(
    worker_outcome: str, on_lost: str, outcome: Outcome
) -> None:
    scene = await shared(on_lost, "requeue")
    worker: Any = scene.pool.concurrent
    worker.forced, worker.endings = True, {102: (Outcome.CANCELLED, "cancelled while it ran")}
    scene.dispatcher.done(
        worker, [[101, 1, 2, {"outcome": worker_outcome}], [102, 1, 2, {"outcome": worker_outcome}]]
    )
    assert [r.outcome for r in scene.recorded] == [outcome, Outcome.CANCELLED]


@pytest.mark.parametrize("worker_outcome", ["cancelled", "error", "ok"])
@pytest.mark.parametrize(("on_lost", "outcome"), [("requeue", Outcome.RETURNED), ("orphan", Outcome.LOST)])
async def test_a_time_limit_that_another_one_made_it_exceed_is_an_interruption(
    worker_outcome: str, on_lost: str, outcome: Outcome
) -> None:
    scene = await shared(on_lost, on_lost)
    worker: Any = scene.pool.concurrent
    limit = (Outcome.TIMEOUT, "exceeded its time limit of 2 s")
    worker.endings = dict.fromkeys((101, 102), limit)
    detail = {"outcome": worker_outcome, "blocked": [1.5, "stage t of job 7"]}
    # The second one has taken longer by itself, too
    scene.dispatcher.done(worker, [[101, 0, 3_400_000, detail], [102, 0, 3_600_000, detail]])
    blocked = (outcome, "stage t of job 7 blocked its event loop for 1.5 s")
    assert [(r.outcome, r.message) for r in scene.recorded] == [blocked, limit]
    # And the job of the first one runs alone next time, where it cannot be excused again
    assert [job in scene.pool.crash_suspects for job in (1, 2)] == [on_lost == "requeue", False]


async def test_what_passed_in_a_worker_that_is_being_killed_is_believed() -> None:
    scene = await shared("requeue")
    scene.pool.concurrent.forced = True
    scene.dispatcher.done(scene.pool.concurrent, [[101, 1, 2, {"outcome": "ok", "result": "1"}]])
    assert [(r.outcome, r.result) for r in scene.recorded] == [(Outcome.OK, "1")]


@pytest.mark.parametrize("details", [(), ({"outcome": "ok", "result": "1"},)], ids=["plain", "detailed"])
async def test_a_stage_that_returns_after_its_time_limit_has_not_passed(details: tuple[Any, ...]) -> None:
    scene = await shared("requeue", "requeue")
    worker: Any = scene.pool.concurrent
    worker.endings = {101: (Outcome.TIMEOUT, "exceeded its time limit of 1 s")}
    scene.dispatcher.done(worker, [[101, 1, 2, *details], [102, 1, 2, *details]])
    assert [(r.outcome, r.result is None) for r in scene.recorded] == [
        (Outcome.TIMEOUT, True),
        (Outcome.OK, not details),
    ]


async def test_a_stage_that_returns_after_a_cancel_request_has_passed() -> None:
    scene = await shared("requeue")
    worker: Any = scene.pool.concurrent
    worker.endings = {101: (Outcome.CANCELLED, "cancelled while it ran")}
    scene.dispatcher.done(worker, [[101, 1, 2]])
    assert [r.outcome for r in scene.recorded] == [Outcome.OK]


async def test_nobody_is_cancelled_on_the_word_of_a_worker() -> None:
    scene = await shared("requeue")
    scene.dispatcher.done(scene.pool.concurrent, [[101, 1, 2, {"outcome": "cancelled"}]])
    assert [r.outcome for r in scene.recorded] == [Outcome.RETURNED]


async def test_a_death_that_several_shared_makes_suspects_and_one_alone_is_blamed_for_its_own() -> None:
    scene = await shared("requeue", "orphan")
    scene.dispatcher.exited(scene.pool.concurrent, died(101, 102), {})
    assert [r.outcome for r in scene.recorded] == [Outcome.RETURNED, Outcome.LOST]
    assert 1 in scene.pool.crash_suspects

    isolated = await shared("requeue")
    isolated.dispatcher.exited(isolated.pool.concurrent, died(101), {})
    assert [r.outcome for r in isolated.recorded] == [Outcome.DIED]
    assert 1 not in isolated.pool.crash_suspects


async def test_a_suspect_is_cleared_by_its_own_end_in_a_worker_of_its_own() -> None:
    scene = await shared("requeue", "requeue")
    scene.pool.crash_suspects.add([1, 2])
    scene.pool.concurrent.isolated = True
    scene.dispatcher.done(scene.pool.concurrent, [[101, 1, 2, {"outcome": "error"}]])
    assert [n for n in (1, 2) if n in scene.pool.crash_suspects] == [2]


def test_only_the_latest_suspects_are_remembered() -> None:
    crash_suspects = CrashSuspects()
    crash_suspects.add(range(10_001))
    assert [n for n in (0, 1, 10_000) if n in crash_suspects] == [1, 10_000]


async def test_a_worker_that_names_attempts_whose_end_was_not_requested_blames_nobody(tmp_path: Path) -> None:
    pool, child = pool_of(tmp_path), FakeParts()
    worker: Any = PoolWorker("many", None)
    worker.held = {100 + n: SimpleNamespace(lease=lease(n, 0, "t")) for n in (1, 2)}
    pool._workers[child] = worker  # type: ignore[index]
    pool.blocked(child, 102, [101])  # type: ignore[arg-type]
    assert (worker.endings, bool(pool.crash_suspects)) == ({}, False)
