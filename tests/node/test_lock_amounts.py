"""Amounts of a lock, from the application that declares how much there is to the jobs of a real node."""

from node_fixtures import House, house, lines, now_us, until

from spinney.model.operators import Author
from spinney.model.states import State
from spinney.nudge import nudge_all

__all__ = ["house"]
LOCK = "disk:1"


def told(house: House, amount: int, ends: str) -> dict[str, str | int]:
    return {"name": LOCK, "amount": amount, "file": str(house.file(ends)), "note_in": str(house.file("in"))}


def test_jobs_share_what_an_application_declares_and_who_waits_longest_goes_first(house: House) -> None:
    """Given a disk of 100 of which one job has 60, when one wants 70 and a later one 10, then that waits, too."""
    house.node()
    (holder,) = house.submit("takes", told(house, 60, "one"))
    until(lambda: lines(house.file("in")) == [str(holder)], "the first has its part")
    (much,) = house.submit("takes", told(house, 70, "two"))
    until(lambda: house.store.job(much).waits_for == f"lock:{LOCK}", "the second waits")
    (little,) = house.submit("takes", told(house, 10, "two"))
    until(lambda: house.store.job(little).waits_for == f"lock:{LOCK}", "the third waits behind it")

    house.file("one").touch()
    until(lambda: len(lines(house.file("in"))) == 3, "both have their parts")

    assert [(i.owner_id, i.amount, i.capacity) for i in house.store.locks.of(LOCK)] == [
        (much, 70, 100), (little, 10, 100),
    ]  # fmt: skip
    house.file("two").touch()
    assert [job.state for job in house.settled([holder, much, little])] == [State.COMPLETED] * 3


def test_what_an_operator_sets_counts_at_once(house: House) -> None:
    house.node()
    (holder,) = house.submit("takes", told(house, 60, "one"))
    until(lambda: lines(house.file("in")) == [str(holder)], "the first has its part")
    (other,) = house.submit("takes", told(house, 60, "one"))
    until(lambda: house.store.job(other).waits_for == f"lock:{LOCK}", "the second waits")

    house.store.locks.set_capacity("disk:*", 120, Author(by="ann", call="c"), now_us=now_us())
    nudge_all(house.run_dir)
    until(lambda: len(lines(house.file("in"))) == 2, "both have their parts")

    house.file("one").touch()
    house.settled([holder, other])


def test_a_job_that_wants_more_than_there_is_fails_with_a_sentence(house: House) -> None:
    house.node()

    (job,) = house.settled(house.submit("takes", told(house, 101, "one")))

    assert job.state is State.FAILED
    assert "'disk:1' has a capacity of 100, so that nobody can take 101 of it" in (job.message or "")
