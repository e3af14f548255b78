"""What a node was given ahead of its time and stands behind something that takes long: it comes back and goes on."""

import os
import signal

import pytest
from node_fixtures import House, house, lines, now_us, until

from spinney.model.holds import Scope
from spinney.model.operators import Author
from spinney.model.states import State

__all__ = ["house"]


def long(house: House) -> dict[str, str]:
    """Parameters of one that runs until ``end``."""
    return {"file": str(house.file("go")), "note_in": str(house.file("log"))}


def quick(house: House) -> dict[str, str]:
    """Parameters of one of the same type that has ended at once."""
    there = house.file("there")
    there.touch()
    return {"file": str(there), "note_in": str(house.file("noted"))}


def end(house: House) -> None:
    house.file("go").touch()


def begun(house: House) -> None:
    until(lambda: lines(house.file("log")), "the long one has begun")


def state(house: House, job_id: int) -> State:
    return house.store.job(job_id).state


def test_nothing_stands_for_long_behind_the_first_of_its_type(house: House) -> None:
    """Given a type that has been measured and one that has not, when one of that takes long, then the others go on
    in the other slots."""
    house.node(slots=3)
    house.run("nap", *({} for _ in range(10)))

    before = house.submit("nap", *({"seconds": 0.02} for _ in range(8)))
    (first,) = house.submit("wait_for", long(house))
    after = house.submit("nap", *({"seconds": 0.02} for _ in range(150)))
    house.settled(before + after, 15.0)

    assert state(house, first) in (State.CLAIMED, State.RUNNING)
    end(house)
    house.settled([first])


@pytest.mark.parametrize("type_", ["wait_for", "hears_nothing"])
def test_nothing_stands_for_long_behind_one_that_takes_longer_than_its_kind(house: House, type_: str) -> None:
    """Given a type that took a millisecond every time, when one of it takes long, then those that were given with it
    come back, though they are few and short, and though it hears nothing of their being asked for."""
    house.node(slots=2)
    house.run(type_, *(quick(house) for _ in range(30)))
    house.run("noop", *({} for _ in range(50)))

    late, *others = house.submit(type_, long(house), *(quick(house) for _ in range(9)))
    house.settled(others, 10.0)

    assert state(house, late) in (State.CLAIMED, State.RUNNING)
    assert {house.store.job(i).interruptions for i in others} == {0}
    end(house)
    house.settled([late])


def test_what_is_cancelled_or_held_behind_a_long_attempt_is_so_before_that_ends(house: House) -> None:
    type_ = "hears_nothing"
    # Given a node that looks far ahead, so that nothing comes back by itself
    house.node(slots=1, lookahead_s=60.0)
    house.run(type_, *(quick(house) for _ in range(10)))
    late, *behind = house.submit(type_, long(house), *(quick(house) for _ in range(4)))
    begun(house)
    until(lambda: state(house, behind[-1]) is State.CLAIMED, "others stand behind it")
    cancelled = behind.pop(1)

    house.store.cancel(cancelled, tree=False, by="test", reason=None, now_us=now_us())

    until(lambda: state(house, cancelled) is State.CANCELLED, "cancelled while it waits", 5.0)
    until(lambda: state(house, behind[-1]) is State.CLAIMED, "others still, or again, stand behind it")

    house.store.holds.lay(
        Scope.TYPE, type_, "disk swap", Author(by="ann", call="c"), until_us=None, now_us=now_us()
    )

    until(lambda: {state(house, i) for i in behind} == {State.HELD}, "held while they wait", 5.0)
    assert state(house, late) in (State.CLAIMED, State.RUNNING)
    end(house)
    house.settled([late])
    assert [a for i in behind for a in house.attempts(i)] == []


def test_what_stands_behind_an_attempt_in_a_stopped_worker_goes_on_elsewhere(house: House) -> None:
    """Given a worker that does nothing at all any more, when its attempt takes long, then others come back all the
    same, and it gives none of them a second run when it goes on."""
    house.node(slots=2)
    house.run("wait_for", *(quick(house) for _ in range(30)))
    noted = house.file("noted")
    before = len(lines(noted))
    late, *others = house.submit("wait_for", long(house), *(quick(house) for _ in range(9)))
    begun(house)
    worker = int(lines(house.file("log"))[0])
    os.kill(worker, signal.SIGSTOP)
    try:
        house.settled(others, 10.0)
    finally:
        os.kill(worker, signal.SIGCONT)
    end(house)
    house.settled([late])
    house.run("noop", *({} for _ in range(20)))
    assert len(lines(noted)) - before == len(others)


def test_what_is_taken_back_again_and_again_runs_once(house: House) -> None:
    """Given a node that takes back what has stood behind a few milliseconds, when short and longer jobs are mixed, then
    each runs once, and nothing comes too late."""
    log, out = house.file("nodes.log"), house.file("out")
    house.node(slots=3, tick_s=0.004, lookahead_s=0.02, log=log)
    word = {"file": str(out)}
    house.run("nap_note", *(word | {"word": f"first {n}"} for n in range(30)))

    ids = house.submit(
        "nap_note", *(word | {"word": str(n), "seconds": 0.03 * (n % 7 == 0)} for n in range(700))
    )

    assert {(j.state, j.attempts, j.interruptions) for j in house.settled(ids)} == {(State.COMPLETED, 0, 0)}
    assert sorted(w for w in lines(out) if w.isdigit()) == sorted(map(str, range(700)))
    assert "refused late record" not in log.read_text()
    assert "which it does not have" not in log.read_text()
