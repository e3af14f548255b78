"""What a node was given ahead of its time and stands behind something that takes long: it comes back and goes on."""

import os
import signal

import pytest
from node_fixtures import Cluster, cluster, lines, now_us

import job_verbs
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.states import State
from waiting import until

__all__ = ["cluster"]


def long(cluster: Cluster) -> dict[str, str]:
    """Parameters of one that runs until ``end``."""
    return {"file": str(cluster.file("go")), "note_in": str(cluster.file("log"))}


def quick(cluster: Cluster) -> dict[str, str]:
    """Parameters of one of the same type that has ended at once."""
    there = cluster.file("there")
    there.touch()
    return {"file": str(there), "note_in": str(cluster.file("noted"))}


def end(cluster: Cluster) -> None:
    cluster.file("go").touch()


def begun(cluster: Cluster) -> None:
    until(lambda: lines(cluster.file("log")), "the long one has begun")


def state(cluster: Cluster, job_id: int) -> State:
    return cluster.store.job(job_id).state


def test_nothing_stands_for_long_behind_the_first_of_its_type(cluster: Cluster) -> None:
    """Given a type that has been measured and one that has not, when one of that takes long, then the others go on
    in the other slots."""
    cluster.node(slots=3)
    cluster.run("nap", *({} for _ in range(10)))

    before = cluster.submit("nap", *({"seconds": 0.02} for _ in range(8)))
    (first,) = cluster.submit("wait_for", long(cluster))
    after = cluster.submit("nap", *({"seconds": 0.02} for _ in range(150)))
    cluster.settled(before + after, 15.0)

    assert state(cluster, first) in (State.CLAIMED, State.RUNNING)
    end(cluster)
    cluster.settled([first])


@pytest.mark.parametrize("type_", ["wait_for", "hears_nothing"])
def test_nothing_stands_for_long_behind_one_that_takes_longer_than_its_kind(
    cluster: Cluster, type_: str
) -> None:
    """Given a type that took a millisecond every time, when one of it takes long, then those that were given with it
    come back, though they are few and short, and though it hears nothing of their being asked for."""
    cluster.node(slots=2)
    cluster.run(type_, *(quick(cluster) for _ in range(30)))
    cluster.run("noop", *({} for _ in range(50)))

    late, *others = cluster.submit(type_, long(cluster), *(quick(cluster) for _ in range(9)))
    cluster.settled(others, 10.0)

    assert state(cluster, late) in (State.CLAIMED, State.RUNNING)
    assert {cluster.store.job(i).interruptions for i in others} == {0}
    end(cluster)
    cluster.settled([late])


def test_what_is_cancelled_or_held_behind_a_long_attempt_is_so_before_that_ends(cluster: Cluster) -> None:
    type_ = "hears_nothing"
    # Given a node that looks far ahead, so that nothing comes back by itself
    cluster.node(slots=1, lookahead_s=60.0)
    cluster.run(type_, *(quick(cluster) for _ in range(10)))
    late, *behind = cluster.submit(type_, long(cluster), *(quick(cluster) for _ in range(4)))
    begun(cluster)
    until(lambda: state(cluster, behind[-1]) is State.CLAIMED, "others stand behind it")
    cancelled = behind.pop(1)

    job_verbs.cancel(cluster.store, cancelled, tree=False, by="test", reason=None, now_us=now_us())

    until(lambda: state(cluster, cancelled) is State.CANCELLED, "cancelled while it waits", 5.0)
    until(lambda: state(cluster, behind[-1]) is State.CLAIMED, "others still, or again, stand behind it")

    cluster.store.holds.lay(
        Scope.TYPE, type_, "disk swap", Actor(by="ann", call="c"), until_us=None, now_us=now_us()
    )

    until(lambda: {state(cluster, i) for i in behind} == {State.HELD}, "held while they wait", 5.0)
    assert state(cluster, late) in (State.CLAIMED, State.RUNNING)
    end(cluster)
    cluster.settled([late])
    assert [a for i in behind for a in cluster.attempts(i)] == []


def test_what_stands_behind_an_attempt_in_a_stopped_worker_goes_on_elsewhere(cluster: Cluster) -> None:
    """Given a worker that does nothing at all any more, when its attempt takes long, then others come back all the
    same, and it gives none of them a second run when it goes on."""
    cluster.node(slots=2)
    cluster.run("wait_for", *(quick(cluster) for _ in range(30)))
    noted = cluster.file("noted")
    before = len(lines(noted))
    late, *others = cluster.submit("wait_for", long(cluster), *(quick(cluster) for _ in range(9)))
    begun(cluster)
    worker = int(lines(cluster.file("log"))[0])
    os.kill(worker, signal.SIGSTOP)
    try:
        cluster.settled(others, 10.0)
    finally:
        os.kill(worker, signal.SIGCONT)
    end(cluster)
    cluster.settled([late])
    cluster.run("noop", *({} for _ in range(20)))
    assert len(lines(noted)) - before == len(others)


def test_what_is_taken_back_again_and_again_runs_once(cluster: Cluster) -> None:
    """Given a node that takes back what has stood behind a few milliseconds, when short and longer jobs are mixed, then
    each runs once, and nothing comes too late."""
    log, out = cluster.file("nodes.log"), cluster.file("out")
    cluster.node(slots=3, tick_s=0.004, lookahead_s=0.02, log=log)
    word = {"file": str(out)}
    cluster.run("nap_note", *(word | {"word": f"first {n}"} for n in range(30)))

    ids = cluster.submit(
        "nap_note", *(word | {"word": str(n), "seconds": 0.03 * (n % 7 == 0)} for n in range(700))
    )

    assert {(j.state, j.attempts, j.interruptions) for j in cluster.settled(ids)} == {(State.COMPLETED, 0, 0)}
    assert sorted(w for w in lines(out) if w.isdigit()) == sorted(map(str, range(700)))
    assert "refused late record" not in log.read_text()
    assert "which it does not have" not in log.read_text()
