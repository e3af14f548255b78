"""The stores under test. A new store joins by one more entry in ``PLACES``."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import psycopg
import pytest

from in_memory import in_memory
from new_store import at_tables, new_store, new_store_on_server
from process_end import at_process_end
from servers import pooled
from spinney.store.parts import Store
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection.postgres import PostgresDatabase
from spinney.store.sql.registry import watermarks

from .words import USUAL, Clock, Site

Opener = Callable[[], Store]
"""Opens one more store object on the same database, as another process would have."""
Place = Callable[..., AbstractContextManager[Opener]]
"""A database with a store in it, until the block ends; ``usual=True``: it knows the usual job types."""


@contextmanager
def _sqlite(*, usual: bool = False) -> Iterator[Opener]:
    with (
        tempfile.TemporaryDirectory(prefix="spinney-contract-", dir=in_memory()) as folder,
        ExitStack() as opened,
    ):
        url = new_store(Path(folder) / "spinney.db", knows_usual if usual else None)

        def another() -> Store:
            store = open_store(url)
            opened.callback(store.close)
            return store

        yield another


@contextmanager
def _postgresql(*, usual: bool = False) -> Iterator[Opener]:
    url = _new_on_server(usual)
    # Marks as close as they can be, so that whatever could get below one does.
    with ExitStack() as opened, mock.patch.object(watermarks, "EVERY", 1):
        yield _opener(url, opened)


@contextmanager
def _pooled(*, usual: bool = False) -> Iterator[Opener]:
    url = _new_on_server(usual)
    with ExitStack() as opened:
        yield _opener(_pooler_of_this_process(url), opened)


@cache
def _pooler_of_this_process(url: str) -> str:
    stack = ExitStack()
    url_of_pooler = stack.enter_context(pooled(url))
    at_process_end(stack.close)
    return url_of_pooler


def _opener(url: str, opened: ExitStack) -> Opener:
    """Each store is new. The connections are those of tests before, for to begin one takes the server as long as most
    tests: it reads its catalogues anew. So a connection is as old here as it would be below a node."""
    idle = _idle(url)

    def another() -> Store:
        database = idle.pop() if idle else PostgresDatabase(url)
        opened.callback(give_back, database)
        return SqlStore(database)

    def give_back(database: PostgresDatabase) -> None:
        if any(map(_in_use, (database._writer, database._reader))):
            database.close()
        idle.append(database)

    return another


def _in_use(connection: "psycopg.Connection[Any] | None") -> bool:
    idle = psycopg.pq.TransactionStatus.IDLE
    return connection is not None and not connection.closed and connection.info.transaction_status != idle


@cache
def _idle(url: str) -> list[PostgresDatabase]:
    """Those to which no store belongs at present, with their connections."""
    return []


@cache
def _usual_rows() -> list[Any]:
    """What knowing the usual job types is, in the database."""
    url = new_store_on_server()
    with closing(open_store(url)) as store:
        knows_usual(store)
    return at_tables(url).execute("select name, spec from types").fetchall()


def _new_on_server(usual: bool) -> str:
    rows = _usual_rows() if usual else []
    url = new_store_on_server()
    at_tables(url).cursor().executemany("insert into types (name, spec) values (%s, %s)", rows)
    return url


def knows_usual(store: Store) -> None:
    store.register(USUAL, ())


WITHOUT_BEING_ASKED = {
    "test_accounts",
    "test_bridges",
    "test_cancel",
    "test_children",
    "test_claims",
    "test_collections",
    "test_data",
    "test_deadlocks",
    "test_external",
    "test_failures",
    "test_hand_over",
    "test_homes",
    "test_idempotency",
    "test_inboxes",
    "test_job_lists",
    "test_jobs_from_stages",
    "test_keys",
    "test_late_records",
    "test_left_for_others",
    "test_lock_admin",
    "test_lock_amounts",
    "test_locks",
    "test_look_ahead",
    "test_machine",
    "test_needs",
    "test_nodes",
    "test_outcomes",
    "test_recovery",
    "test_regrowth",
    "test_release",
    "test_serial",
    "test_shares",
    "test_statistics",
    "test_submissions",
    "test_sweep",
    "test_throughput_history",
    "test_trusted_clock",
    "test_under",
}
"""The kernel, what only pages query, and features whose statements no other test runs on PostgreSQL. ``make test`` runs
these modules on PostgreSQL, too; ``make postgres`` runs all there."""
WITHOUT_BEING_ASKED_POOLED = {"test_submissions"}
"""The same through a pooler; ``SPINNEY_POSTGRES=pooled`` runs all of it there."""


PLACES: dict[str, Place] = {"sqlite": _sqlite, "postgresql": _postgresql, "pooled": _pooled}


def places(module: ModuleType) -> list[str]:
    """Where the tests of a module run."""
    response = os.environ.get("SPINNEY_POSTGRES", "")
    more = {"postgresql": WITHOUT_BEING_ASKED, "pooled": WITHOUT_BEING_ASKED_POOLED}
    if response:
        del more["pooled" if response == "pooled" else "postgresql"]
    name = module.__name__.rpartition(".")[2]
    return [place for place in sorted(PLACES) if name in more.get(place, (name,))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of other places are not even made: to collect them took each process of a run a second."""
    chosen = (str(mark.args[0]).split(",") for mark in metafunc.definition.iter_markers("parametrize"))
    chosen_by_itself = {name.strip() for names in chosen for name in names}
    for name in ("open_another", "opener"):
        if name in metafunc.fixturenames and name not in chosen_by_itself:
            metafunc.parametrize(name, places(metafunc.module), indirect=name == "open_another")


sqlite_alone = pytest.mark.parametrize("open_another", ["sqlite"], indirect=True)
"""For what only a database in a file has."""


@pytest.fixture
def open_another(request: pytest.FixtureRequest) -> Iterator[Opener]:
    with PLACES[request.param](usual="usual" in request.fixturenames) as opener:
        yield opener


@pytest.fixture
def usual() -> None:
    """The database knows the usual job types from the beginning: to declare them takes as long as most tests."""


@pytest.fixture
def store(open_another: Opener) -> Store:
    return open_another()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def site(store: Store, clock: Clock, usual: None) -> Site:
    """A store that knows the usual job types, with a clock and nodes."""
    return Site(store, clock)
