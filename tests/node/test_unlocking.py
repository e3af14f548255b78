"""A lock is taken away from a real attempt that goes on all the same."""

from node_fixtures import House, house, lines, now_us, until

from spinney.model.operators import Author
from spinney.model.states import State
from spinney.nudge import nudge_all

__all__ = ["house"]
LOCK = "receiver:SG-1"


def test_the_next_goes_on_beside_the_old_owner_which_ends_in_peace(house: House) -> None:
    house.node()
    begun = now_us()
    told = [
        {"name": LOCK, "file": str(house.file(f)), "note_in": str(house.file("in"))} for f in ("one", "two")
    ]
    (first,) = house.submit("takes", told[0])
    until(lambda: lines(house.file("in")), "the first has it")
    (second,) = house.submit("takes", told[1])
    until(lambda: house.store.job(second).waits_for == f"lock:{LOCK}", "the second waits")
    (info,) = house.store.locks.all()
    assert (info.owner_id, info.node, info.waiting) == (first, "oak", 1)
    assert info.since_us is not None
    assert begun <= info.since_us <= now_us()

    house.store.locks.free(LOCK, Author(by="ann", call="c", reason="it hangs"), now_us=now_us())
    nudge_all(house.run_dir)
    until(lambda: lines(house.file("in")) == [str(first), str(second)], "the second has it")
    assert house.store.job(first).state is State.RUNNING
    assert [i.owner_id for i in house.store.locks.all()] == [second]

    house.file("one").touch()
    assert house.settled([first])[0].state is State.COMPLETED
    assert [i.owner_id for i in house.store.locks.all()] == [second]
    house.file("two").touch()
    assert house.settled([second])[0].state is State.COMPLETED
    assert list(house.store.locks.all()) == []
