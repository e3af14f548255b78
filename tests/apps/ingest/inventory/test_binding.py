"""Local ids and numbers."""

import pytest

from spinney.apps.ingest.inventory import LocalIdTaken
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.files.paths import NotAdmitted

from .words import ARK

OTHER = "ark:/99999/other"


def test_a_local_id_is_bound_before_its_object_is_there(inventory: Inventory) -> None:
    inventory.bind("maps", ["m-1", "m-2"], ARK)

    assert inventory.ark_of("maps", "m-1") == ARK
    assert inventory.ark_of("maps", "m-3") is None
    assert inventory.find(local_id="m-1") == []


def test_a_local_id_belongs_to_its_collection(inventory: Inventory) -> None:
    inventory.bind("maps", ["1"], ARK)
    inventory.bind("letters", ["1"], OTHER)

    assert inventory.ark_of("maps", "1") == ARK
    assert inventory.ark_of("letters", "1") == OTHER


def test_binding_again_changes_nothing_and_adds_what_is_new(inventory: Inventory) -> None:
    inventory.bind("maps", ["m-1"], ARK)

    inventory.bind("maps", ["m-1", "m-1", "m-2"], ARK)

    assert inventory.ark_of("maps", "m-2") == ARK


def test_what_was_bound_is_free_again_and_nothing_else(inventory: Inventory) -> None:
    inventory.bind("maps", ["m-1"], ARK)
    inventory.bind("letters", ["m-2"], ARK)
    inventory.bind("maps", ["m-1", "m-2", "m-3"], ARK)

    inventory.unbind("maps", ["m-2", "m-3", "m-4"], ARK)
    inventory.unbind("maps", ["m-1"], OTHER)

    assert [inventory.ark_of("maps", name) for name in ("m-1", "m-2", "m-3")] == [ARK, None, None]
    assert inventory.ark_of("letters", "m-2") == ARK


def test_of_several_all_are_bound_or_none(inventory: Inventory) -> None:
    inventory.bind("maps", ["m-2"], ARK)

    with pytest.raises(LocalIdTaken) as taken:
        inventory.bind("maps", ["m-1", "m-2", "m-3"], OTHER)

    assert (taken.value.local_id, taken.value.ark) == ("m-2", ARK)
    assert inventory.ark_of("maps", "m-1") is None
    assert inventory.ark_of("maps", "m-3") is None


def test_very_many_are_bound_at_once(inventory: Inventory) -> None:
    many = [f"m-{n}" for n in range(1200)]
    inventory.bind("maps", many[1100:1101], OTHER)

    with pytest.raises(LocalIdTaken, match="m-1100"):
        inventory.bind("maps", many, ARK)
    inventory.bind("maps", many[:1100], ARK)

    assert inventory.ark_of("maps", "m-1099") == ARK


def test_a_key_keeps_its_number(inventory: Inventory) -> None:
    numbers = [inventory.number("fk4", key) for key in ("jid-1", "jid-2", "jid-1")]

    assert numbers == [1, 2, 1]
    assert inventory.number("other", "jid-1") == 1


@pytest.mark.parametrize(("minter", "key"), [("", "k"), ("m", ""), ("m", "k\0"), ("m", "k" * 1001)])
def test_what_is_no_key_gets_no_number(inventory: Inventory, minter: str, key: str) -> None:
    with pytest.raises(NotAdmitted):
        inventory.number(minter, key)
