"""Each test runs on both kinds of database, with tables that are there and empty."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from servers import postgres_schema
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.inventory.inventory import Inventory

from ..new_inventory import new_inventory, new_inventory_on_server

KINDS = ("sqlite", "postgresql")


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        new_inventory(tmp_path / "inventory.db") if request.param == "sqlite" else new_inventory_on_server()
    )


@pytest.fixture(params=KINDS)
def bare_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where nothing has been made yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/new/inventory.db"
        return
    with postgres_schema() as made:
        yield made


@pytest.fixture
def inventory(url: str) -> Iterator[Inventory]:
    with open_inventory(url) as opened:
        yield opened
