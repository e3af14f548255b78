"""Holds in somebody's name, on a real store: laid, swept with pauses, lifted."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from new_store import new_store
from spinney.control import Control
from spinney.features.holds.service import SWEEP_REST_FACTOR, Holds
from spinney.features.holds.sql import STEP
from spinney.model.errors import BadName, Refused, UnknownType, UsageError
from spinney.model.jobs import Filter, Submission
from spinney.model.settings.holds import Scope
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.contract import Store
from spinney.store.sql import open_store

JOBS = 7_000


class Cut(Exception):
    """The process was killed here."""


class Rests:
    """In place of sleeping: notes how long, and may be the last thing that happens."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.dies_at: int | None = None

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self.dies_at:
            raise Cut


class Wakeups:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(new_store(tmp_path / "jobs.db"))
    store.register([TypeSpec(name="resize", stages=(StageSpec(name="run"),))], [])
    store.submit([Submission(type="resize", params=["{}"] * JOBS, collection="c")], now_us=1)
    yield store
    store.close()


@pytest.fixture
def wakeups() -> Wakeups:
    return Wakeups()


@pytest.fixture
def rests() -> Rests:
    return Rests()


@pytest.fixture
def holds(store: Store, wakeups: Wakeups, rests: Rests) -> Holds:
    """Every step takes a second by the store's clock."""
    ticks, seconds = itertools.count(time.time_ns() // 1000), itertools.count()
    store.holds._clock = lambda: float(next(seconds))  # type: ignore[attr-defined]
    return Holds(store=store, clock=lambda: next(ticks), wake_nodes=wakeups, by="ann", rest=rests)


def states(store: Store) -> dict[str, int]:
    return {str(k): v for k, v in store.counts(Filter()).items() if v}


def test_control_has_them(store: Store, wakeups: Wakeups) -> None:
    control = Control(store=store, clock=lambda: time.time_ns() // 1000, wake_nodes=wakeups, by="ann")

    hold = control.holds.lay(Scope.TYPE, "resize", reason="disk swap")

    assert (hold.by, hold.scope, hold.name, hold.reason) == ("ann", Scope.TYPE, "resize", "disk swap")
    assert store.holds.all() == [hold]
    assert wakeups.count == 1


def test_between_steps_others_may_write_four_times_as_long(store: Store, holds: Holds, rests: Rests) -> None:
    holds.lay(Scope.COLLECTION, "c", reason="disk swap")

    holds.sweep()

    assert states(store) == {"held": JOBS}
    assert rests.seconds == [SWEEP_REST_FACTOR * 1.0] * (JOBS // STEP)


def test_a_sweep_tells_the_nodes_what_it_lets_go(store: Store, holds: Holds, wakeups: Wakeups) -> None:
    hold = holds.lay(Scope.EVERYTHING, reason="disk swap")
    holds.sweep()
    holds.lift(hold.id)
    before = wakeups.count

    holds.sweep()

    assert states(store) == {"pending": JOBS}
    assert wakeups.count > before


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_cut_off_between_any_two_steps_it_is_finished_by_the_next_who_asks(
    store: Store, holds: Holds, rests: Rests, verb: str
) -> None:
    hold = holds.lay(Scope.TYPE, "resize", reason="disk swap")
    if verb == "release":
        holds.sweep()
        holds.lift(hold.id)
    for _ in range(3):
        rests.dies_at = len(rests.seconds) + 1
        with pytest.raises(Cut):
            holds.sweep()
        assert set(states(store)) == {"held", "pending"}

    rests.dies_at = None
    holds.sweep()

    assert states(store) == {"held" if verb == "hold" else "pending": JOBS}


def test_a_hold_laid_again_after_it_was_cut_off_is_the_same(store: Store, holds: Holds, rests: Rests) -> None:
    first = holds.lay(Scope.TYPE, "resize", reason="disk swap")
    rests.dies_at = 1
    with pytest.raises(Cut):
        holds.sweep()

    again = holds.lay(Scope.TYPE, "resize", reason="disk swap")
    holds.sweep()

    assert (again.id, states(store)) == (first.id, {"held": JOBS})


def test_all_holds_on_one_thing_are_lifted_together_and_others_are_not(store: Store, holds: Holds) -> None:
    first = holds.lay(Scope.TYPE, "resize", reason="disk swap")
    other = holds.lay(Scope.QUEUE, "default", reason="disk swap")
    second = holds.lay(Scope.TYPE, "resize", reason="another reason")

    lifted = holds.lift_all(Scope.TYPE, "resize", reason="done")

    assert [h.id for h in lifted] == [first.id, second.id]
    assert store.holds.all() == [other]
    assert [e.reason for e, _ in store.audit.entries() if e.verb == "release"] == ["done"] * 2


def test_what_is_not_held_cannot_be_lifted(holds: Holds) -> None:
    with pytest.raises(Refused, match="no hold on type 'resize'"):
        holds.lift_all(Scope.TYPE, "resize")
    with pytest.raises(Refused, match="no hold on everything"):
        holds.lift_all(Scope.EVERYTHING)


def test_what_cannot_be_meant_lays_nothing(store: Store, holds: Holds, wakeups: Wakeups) -> None:
    with pytest.raises(UsageError, match="before it begins"):
        holds.lay(Scope.EVERYTHING, reason="disk swap", until_us=1)
    with pytest.raises(BadName, match="cannot be a reason"):
        holds.lay(Scope.EVERYTHING, reason="")
    with pytest.raises(BadName, match="cannot be a reason"):
        holds.lay(Scope.EVERYTHING, reason="two\nlines")
    with pytest.raises(UnknownType, match="did you mean 'resize'"):
        holds.lay(Scope.TYPE, "resise", reason="disk swap")

    assert store.holds.all() == []
    assert wakeups.count == 0
