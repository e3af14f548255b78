"""What operators, retention and time do to many jobs at once, in jobs a second, without a node beside it."""

import time
from collections.abc import Callable, Mapping

from benchmarks.holds import CHUNK, tree
from benchmarks.place import Site, site
from spinney.commands.control import Control
from spinney.features.bulk.service import Bulk
from spinney.model.jobs import Filter, Submission
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.model.types import StageSpec, TypeSpec

JOBS = 2 * CHUNK
ACTOR = Actor(by="bench", call="benchmark")


def many_jobs() -> Mapping[str, float]:
    """Return the jobs a second of a cancelled tree, of a retry of all of it, of jobs that become due, and of jobs whose
    retention time is over."""
    with site() as here:
        here.store.register([TypeSpec(name="leaf", stages=(StageSpec(name="run"),))], [])
        top = tree(here, "leaf", leaves=JOBS)
        leaves = Filter(root_id=top, states=(State.CANCELLED,))
        figures = {
            "cancel a tree, jobs/s": _rate(
                lambda: _run(here, Order(verb=Verb.CANCEL, tree=True), ids=(top,))
            ),
            "retry, jobs/s": _rate(lambda: _run(here, Order(verb=Verb.RETRY), job_filter=leaves)),
        }
        now_us = _now_us()
        due = Submission(type="noop", params=['{"text":"x"}'] * JOBS, at_us=now_us + 1_000)
        here.store.submit([due], now_us=now_us)
        figures["jobs that become due, jobs/s"] = _rate(lambda: _sweep(here, now_us + 1_000_000))
        _run(here, Order(verb=Verb.CANCEL), job_filter=Filter(type="noop"))
        here.store.retention.set("noop", "cancelled", 0, ACTOR, now_us=now_us)
        figures["retention, without its pauses, jobs/s"] = _rate(lambda: _remove(here))
        return figures


def _rate(change: Callable[[], int]) -> float:
    """Return the jobs a second of a change, which returns how many jobs it has changed."""
    begun_s = time.perf_counter()
    jobs = change()
    if jobs < JOBS:
        raise RuntimeError(f"only {jobs:,} jobs were changed: no figure")
    return jobs / (time.perf_counter() - begun_s)


def _run(here: Site, order: Order, **jobs: object) -> int:
    """Carry out an order, as the command line does after its question."""
    bulk = Control(store=here.store, clock=_now_us, wake_nodes=lambda: None, by="bench").part(Bulk)
    return bulk.run(bulk.plan(order, **jobs)).touched  # type: ignore[arg-type]


def _sweep(here: Site, now_us: int) -> int:
    """Sweep until nothing is due, as the leader does, and return how many jobs were."""
    due = 0
    while (step := here.store.sweep(now_us=now_us)).more:
        due += step.due
    return due + step.due


def _remove(here: Site) -> int:
    """Walk over all jobs, as the leader does once an hour, and return how many were removed."""
    now_us = _now_us() + 1_000_000
    here.store.retention.confirm_clock(now_us=now_us)
    removed, after = 0, 0
    while True:
        ids, next_after = here.store.retention.sweep(after, ACTOR, now_us=now_us)
        removed += len(ids)
        if next_after is None:
            return removed
        after = next_after


def _now_us() -> int:
    return time.time_ns() // 1000
