"""Bulk verbs on SQL: what one transaction does and leaves, and when it ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.everything import STANDS, TYPES, fill
from contract.test_bulk import ANN, LAWFUL, PARTICULARS, apply
from contract.words import Clock, Site, submission
from new_store import new_store
from spinney.features.bulk.sql import SqlBulk
from spinney.features.bulk.verb_step import ENOUGH_S, VerbStep
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import ALLOWED_STATES, Order, Verb
from spinney.model.operators.bulk_runs import BulkStep
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import State
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.submit import staging
from store.test_plans import walks


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    yield Site(store, Clock())
    store.close()


@pytest.mark.parametrize("verb", Verb)
def test_each_job_is_done_or_refused_with_a_sentence(site: Site, verb: Verb) -> None:
    made = fill(site)
    before = everything(site)
    done, refused = set(), set()
    for name in STANDS:
        step = tried_and_taken_back(site, verb, made[name])
        assert everything(site) == before, f"{name} left something behind"
        if step.refused:
            refused.add(name)
            assert (step.touched, list(step.refused)) == ([], [made[name]]), name
            assert f"job {made[name]}" in step.refused[made[name]]
        else:
            done.add(name)
            assert step.touched or step.instead, name

    assert done == LAWFUL[verb]
    assert refused == set(STANDS) - done


def everything(site: Site) -> list[Any]:
    """How all jobs stand, in every respect that a verb could change."""
    return site.store.jobs(Filter(), limit=10_000)


def session_of(site: Site) -> Any:
    assert isinstance(site.store, SqlStore)
    return site.store.bulk._session


def tried_and_taken_back(site: Site, verb: Verb, job_id: int) -> BulkStep:
    """What a step would say, undone with its transaction."""
    session, order = session_of(site), Order(verb=verb, **PARTICULARS.get(verb, {}))

    class Back(Exception):
        """Takes the transaction back."""

    try:
        with session.write() as tx:
            step = VerbStep(tx, session, order, ANN, None, (), {}, site.now, lambda: 0.0).run([job_id])
            raise Back
    except Back:
        return step


def test_a_step_ends_in_time_and_tells_what_it_did_not_reach(site: Site) -> None:
    site.knows(*TYPES)
    jobs = site.submit(n=5)
    ticks = iter(n * ENOUGH_S * 0.6 for n in range(100))
    slow = SqlBulk(session_of(site), clock=lambda: next(ticks))

    step = slow.apply(Order(verb=Verb.PRIORITY, priority=1), jobs, ANN, now_us=site.now)

    assert (step.touched, step.unfinished) == (jobs[:2], jobs[2:])
    assert [site.job(j).priority for j in jobs] == [1, 1, 50, 50, 50]


def test_a_job_of_a_long_submission_that_is_not_in_place_yet_is_moved_once(site: Site) -> None:
    site.knows(*TYPES, queues=[QueueSpec(name="urgent")])
    step, calls = staging.step, iter(range(100))

    def once(*how: Any) -> int | None:
        return step(*how) if next(calls) == 0 else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "step", once)
        ids = site.submit_all(submission("one", n=5_000))
    job = ids[-1]
    assert site.state(job) is State.PENDING

    apply(site, Verb.MOVE, job, queue="urgent")
    apply(site, Verb.PRIORITY, job, priority=1)
    site.sweep()

    assert site.claim_one().job_id == job
    assert job not in [lease.job_id for lease in site.claim()]
    assert sum(site.count().values()) == 5_000


@pytest.mark.parametrize("verb", Verb)
def test_no_statement_of_a_step_walks_a_growing_table(site: Site, verb: Verb) -> None:
    made = fill(site)
    seen: list[str] = []
    writer, _ = session_of(site).database._open_writer()
    writer.set_trace_callback(seen.append)
    which = Filter(
        states=(*ALLOWED_STATES[verb],),
        message="a",
        node="oak",
        queue="default",
        superseded=False,
        tree_at_rest=True,
    )

    apply(site, verb, *(made[name] for name in LAWFUL[verb]), tree=True)
    apply(site, verb, *(made[name] for name in LAWFUL[verb]), which=which)

    assert walks(Traced(site.store, seen)) == []


class Traced:
    """What ``walks`` looks at."""

    def __init__(self, store: Any, seen: list[str]) -> None:
        self.store, self.seen = store, seen
