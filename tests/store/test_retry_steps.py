"""A retry of very many children goes in steps: what others see between two of them, and what a fault leaves."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from contract.words import USUAL, Clock, Site
from new_store import new_store
from spinney.features.bulk.sql import SqlBulk
from spinney.features.bulk.step_run import STEP
from spinney.model.errors import StoreUnusable
from spinney.model.operators.bulk_orders import Order
from spinney.model.operators.bulk_runs import BulkStep
from spinney.model.states import State
from spinney.store.sql import open_store

CHILDREN = 120


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    # Time stands still for it, so that a step ends by the number of its jobs alone.
    vars(store)["bulk"] = SqlBulk(store.session, lambda: 0.0)
    made = Site(store, Clock())
    made.knows(*USUAL)
    yield made
    store.close()


def failed_family(site: Site) -> tuple[int, list[int]]:
    """A parent that failed because all its children did."""
    parent, born = site.family(n=CHILDREN)
    site.drain(failing=born)
    assert site.count() == {State.FAILED: 1 + CHILDREN}
    return parent, born


def before_each_step(monkeypatch: pytest.MonkeyPatch, look: Callable[[int], None]) -> None:
    """Call ``look`` with the number of the step (from 0) before each transaction that is to open children."""
    apply = SqlBulk.apply
    steps: list[int] = []

    def watched(bulk: SqlBulk, order: Order, job_ids: Sequence[int], *args: Any, **how: Any) -> BulkStep:
        if len(job_ids) > 1:  # the first is to open the parent
            steps.append(len(job_ids))
            look(len(steps) - 1)
        return apply(bulk, order, job_ids, *args, **how)

    monkeypatch.setattr(SqlBulk, "apply", watched)


def test_each_step_of_a_long_retry_is_there_for_others_before_the_next(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, _ = failed_family(site)
    other = Site(open_store(f"sqlite:///{tmp_path}/x.db"), site.clock)
    seen: list[int] = []
    before_each_step(monkeypatch, lambda _: seen.append(other.count().get(State.PENDING, 0)))

    site.retry(parent)

    assert seen == list(range(0, CHILDREN, STEP))
    assert len(seen) > 1
    assert other.count() == {State.PENDING: CHILDREN, State.WAITING: 1}
    other.store.close()


@pytest.mark.parametrize("when", ["at once", "after what was opened has run"])
def test_a_retry_that_broke_off_between_its_steps_is_completed_by_another(
    site: Site, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    parent, born = failed_family(site)

    def fault(step: int) -> None:
        if step == 1:
            raise StoreUnusable("the disk is full")

    with monkeypatch.context() as patch:
        before_each_step(patch, fault)
        with pytest.raises(StoreUnusable, match="full"):
            site.retry(parent)

    assert site.count() == {State.PENDING: STEP, State.FAILED: CHILDREN - STEP, State.WAITING: 1}
    ran = [] if when == "at once" else site.drain()

    site.retry(parent)

    ran += site.drain()
    assert ran[-1] == (parent, "merge")
    assert sorted(ran[:-1]) == [(child, "work") for child in born]
    assert site.count() == {State.COMPLETED: 1 + CHILDREN}
