"""The doctor as a person has it: over all examiners, round after round, until nothing can be repaired."""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from contract.behind import sqlite_file
from contract.words import Clock, Site, kind
from new_store import new_store
from spinney.commands.control import Control
from spinney.features.doctor.checks import Check, Violation
from spinney.features.doctor.service import ROUNDS, Doctor
from spinney.model.errors import Refused, UsageError
from spinney.model.rights.actor import Actor
from spinney.model.states import State
from spinney.store.sql import open_store


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    made.knows(kind("one", "work"), kind("parent", "expand", "merge"))
    yield made
    store.close()


class Wakeups:
    count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def wakeups() -> Wakeups:
    return Wakeups()


@pytest.fixture
def control(site: Site, wakeups: Wakeups) -> Control:
    return Control(store=site.store, clock=lambda: site.now, wake_nodes=wakeups, by="ann")


class Other:
    """An examiner of something else, with so many layers of damage, each behind the other."""

    def __init__(self, layers: int, refuse: bool = False, stubborn: bool = False) -> None:
        self.layers, self.refuse, self.stubborn = layers, refuse, stubborn
        self.repaired: list[str] = []

    def checks(self) -> Sequence[Check]:
        return [Check(rule="layer", about="There is nothing below.", repairs=True)]

    def examine(
        self, only: Collection[str] | None = None, *, deep: bool = False, now_us: int
    ) -> Iterator[Violation]:
        if self.layers and (only is None or "layer" in only):
            yield Violation(
                rule="layer", subject=f"layer {self.layers}", sentence="…", repair="takes it away"
            )

    def repair(self, violation: Violation, actor: Actor, *, now_us: int) -> bool:
        if self.refuse:
            raise Refused("not now")
        self.repaired.append(f"{violation.subject} by {actor.by}")
        self.layers -= not self.stubborn
        return True


def damage(site: Site, sql: str) -> None:
    with closing(sqlite3.connect(sqlite_file(site.store), isolation_level=None)) as database:
        assert database.execute(sql).rowcount


def test_the_store_and_others_are_examined_and_repaired_as_one(
    control: Control, site: Site, wakeups: Wakeups
) -> None:
    job = site.submit_one()
    damage(site, "delete from ready")
    other = Other(3)

    assert [v.rule for v in control.part(Doctor).examine(others=[other])] == ["pending-nowhere", "layer"]
    treated = list(control.part(Doctor).repair(others=[other]))

    assert [(t.violation.subject, t.repaired, t.error) for t in treated] == [
        (f"job {job}", True, None),
        ("layer 3", True, None),
        ("layer 2", True, None),
        ("layer 1", True, None),
    ]
    assert other.repaired == ["layer 3 by ann", "layer 2 by ann", "layer 1 by ann"]
    assert list(control.part(Doctor).examine(others=[other])) == []
    assert wakeups.count > 0
    assert site.drain() == [(job, "work")]


def test_what_refuses_is_told_once_and_the_rest_is_repaired(control: Control, site: Site) -> None:
    site.submit_one()
    damage(site, "delete from ready")

    treated = list(control.part(Doctor).repair(others=[Other(1, refuse=True)]))

    assert [(t.violation.rule, t.repaired, t.error) for t in treated] == [
        ("pending-nowhere", True, None),
        ("layer", False, "not now"),
    ]


def test_a_repair_that_mends_nothing_comes_to_an_end(control: Control) -> None:
    assert len(list(control.part(Doctor).repair(others=[Other(1, stubborn=True)]))) == ROUNDS


def test_it_may_be_left_off_after_any_step(control: Control, site: Site) -> None:
    site.submit(n=5)
    damage(site, "delete from ready")

    next(control.part(Doctor).repair())

    assert len(list(control.part(Doctor).examine())) == 4
    assert len(site.store.audit.entries()) == 1


def test_rules_that_there_are_not_are_refused_with_the_nearest(control: Control) -> None:
    with pytest.raises(UsageError, match=r"no rule 'layr' \(did you mean 'layer'\?\); 'spinney"):
        list(control.part(Doctor).examine(["layr"], others=[Other(1)]))
    with pytest.raises(UsageError, match="no rule 'layer'"):
        list(control.part(Doctor).repair(["layer"]))
    assert [c.rule for c in control.part(Doctor).checks([Other(1)])][-1] == "layer"


def test_a_node_that_is_known_to_be_dead_is_buried(control: Control, site: Site, wakeups: Wakeups) -> None:
    elm = site.node("elm")
    job = site.submit_one()
    site.run(job, elm)
    site.clock.forward(120)

    assert control.part(Doctor).recover_dead_node("elm") == [job]

    assert site.state(job) is State.PENDING
    assert wakeups.count == 1
    assert list(control.part(Doctor).examine()) == []
    with pytest.raises(Refused):
        control.part(Doctor).recover_dead_node("elm")
