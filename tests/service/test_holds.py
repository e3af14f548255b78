"""Holds in somebody's name, on a real store: laid, swept with pauses, lifted."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from new_store import new_store
from spinney.commands.control import Control
from spinney.define.job.options import Options
from spinney.features.holds.commands import CountHeld, LayHold, LiftHold, ListHolds, lift_holds, sweep_holds
from spinney.features.holds.sql import STEP
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import BadName, NoSuch, Refused, UnknownType, UsageError
from spinney.model.jobs import Filter, Submission
from spinney.model.settings.holds import SWEEP_REST_FACTOR, Scope
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.parts import Store
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
def control(store: Store, wakeups: Wakeups) -> Control:
    """Every step takes a second by the store's clock."""
    ticks, seconds = itertools.count(time.time_ns() // 1000), itertools.count()
    store.holds._clock = lambda: float(next(seconds))
    return Control(store=store, clock=lambda: next(ticks), wake_nodes=wakeups, by="ann")


def states(store: Store) -> dict[str, int]:
    return {str(k): v for k, v in store.counts(Filter()).items() if v}


def test_a_hold_is_laid_in_somebodys_name(store: Store, control: Control, wakeups: Wakeups) -> None:
    hold = control.do(LayHold(scope=Scope.TYPE, name="resize", reason="disk swap"))

    assert (hold.by, hold.scope, hold.name, hold.reason) == ("ann", Scope.TYPE, "resize", "disk swap")
    assert store.holds.all() == [hold]
    assert wakeups.count == 1


def test_between_steps_others_may_write_four_times_as_long(
    store: Store, control: Control, rests: Rests
) -> None:
    control.do(LayHold(scope=Scope.COLLECTION, name="c", reason="disk swap"))

    sweep_holds(control, rests)

    assert states(store) == {"held": JOBS}
    assert rests.seconds == [SWEEP_REST_FACTOR * 1.0] * (JOBS // STEP)


def test_a_sweep_tells_the_nodes_what_it_lets_go(
    store: Store, control: Control, rests: Rests, wakeups: Wakeups
) -> None:
    hold = control.do(LayHold(scope=Scope.EVERYTHING, reason="disk swap"))
    sweep_holds(control, rests)
    control.do(LiftHold(hold=hold.id))
    before = wakeups.count

    sweep_holds(control, rests)

    assert states(store) == {"pending": JOBS}
    assert wakeups.count > before


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_cut_off_between_any_two_steps_it_is_finished_by_the_next_who_asks(
    store: Store, control: Control, rests: Rests, verb: str
) -> None:
    hold = control.do(LayHold(scope=Scope.TYPE, name="resize", reason="disk swap"))
    if verb == "release":
        sweep_holds(control, rests)
        control.do(LiftHold(hold=hold.id))
    for _ in range(3):
        rests.dies_at = len(rests.seconds) + 1
        with pytest.raises(Cut):
            sweep_holds(control, rests)
        assert set(states(store)) == {"held", "pending"}

    rests.dies_at = None
    sweep_holds(control, rests)

    assert states(store) == {"held" if verb == "hold" else "pending": JOBS}


def test_a_hold_laid_again_after_it_was_cut_off_is_the_same(
    store: Store, control: Control, rests: Rests
) -> None:
    first = control.do(LayHold(scope=Scope.TYPE, name="resize", reason="disk swap"))
    rests.dies_at = 1
    with pytest.raises(Cut):
        sweep_holds(control, rests)

    again = control.do(LayHold(scope=Scope.TYPE, name="resize", reason="disk swap"))
    sweep_holds(control, rests)

    assert (again.id, states(store)) == (first.id, {"held": JOBS})


def test_all_holds_on_one_thing_are_lifted_together_and_others_are_not(
    store: Store, control: Control
) -> None:
    first = control.do(LayHold(scope=Scope.TYPE, name="resize", reason="disk swap"))
    other = control.do(LayHold(scope=Scope.QUEUE, name="default", reason="disk swap"))
    second = control.do(LayHold(scope=Scope.TYPE, name="resize", reason="another reason"))

    lifted = lift_holds(control, Scope.TYPE, "resize", reason="done")

    assert [h.id for h in lifted] == [first.id, second.id]
    assert store.holds.all() == [other]
    assert [e.reason for e, _ in store.audit.entries() if e.verb == "release"] == ["done"] * 2


def test_what_is_not_held_cannot_be_lifted(control: Control) -> None:
    with pytest.raises(Refused, match="no hold on type resize"):
        lift_holds(control, Scope.TYPE, "resize")
    with pytest.raises(Refused, match="no hold on everything"):
        lift_holds(control, Scope.EVERYTHING)


def test_what_cannot_be_meant_lays_nothing(store: Store, control: Control, wakeups: Wakeups) -> None:
    with pytest.raises(UsageError, match="before it begins"):
        control.do(LayHold(scope=Scope.EVERYTHING, reason="disk swap", until=1))
    with pytest.raises(BadName, match="cannot be a reason"):
        control.do(LayHold(scope=Scope.EVERYTHING, reason=""))
    with pytest.raises(BadName, match="cannot be a reason"):
        control.do(LayHold(scope=Scope.EVERYTHING, reason="two\nlines"))
    with pytest.raises(UnknownType, match="did you mean 'resize'"):
        control.do(LayHold(scope=Scope.TYPE, name="resise", reason="disk swap"))

    assert store.holds.all() == []
    assert wakeups.count == 0


def test_held_jobs_are_counted_within_the_limits(control: Control, rests: Rests) -> None:
    control.submit("resize", [{}], Options(collection="alpha"))
    hold = control.do(LayHold(scope=Scope.TYPE, name="resize", reason="x"))
    sweep_holds(control, rests)
    limited = replace(control, rights=Rights(role=Role.VIEWER, within=AccessScope(collections=("alpha",))))

    assert control.do(CountHeld(hold=hold.id)).jobs == JOBS + 1
    assert limited.do(CountHeld(hold=hold.id)).jobs == 1
    with pytest.raises(NoSuch):
        control.do(CountHeld(hold=hold.id + 1))


def test_released_holds_are_listed_within_the_limits(store: Store, control: Control) -> None:
    inside, outside = (
        control.submit("resize", [{}], Options(collection=name)).ids[0] for name in ("alpha", "beta")
    )
    for scope, name in (
        (Scope.TREE, str(inside)),
        (Scope.TREE, str(outside)),
        (Scope.COLLECTION, "beta"),
        (Scope.SUBMITTER, "ben"),
    ):
        control.do(LiftHold(hold=control.do(LayHold(scope=scope, name=name, reason="disk swap")).id))
    limited = replace(control, rights=Rights(role=Role.VIEWER, within=AccessScope(collections=("alpha",))))

    assert [hold.name for hold in limited.do(ListHolds(released=True)).items] == [str(inside)]
    assert len(control.do(ListHolds(released=True)).items) == 4
