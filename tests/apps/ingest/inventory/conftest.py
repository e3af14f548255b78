"""Each test runs on both kinds of database, with tables that are there and empty."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import psycopg
import pytest

from servers import postgres_schema
from spinney.apps.ingest.inventory import Inventory, open_inventory
from spinney.apps.ingest.inventory.schema import metadata

KINDS = ("sqlite", "postgresql")


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        made = f"sqlite:///{tmp_path}/inventory.db"
        shutil.copyfile(_empty_sqlite(), tmp_path / "inventory.db")
        yield made
        return
    made = _schema_of_this_process()
    try:
        yield made
    finally:
        _empty(made)


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


@cache
def _empty_sqlite() -> Path:
    """An inventory to copy: to make one takes ten times as long as most tests."""
    folder = tempfile.TemporaryDirectory(prefix="spinney-inventory-")
    atexit.register(folder.cleanup)
    file = Path(folder.name) / "inventory.db"
    with open_inventory(f"sqlite:///{file}") as inventory:
        inventory.init()
    return file


@cache
def _schema_of_this_process() -> str:
    stack = ExitStack()
    url = stack.enter_context(postgres_schema())
    atexit.register(stack.close)
    with open_inventory(url) as inventory:
        inventory.init()
    return url


def _empty(url: str) -> None:
    server, _, schema = url.rpartition("schema=")
    named = ", ".join(f'"{schema}"."{table}"' for table in metadata.tables)
    with psycopg.connect(server.rstrip("?&"), autocommit=True) as connection:
        connection.execute(f"truncate {named} restart identity")
