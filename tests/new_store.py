"""New stores, without the time that making one takes, which is ten times that of most tests: in a file a copy, on a
server the schema of this process, emptied."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from process_end import at_process_end
from servers import postgres_schema, postgres_url
from spinney.store.parts import Store
from spinney.store.sql import open_store
from spinney.store.sql.schema import metadata

Fill = Callable[[Store], object]
_COUNTERS = (
    "job",
    "fence",
    "lane",
    "share",
    "node",
    "registry",
    "hold",
    "lift",
    "lift_swept",
    "hold_sweep",
    "removed",
    "home",
    "fetch",
    "watermarks",
    "turn",
    "webhook",
    "webhook_event",
    "inbox_arrival",
)


def new_store(file: Path, fill: Fill | None = None) -> str:
    """Its URL. All of one process are the same store in what is drawn at random when one is made.

    ``fill``: puts into it what it shall hold; called once, for all that are made with the same.
    """
    shutil.copyfile(_made(fill), file)
    file.chmod(0o600)
    return f"sqlite:///{file}"


@cache
def _made(fill: Fill | None) -> Path:
    folder = tempfile.TemporaryDirectory(prefix="spinney-new-store-")
    at_process_end(folder.cleanup)
    file = Path(folder.name) / "spinney.db"
    store = open_store(f"sqlite:///{file}" if fill is None else new_store(file))
    if fill is None:
        store.create()
    else:
        fill(store)
    store.close()
    return file


def new_store_on_server() -> str:
    """The URL of the store of this process on PostgreSQL, with nothing in it. There is one: what the test before has
    had of it is over."""
    url = _schema_of_this_process()
    connection = at_tables(url)
    empty = "; ".join(f'delete from "{name}"' for name in metadata.tables if name != "meta")
    counters = ", ".join(f"('{name}', 0)" for name in _COUNTERS)
    connection.execute(f"{empty}; insert into counters (name, value) values {counters}")
    connection.execute("alter table audit enable trigger all")
    return url


@cache
def at_tables(url: str) -> "psycopg.Connection[Any]":
    """A connection to the tables of such a store, which the process keeps."""
    connection = psycopg.connect(postgres_url(), autocommit=True)
    connection.execute("set session_replication_role = replica")  # past the guards of the audit
    connection.execute(f'set search_path to "{url.rpartition("schema=")[2]}"')
    return connection


@cache
def _schema_of_this_process() -> str:
    stack = ExitStack()
    url = stack.enter_context(postgres_schema())
    at_process_end(stack.close)
    store = open_store(url)
    store.create()
    store.close()
    return url
