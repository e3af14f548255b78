"""The circuit breaker on a real node: a service that is down stops the jobs that would call it."""

from node_fixtures import House, house, now_us, until

from longer import long_alone
from spinney.model.holds import Hold, Scope
from spinney.model.jobs import Filter
from spinney.model.operators import Author
from spinney.model.states import State
from spinney.nudge import nudge_all

JOBS = 120
K = 5
"""As ``calls_out`` has it."""
__all__ = ["house"]


def laid(house: House) -> Hold | None:
    return next(iter(house.store.holds.all()), None)


def at_rest(house: House) -> bool:
    """Nothing runs, and what waited is held."""
    counts = house.counts()
    return not any(counts.get(state) for state in ("pending", "claimed", "running", "scheduled"))


def lift(house: House, hold: Hold) -> None:
    house.store.holds.lift(hold.id, Author(by="ann", call="c", reason="it is up again"), now_us=now_us())
    nudge_all(house.run_dir)


def test_a_service_that_is_down_stops_its_jobs_and_a_release_lets_them_go_on(house: House) -> None:
    house.node()
    flag = house.file("up")
    ids = house.submit("calls_out", *[{"flag": str(flag)}] * JOBS)
    other = house.submit("wait_for", {"file": str(house.file("go")), "note_in": str(house.file("pid"))})

    hold = until(lambda: laid(house), "the breaker trips")
    house.file("go").touch()
    assert house.settled(other)[0].state is State.COMPLETED, "other types go on under the hold"
    until(lambda: at_rest(house), "the rest is held")

    assert (hold.scope, hold.name, hold.automatic) == (Scope.TYPE, "calls_out", True)
    assert f"{K} jobs in a row: ConnectionError: refused by #" in hold.reason
    failed = [j.id for j in house.store.jobs(Filter(type="calls_out", states=(State.FAILED,)), limit=JOBS)]
    assert K <= len(failed) < JOBS / 2
    (group,) = house.store.failures.groups().groups
    assert group.jobs == len(failed)
    assert house.counts()["held"] == JOBS - len(failed)

    flag.touch()
    lift(house, hold)
    left = [i for i in ids if i not in failed]
    assert {j.state for j in house.settled(left)} == {State.COMPLETED}
    assert laid(house) is None

    for job_id in failed:
        house.store.retry(job_id, stage=None, by="ann", now_us=now_us())
    nudge_all(house.run_dir)
    assert {j.state for j in house.settled(failed)} == {State.COMPLETED}
    assert house.store.failures.groups().causes == 0


@long_alone
def test_a_service_that_is_still_down_trips_it_again(house: House) -> None:
    house.node()
    ids = house.submit("calls_out", *[{"flag": str(house.file("up"))}] * JOBS)
    first = until(lambda: laid(house), "the breaker trips")
    until(lambda: at_rest(house), "the rest is held")
    before = house.counts()["failed"]

    lift(house, first)

    second = until(lambda: laid(house), "it trips again")
    until(lambda: at_rest(house), "the rest is held again")
    assert second.id != first.id
    assert before + K <= house.counts()["failed"] < len(ids)
