"""Amounts of a lock, from the application that declares how much there is to the jobs of a real node."""

from node_fixtures import Cluster, kept, lines, now_us, working

from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.wakeup.local import wake_local_nodes
from waiting import until

__all__ = ["kept", "working"]
LOCK = "disk:1"


def params(cluster: Cluster, amount: int, ends: str) -> dict[str, str | int]:
    return {
        "name": LOCK,
        "amount": amount,
        "file": str(cluster.file(ends)),
        "note_in": str(cluster.file("in")),
    }


def test_jobs_share_what_an_application_declares_and_who_waits_longest_goes_first(working: Cluster) -> None:
    """Given a disk of 100 of which one job has 60, when one wants 70 and a later one 10, then that waits, too."""
    (holder,) = working.submit("takes", params(working, 60, "one"))
    until(lambda: lines(working.file("in")) == [str(holder)], "the first has its part")
    (much,) = working.submit("takes", params(working, 70, "two"))
    until(lambda: working.store.job(much).waits_for == f"lock:{LOCK}", "the second waits")
    (little,) = working.submit("takes", params(working, 10, "two"))
    until(lambda: working.store.job(little).waits_for == f"lock:{LOCK}", "the third waits behind it")

    working.file("one").touch()
    until(lambda: len(lines(working.file("in"))) == 3, "both have their parts")

    assert [(i.owner_id, i.amount, i.capacity) for i in working.store.locks.get(LOCK)] == [
        (much, 70, 100),
        (little, 10, 100),
    ]
    working.file("two").touch()
    assert [job.state for job in working.settled([holder, much, little])] == [State.COMPLETED] * 3


def test_what_an_operator_sets_counts_at_once(working: Cluster) -> None:
    (holder,) = working.submit("takes", params(working, 60, "one"))
    until(lambda: lines(working.file("in")) == [str(holder)], "the first has its part")
    (other,) = working.submit("takes", params(working, 60, "one"))
    until(lambda: working.store.job(other).waits_for == f"lock:{LOCK}", "the second waits")

    working.store.locks.set_capacity("disk:*", 120, Actor(by="ann", call="c"), now_us=now_us())
    wake_local_nodes(working.run_dir)
    until(lambda: len(lines(working.file("in"))) == 2, "both have their parts")

    working.file("one").touch()
    working.settled([holder, other])
    working.store.locks.set_capacity("disk:*", None, Actor(by="ann", call="c"), now_us=now_us())


def test_a_job_that_wants_more_than_there_is_fails_with_a_sentence(working: Cluster) -> None:
    (job,) = working.settled(working.submit("takes", params(working, 101, "one")))

    assert job.state is State.FAILED
    assert "'disk:1' has a capacity of 100, so that nobody can take 101 of it" in (job.message or "")
