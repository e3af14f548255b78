"""What fixity audits found."""

from datetime import timedelta

import pytest

from spinney.apps.ingest.inventory import fixity_checks
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.files.paths import NotAdmitted

from .words import ARK, NOON, audits, count, entry

DAY = timedelta(days=1)
TORN = "'map.tif' of version 1 has other bytes than were stored"


def test_those_never_audited_come_first_then_the_least_recent(inventory: Inventory) -> None:
    for n in range(4):
        inventory.record(entry(f"ark:/9/{n}"))
    inventory.record(entry("ark:/9/0", version=2, storage="second"))
    inventory.audited("ark:/9/1", NOON + 2 * DAY, 1, 3, [])
    inventory.audited("ark:/9/2", NOON, 1, 3, [])

    due = inventory.due_for_fixity(NOON + 2 * DAY)

    assert list(due.items()) == [
        ("ark:/9/0", "second"),
        ("ark:/9/3", "main"),
        ("ark:/9/2", "main"),
    ]
    assert len(inventory.due_for_fixity(NOON + 9 * DAY, limit=2)) == 2
    assert len(inventory.due_for_fixity(NOON + 9 * DAY)) == 4
    assert list(inventory.due_for_fixity(NOON + 9 * DAY, outside=["main", "third"])) == ["ark:/9/0"]


def test_damage_is_told_from_its_beginning_until_an_audit_finds_none(inventory: Inventory) -> None:
    inventory.record(entry())
    inventory.record(entry("ark:/9/whole"))

    inventory.audited(ARK, NOON, 1, 3, [TORN])
    inventory.audited(ARK, NOON + DAY, 1, 3, [TORN, "and more"])
    inventory.audited("ark:/9/whole", NOON, 1, 3, [])

    (damaged,) = inventory.damaged()
    assert (damaged.ark, damaged.collection, damaged.since) == (ARK, "maps", NOON)
    assert (damaged.audited, damaged.faults) == (NOON + DAY, [TORN, "and more"])
    assert inventory.damaged_since() == {ARK: NOON}
    assert [d.ark for d in inventory.damaged(arks=[ARK, "ark:/9/whole"])] == [ARK]
    assert inventory.damaged(arks=["ark:/9/whole"]) == []

    inventory.audited(ARK, NOON + 2 * DAY, 1, 3, [])

    assert inventory.damaged() == []
    assert inventory.damaged_since() == {}
    assert ARK not in inventory.due_for_fixity(NOON + 2 * DAY)
    assert ARK in inventory.due_for_fixity(NOON + 2 * DAY + DAY)


def test_an_answer_that_comes_late_changes_the_history_alone(inventory: Inventory) -> None:
    inventory.record(entry())
    inventory.audited(ARK, NOON, 1, 3, [])

    inventory.audited(ARK, NOON - DAY, 1, 3, [TORN])

    assert inventory.damaged() == []
    assert [audit.when for audit in audits(inventory)] == [NOON, NOON - DAY]


def test_the_same_answer_twice_is_kept_once(inventory: Inventory) -> None:
    inventory.record(entry())

    for _ in range(2):
        inventory.audited(ARK, NOON, 1, 3, [TORN])

    assert audits(inventory) == [(NOON, 1, 3, [TORN])]


def test_the_history_is_bounded_and_keeps_the_newest(inventory: Inventory) -> None:
    inventory.record(entry())

    for day in range(fixity_checks.KEPT + 5):
        inventory.audited(ARK, NOON + day * DAY, 1, 3, [TORN])

    kept = [NOON + day * DAY for day in range(fixity_checks.KEPT + 4, 4, -1)]
    assert [audit.when for audit in audits(inventory)] == kept
    assert count(inventory, "inv_audits") == fixity_checks.KEPT
    assert inventory.damaged()[0].since == NOON


def test_very_many_and_very_long_faults_are_bounded(inventory: Inventory) -> None:
    inventory.record(entry())

    inventory.audited(ARK, NOON, 5000, 3, (f"{n} " + "x" * 5000 for n in range(5000)))

    faults = audits(inventory)[0].faults
    assert len(faults) == fixity_checks.FAULTS_MAX + 1
    assert faults[-1] == f"and {5000 - fixity_checks.FAULTS_MAX} more"
    assert max(map(len, faults)) <= 1000


def test_an_object_that_is_not_there_has_no_audit(inventory: Inventory) -> None:
    with pytest.raises(NotAdmitted, match="ark:/9/none is not in the inventory"):
        inventory.audited("ark:/9/none", NOON, 0, 0, [])
    assert audits(inventory) == []
