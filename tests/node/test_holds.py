"""Holds and a working node: what has not begun comes back, and what others left is swept."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from node_fixtures import Cluster, cluster, kept, lines, now_us, working

from long_tests import long_alone
from spinney.model.jobs import Filter
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State
from spinney.node.services.holds import AGAIN_S, HoldEnforcer
from spinney.node.signals import NodeSignals
from spinney.wakeup.local import wake_local_nodes
from waiting import until

__all__ = ["cluster", "kept", "working"]

SETTINGS = {"slots": 1, "lookahead_s": 30.0}
"""Of the node that ``working`` has: its slot is given seconds of work ahead."""

ANN = Actor(by="ann", call="c")
BOUND_US = 250_000
"""So long after a hold was laid something that a node had been given before may begin at the latest (docs/design.md);
a poll interval and what the machine may be late by."""


@pytest.fixture
def holding(working: Cluster) -> Iterator[Cluster]:
    """``working``, without holds in the end."""
    yield working
    for hold in working.store.holds.all():
        working.store.holds.lift(hold.id, ANN, now_us=now_us())


def lay(
    cluster: Cluster, scope: Scope = Scope.TYPE, name: str = "nap", *, until_s: float | None = None
) -> Hold:
    until_us = None if until_s is None else now_us() + round(until_s * 1e6)
    return cluster.store.holds.lay(scope, name, "disk swap", ANN, until_us=until_us, now_us=now_us())


def sweep(cluster: Cluster) -> None:
    while cluster.store.holds.sweep(now_us=now_us()):
        pass


def count(cluster: Cluster, state: State, **which: Any) -> int:
    return cluster.store.counts(Filter(states=(state,), **which)).get(state, 0)


def at_rest(cluster: Cluster) -> bool:
    return not any(count(cluster, state) for state in (State.CLAIMED, State.RUNNING))


@pytest.mark.parametrize(
    ("scope", "woken"),
    [
        pytest.param(scope, woken, id=f"{scope}-{how}", marks=[] if scope is short else long_alone)
        for woken, how, short in ((True, "nudged", Scope.COLLECTION), (False, "by the poll", Scope.JOB))
        for scope in (Scope.TYPE, Scope.COLLECTION, Scope.JOB)
    ],
)
def test_soon_after_a_hold_nothing_begins_of_what_a_node_had_been_given(
    holding: Cluster, scope: Scope, woken: bool
) -> None:
    # Given a node that has been given seconds of work ahead
    collection = f"{scope}-{woken}"
    holding.run("nap", *({} for _ in range(20)))
    ids = holding.submit("nap", *({"seconds": 0.01} for _ in range(200)), collection=collection)
    until(lambda: count(holding, State.COMPLETED, collection=collection) > 5, "the node works")
    # When a hold is laid on it
    covered = ids if scope is not Scope.JOB else ids[-20:]
    names = {Scope.TYPE: ["nap"], Scope.COLLECTION: [collection], Scope.JOB: [str(i) for i in covered]}[scope]
    for name in names:
        lay(holding, scope, name)
    laid_us = now_us()
    if woken:
        wake_local_nodes(holding.run_dir)
    # Then soon nothing of it begins any more, and what had been given comes back and is held
    until(lambda: at_rest(holding), "what runs has ended")
    sweep(holding)
    begun = [a.started_us for i in covered for a in holding.attempts(i)]
    assert max(begun, default=0) < laid_us + BOUND_US
    left = [holding.store.job(i) for i in covered]
    assert {j.state for j in left} <= {State.COMPLETED, State.HELD}
    held = [j for j in left if j.state is State.HELD]
    assert len(held) >= len(covered) / 2
    assert {j.attempts for j in held} == {0}


def test_what_stands_behind_a_long_attempt_does_not_begin_when_that_ends(holding: Cluster) -> None:
    holding.run("nap", *({} for _ in range(10)))
    long, *behind = holding.submit("nap", {"seconds": 1.5}, *({} for _ in range(30)))
    until(
        lambda: count(holding, State.CLAIMED) + count(holding, State.RUNNING) > 20, "others stand behind it"
    )

    lay(holding)

    (done,) = holding.settled([long])
    assert done.state is State.COMPLETED
    until(lambda: at_rest(holding), "the others are back")
    assert {holding.store.job(i).state for i in behind} == {State.HELD}
    assert [a for i in behind for a in holding.attempts(i)] == []


def test_a_stage_that_runs_finishes_and_the_next_is_held(holding: Cluster) -> None:
    log, go = holding.file("log"), holding.file("go")
    (job,) = holding.submit("stages", {"log": str(log), "until": str(go)})
    until(lambda: lines(log), "its first stage runs")

    hold = lay(holding, Scope.TREE, str(job))
    wake_local_nodes(holding.run_dir)
    go.touch()

    until(lambda: holding.store.job(job).state is State.HELD, "held")
    assert [a.stage for a in holding.attempts(job)] == ["first"]
    holding.store.holds.lift(hold.id, ANN, now_us=now_us())
    sweep(holding)
    wake_local_nodes(holding.run_dir)
    (done,) = holding.settled([job])
    assert done.state is State.COMPLETED


def test_a_hold_ends_by_itself_and_the_node_goes_on(holding: Cluster) -> None:
    hold = lay(holding, until_s=1.5)
    ids = holding.submit("nap", *({} for _ in range(20)))
    assert {holding.store.job(i).state for i in ids} == {State.HELD}

    jobs = holding.settled(ids, 10.0)

    assert hold.until_us is not None
    started = min(a.started_us for j in jobs for a in holding.attempts(j.id))
    assert hold.until_us <= started
    assert holding.store.holds.all() == []


SWEEPER = """
import sys, time
from spinney.model.settings.holds import Scope
from spinney.model.rights.actor import Actor
from spinney.store.sql import open_store

def now_us():
    return time.time_ns() // 1000

store, ann = open_store(sys.argv[1]), Actor(by="ann", call="c")
if sys.argv[2] == "hold":
    store.holds.lay(Scope.COLLECTION, "c", "disk swap", ann, now_us=now_us())
else:
    store.holds.lift(int(sys.argv[2]), ann, now_us=now_us())
print("done", flush=True)
while store.holds.sweep(now_us=now_us(), limit=20):
    time.sleep(0.01)
"""


def killed_midway(cluster: Cluster, what: str, reached: Callable[[], bool]) -> None:
    """A process lays or lifts a hold and sweeps, and is killed when it has come so far."""
    process = subprocess.Popen([sys.executable, "-c", SWEEPER, cluster.url, what], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        until(reached, "it is in the midst of it")
    finally:
        process.kill()
        process.communicate()


@long_alone
def test_a_sweep_that_was_killed_midway_leaves_nothing_that_starts_and_nothing_stuck(
    cluster: Cluster,
) -> None:
    n = 4_000
    cluster.node().stop()  # its types are known from now on
    ids = cluster.submit("noop", *({"n": i} for i in range(n)), collection="c")

    def held() -> int:
        return count(cluster, State.HELD)

    # Given a process that was killed while it swept a hold, when a node comes
    killed_midway(cluster, "hold", lambda: 100 < held() < n / 2)
    assert held() < n
    cluster.node()
    # Then nothing starts, and all is swept in the end
    until(lambda: held() == n, "the node has swept the rest")
    assert [a for i in ids[::50] for a in cluster.attempts(i)] == []
    # And given one that was killed while it swept after the release, all goes on
    (hold,) = cluster.store.holds.all()
    killed_midway(cluster, str(hold.id), lambda: held() < n - 100)
    assert {j.state for j in cluster.settled(ids)} == {State.COMPLETED}


def test_of_two_nodes_one_sweeps(cluster: Cluster) -> None:
    cluster.node(name="a")
    cluster.node(name="b")
    hold = lay(cluster, Scope.TYPE, "noop")
    cluster.submit("noop", *({"n": i} for i in range(1_200)))
    cluster.store.holds.lift(hold.id, ANN, now_us=now_us())

    until(lambda: count(cluster, State.COMPLETED) == 1_200, "all have run")


# --- what is on its way -----------------------------------------------------------------------


class Thread:
    """In place of a store thread: answers from a list, the last again and again."""

    def __init__(self, answers: Sequence[tuple[int, Sequence[int]]]) -> None:
        self.answers, self.after_ids = list(answers), []

    async def call(self, verb: Callable[[Any], Any]) -> Any:
        return verb(SimpleNamespace(holds=self))

    def leased_under(self, node_id: int, after: int) -> tuple[int, Sequence[int]]:
        self.after_ids.append(after)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def worker(*held: int, running: Sequence[int] = ()) -> Any:
    recalls: list[int] = []
    child = SimpleNamespace(
        running=lambda: [SimpleNamespace(fence=fence) for fence in running], recall=lambda: recalls.append(1)
    )
    return SimpleNamespace(held=dict.fromkeys(held), child=child, recalls=recalls)


async def looked(thread: Thread, workers: list[Any], arrives: Any = None) -> HoldEnforcer:
    context = SimpleNamespace(reader=thread, signals=NodeSignals())
    holding = HoldEnforcer(context, SimpleNamespace(workers=workers), node_id=1)  # type: ignore[arg-type]
    task = asyncio.create_task(holding.get_back())
    context.signals.committed()
    last_hold, _ = thread.answers[-1]
    async with asyncio.timeout(5):
        while holding._done_with != last_hold:
            if arrives is not None and len(thread.after_ids) == 1 and not workers:
                workers.append(arrives)
            await asyncio.sleep(0.001)
    await asyncio.sleep(2 * AGAIN_S)  # a look that has not ended would be repeated by then
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return holding


async def test_a_lease_that_is_on_its_way_to_a_worker_is_asked_back_when_it_is_there() -> None:
    arriving = worker(7)
    thread = Thread([(3, [7]), (3, [7]), (3, [])])

    await looked(thread, [], arrives=arriving)

    assert arriving.recalls
    assert set(thread.after_ids) == {0}, "it is done with the hold only when nothing is left of it"


async def test_what_has_begun_is_left_alone_and_ends_the_look() -> None:
    busy, other = worker(7, 8, running=[7]), worker(9)
    thread = Thread([(3, [7])])

    holding = await looked(thread, [busy, other])

    assert (busy.recalls, other.recalls, thread.after_ids) == ([], [], [0])
    assert holding._done_with == 3


async def test_a_worker_is_asked_back_only_when_it_holds_something_covered() -> None:
    busy, other = worker(7, 8, running=[7]), worker(9)
    thread = Thread([(3, [8]), (3, [])])

    await looked(thread, [busy, other])

    assert busy.recalls
    assert not other.recalls
