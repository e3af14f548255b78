"""The store that other tests find filled holds what it says."""

from spinney.model.states import State
from spinney.store.parts import Store

from .everything import STANDS, fill
from .words import Clock, Site


def test_every_state_is_there_and_every_job_stands_where_it_says(store: Store, clock: Clock) -> None:
    site = Site(store, clock)

    made = fill(site)

    assert {name: site.state(job) for name, job in made.jobs.items()} == STANDS
    assert set(STANDS.values()) == set(State)
    assert sorted(made.jobs.values()) == site.ids(), "there are no others"


def test_what_waits_says_for_what(store: Store, clock: Clock) -> None:
    site = Site(store, clock)
    made = fill(site)

    assert {
        name: site.job(made[name]).waits_for for name, state in STANDS.items() if state is State.WAITING
    } == {
        "waiting for a need": "needs",
        "waiting for a lock": "lock:receiver:1",
        "waiting batch": "children",
        "serial root": "children",
        "serial second": "serial",
    }
