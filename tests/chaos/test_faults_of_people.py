"""Jobs are cancelled in every state in which they can be found, while nodes are killed."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from chaos_load import Grove, Harvest, works
from checker import Cancel
from node_fixtures import now_us
from test_faults_of_nodes import kill_a_worker, kill_the_node

import job_verbs
from long_tests import LONG, long_alone
from spinney.model.errors import SpinneyError
from spinney.model.jobs import Filter
from spinney.model.states import LEASED, SETTLED, State
from waiting import until

EACH = 20 if LONG else 2
"""So many are cancelled in each of the states at least."""
OPEN = frozenset(State) - SETTLED
_HOUR_US = 3_600_000_000


@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgresql", marks=long_alone)])
def test_jobs_are_cancelled_in_every_state(
    plant: Callable[..., Grove], tell: Callable[[str, str, Harvest], None], store: str
) -> None:
    grove = plant(store)
    for name in ("oak", "elm") if LONG else ("oak",):
        grove.start(name)
    states: Counter[State] = Counter()
    standing: list[int] = []
    with grove.under_load(80 if LONG else 20):
        works(grove)
        give_up = time.monotonic() + 120
        while (not grove.blows or any(states[state] < EACH for state in OPEN)) and time.monotonic() < give_up:
            # Not so many that each slot has one that ends only when it is told, and what is to be held never begins
            if sum(grove.cluster.store.job(job_id).state not in SETTLED for job_id in standing[::4]) < 2:
                standing += _in_states_that_last(grove)
            for job_id in _some_open(grove):
                states[cancel(grove, job_id)] += 1
            grove.rest(0.2)
            node = grove.nodes[grove.draw.choice(sorted(grove.nodes))]
            due = not grove.blows or grove.draw.random() < 0.5
            if due and node.process.poll() is None and node.info() is not None:
                strike = grove.draw.choice([kill_a_worker, kill_the_node] if LONG else [kill_a_worker])
                grove.blow(partial(strike, node, grove.draw))
        assert all(states[state] >= EACH for state in OPEN), states
    # What waited for somebody is cancelled, too, so that all can settle
    for job_id in standing:
        if grove.cluster.store.job(job_id).state not in SETTLED:
            cancel(grove, job_id)
    # And what has settled stays as it is
    until(lambda: set(grove.cluster.counts()) <= SETTLED, "all settle", deadline_s=60)
    for job_id in grove.accepted[:50]:
        before = grove.cluster.store.job(job_id)
        with contextlib.suppress(SpinneyError):
            assert not job_verbs.cancel(
                grove.cluster.store, job_id, tree=True, by="ann", reason=None, now_us=now_us()
            ).ids
        assert grove.cluster.store.job(job_id) == before
    tell("jobs cancelled in every state", {"sqlite": "SQLite"}.get(store, "PostgreSQL"), grove.harvest())


def cancel(grove: Grove, job_id: int) -> State:
    """Cancel it, and remember where it stood; returns its state before."""
    store = grove.cluster.store
    before = store.job(job_id)
    try:
        job_verbs.cancel(store, job_id, tree=True, by="ann", reason="enough", now_us=now_us())
    except SpinneyError:
        assert store.job(job_id).state in SETTLED, "what is open can be cancelled"
        return store.job(job_id).state
    at_s = time.monotonic()
    settled = store.job(job_id).state is State.CANCELLED
    grove.cancels.append(Cancel(job_id=job_id, stage=before.stage, at_s=at_s, settled=settled))
    return before.state


def _in_states_that_last(grove: Grove) -> list[int]:
    """A job that runs until it is told, and others that wait for a time, for it, or for a person."""
    never = {"file": str(grove.place / "never")}
    (runs,) = grove.submit([("waits", never)])
    made = [runs, *grove.submit([("parks", {})])]
    made += grove.submit([("plain", {})], at_us=now_us() + _HOUR_US)
    made += grove.submit([("plain", {})], needs=(runs,))
    return made


def _some_open(grove: Grove) -> Iterator[int]:
    """One of each state in which something stands, at random."""
    for state in sorted(OPEN):
        jobs = grove.cluster.store.jobs(Filter(states=(state,)), limit=50, newest=state in LEASED)
        jobs = [job for job in jobs if job.parent_id is None]
        if jobs:
            yield grove.draw.choice(jobs).id
