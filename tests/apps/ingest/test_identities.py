"""Which object a deposit is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.apps.ingest.deposits import identities
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.apps.ingest.manifests import About
from spinney.files.paths import NotAdmitted

ONE, OTHER = "ark:/12345/one", "ark:/12345/other"


@pytest.fixture
def inventory(tmp_path: Path) -> Iterator[Inventory]:
    with open_inventory(f"sqlite:///{tmp_path / 'i.db'}") as opened_inventory:
        opened_inventory.init()
        opened_inventory.bind("maps", ["a", "b"], ONE)
        opened_inventory.bind("maps", ["c"], OTHER)
        yield opened_inventory


@pytest.mark.parametrize(
    ("ark", "local_ids", "expected"),
    [
        (None, (), None),
        (None, ("new",), None),
        (None, ("a",), ONE),
        (None, ("new", "b"), ONE),
        (ONE, (), ONE),
        (ONE, ("new",), ONE),
        (ONE, ("a", "b"), ONE),
        ("https://n2t.example.org/ark:12345/on-e", ("a",), ONE),  # another way to write the same
        ("ark:/12345/new", (), "ark:/12345/new"),
    ],
)
def test_who_it_is(
    inventory: Inventory, ark: str | None, local_ids: tuple[str, ...], expected: str | None
) -> None:
    assert identities.identify(inventory, "maps", About(primary_id=ark, local_ids=local_ids)) == expected


def test_local_ids_are_those_of_their_collection(inventory: Inventory) -> None:
    assert identities.identify(inventory, "coins", About(local_ids=("a",))) is None


@pytest.mark.parametrize(
    ("ark", "local_ids", "sentence"),
    [
        (None, ("a", "c"), f"its local ids belong to different objects ('a' is {ONE}, 'c' is {OTHER})"),
        (OTHER, ("a",), f"{OTHER} was given, but 'a' is {ONE}"),
        ("doi:10.1/x", (), "'doi:10.1/x' is no ARK"),
        (None, ("",), "the local id is empty"),
        (None, ("x" * 1001,), "is longer than 1000 bytes"),
        (None, ("a\0",), "contains a NUL"),
    ],
)
def test_what_cannot_be_is_said(
    inventory: Inventory, ark: str | None, local_ids: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(NotAdmitted) as caught:
        identities.identify(inventory, "maps", About(primary_id=ark, local_ids=local_ids))
    assert sentence in str(caught.value)
