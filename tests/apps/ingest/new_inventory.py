"""New inventories, without the time that making one takes, which is ten times that of most tests: in a file a copy, on
a server the schema of this process, emptied."""

import shutil
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import psycopg

from process_end import at_process_end
from servers import postgres_schema, postgres_url
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.inventory.schema import metadata


def new_inventory(file: Path) -> str:
    """Its URL."""
    shutil.copyfile(_made(), file)
    return f"sqlite:///{file}"


def new_inventory_on_server() -> str:
    """The URL of the inventory of this process on PostgreSQL, with nothing in it. There is one: what the test before
    has had of it is over."""
    url = _schema_of_this_process()
    schema = url.rpartition("schema=")[2]
    named = ", ".join(f'"{schema}"."{table}"' for table in metadata.tables)
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute(f"truncate {named} restart identity")
    return url


@cache
def _made() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="spinney-inventory-")
    at_process_end(folder.cleanup)
    file = Path(folder.name) / "inventory.db"
    with open_inventory(f"sqlite:///{file}") as inventory:
        inventory.init()
    return file


@cache
def _schema_of_this_process() -> str:
    stack = ExitStack()
    url = stack.enter_context(postgres_schema())
    at_process_end(stack.close)
    with open_inventory(url) as inventory:
        inventory.init()
    return url
