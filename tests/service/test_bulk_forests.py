"""A retry of all that failed, on forests that grew and broke at random: cut off anywhere, each job opened once.

``SPINNEY_FOREST_SEED`` repeats one; ``SPINNEY_LONG=1`` grows many.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from contract.words import Clock, Site, kind, stage
from long_tests import LONG
from new_store import new_store
from spinney.features.bulk.service import Bulk
from spinney.model.errors import Refused
from spinney.model.jobs import Filter
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.bulk_runs import BulkStep, Report
from spinney.model.states import State
from spinney.store.sql import open_store

INNER = (
    kind("strict", "expand", "merge"),
    kind("layered", "expand", stage("merge", again=True), "publish"),
    kind("batch", "expand", stage("report", again=True), children="settled"),
    kind("line", "expand", "merge", serial=True, children="settled"),
)
LEAVES = (kind("one", "work"), kind("three", "first", "second", "third"))
SEED = os.environ.get("SPINNEY_FOREST_SEED")
ROUNDS = 1 if SEED else 200 if LONG else 10


class CutOff(BaseException):
    """What a SIGKILL is to the rest of a call."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    made.knows(*INNER, *LEAVES)
    yield made
    store.close()


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_all_that_failed_is_opened_once_and_all_of_it_completes(site: Site, round_: int) -> None:
    seed = int(SEED) if SEED else random.randrange(10**6)
    print(f"to see round {round_} again: SPINNEY_FOREST_SEED={seed}")
    draw = random.Random(seed)
    grow(site, draw)
    before = {job.id: job for job in site.store.jobs(Filter(), limit=10_000)}
    broken = {n for n, job in before.items() if job.state is State.FAILED and not counts_no_more(site, n)}
    ran = {n: Counter(site.stages_run(n)) for n in before}

    report = retry_cut_off(site, draw)

    assert report.refused == {}
    left = {n for n in site.ids(states=(State.FAILED,)) if not counts_no_more(site, n)}
    assert left == set()
    touched = Counter(
        job
        for entry, _ in site.store.audit.entries(limit=10_000)
        if entry.verb == "retry"
        for job in json.loads(entry.what)["jobs"]
    )
    assert set(touched.values()) <= {1}, "nothing is opened twice"
    assert set(touched) <= broken
    site.drain()
    after = {n: site.state(n) for n in before if not counts_no_more(site, n)}
    assert {n: s for n, s in after.items() if s is not State.COMPLETED} == {}
    again = {s.name for spec in INNER for s in spec.stages if s.again}
    for n, job in before.items():
        if job.state is State.COMPLETED:
            more = Counter(site.stages_run(n)) - ran[n]
            assert set(more) <= again, f"job {n} had completed, and ran {more} again"


def grow(site: Site, draw: random.Random) -> None:
    """Some trees up to four levels deep, of which a third of all attempts fail; some jobs are run again."""
    inner, leaves = [spec.name for spec in INNER], [spec.name for spec in LEAVES]
    for _ in range(draw.randint(2, 4)):
        site.submit_one(draw.choice(inner))
    needed = site.submit_one("one")
    site.submit_one("three", needs=(needed,))
    for _ in range(400):
        leases = site.claim(slots=draw.randint(1, 4))
        if not leases:
            break
        for lease in leases:
            depth = site.job(lease.job_id).lineage.count(".")
            if lease.stage == "expand":
                for _ in range(draw.randint(0, 3)):
                    site.spawn(
                        lease, draw.choice(leaves + (inner if depth < 3 else [])), n=draw.randint(1, 3)
                    )
            (site.fail if draw.random() < 0.3 else site.pass_)(lease)
            site.clock.forward(1)
        settled = site.ids(states=(State.COMPLETED, State.FAILED))
        if settled and draw.random() < 0.05:
            with suppress(Refused):  # one that would fail again, because one that it needs has failed
                site.rerun(draw.choice(settled))


def retry_cut_off(site: Site, draw: random.Random) -> Report:
    """Called until it comes through; returns the last report."""
    bulk = Bulk(store=site.store, clock=lambda: site.now, wake_nodes=lambda: None, by="ann")

    def cut(report: Report, step: BulkStep) -> None:
        if step.touched and draw.random() < 0.3:
            raise CutOff

    while True:
        plan = bulk.plan(Order(verb=Verb.RETRY), Filter())
        try:
            return bulk.run(plan, at_once=draw.choice([1, 2, 50]), on_step=cut)
        except CutOff:
            continue


def counts_no_more(site: Site, job_id: int) -> bool:
    """It, or something above it, was borne by a stage that has run again since."""
    job = site.job(job_id)
    line = tuple(int(part) for part in job.lineage.split("."))
    return bool(site.ids(ids=line, superseded=True))
