"""The stores under test. A new store joins by one more entry in ``PLACES``."""

import atexit
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
from new_store import new_store
from servers import pooled, postgres_schema, postgres_url
from spinney.stores.contract import Store
from spinney.stores.sql import SqlStore, marks, open_store
from spinney.stores.sql.postgres import PostgresDatabase
from spinney.stores.sql.schema import metadata

from .words import USUAL, Clock, Site

COUNTERS = (
    "job", "fence", "lane", "share", "node", "registry", "hold", "lift", "lift_swept", "hold_sweep", "removed", "home",
    "fetch", "marks", "turn", "webhook", "webhook_event",
)  # fmt: skip

Opener = Callable[[], Store]
"""Opens one more store object on the same database, as another process would have."""
Place = Callable[..., AbstractContextManager[Opener]]
"""A database with a store in it, until the block ends; ``usual=True``: it knows the usual job types."""


@contextmanager
def _sqlite(*, usual: bool = False) -> Iterator[Opener]:
    with tempfile.TemporaryDirectory(prefix="spinney-contract-", dir=in_memory()) as folder, ExitStack() as opened:
        url = new_store(Path(folder) / "spinney.db", knows_usual if usual else None)

        def another() -> Store:
            store = open_store(url)
            opened.callback(store.close)
            return store

        yield another


@contextmanager
def _postgresql(*, usual: bool = False) -> Iterator[Opener]:
    url = _schema_of_this_process()
    _empty(url, usual)
    # Marks as close as they can be, so that whatever could get below one does.
    with ExitStack() as opened, mock.patch.object(marks, "EVERY", 1):
        yield _opener(url, opened)


@contextmanager
def _pooled(*, usual: bool = False) -> Iterator[Opener]:
    _empty(_schema_of_this_process(), usual)
    with ExitStack() as opened:
        yield _opener(_pooler_of_this_process(), opened)


@cache
def _pooler_of_this_process() -> str:
    stack = ExitStack()
    url = stack.enter_context(pooled(_schema_of_this_process()))
    atexit.register(stack.close)
    return url


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
def _schema_of_this_process() -> str:
    stack = ExitStack()
    url = stack.enter_context(postgres_schema())
    atexit.register(stack.close)
    store = open_store(url)
    store.create()
    store.close()
    return url


@cache
def _emptier(url: str) -> "psycopg.Connection[Any]":
    connection = psycopg.connect(postgres_url(), autocommit=True)
    connection.execute("set session_replication_role = replica")  # past the guards of the audit
    connection.execute(f'set search_path to "{url.rpartition("schema=")[2]}"')
    return connection


@cache
def _usual_rows(url: str) -> list[Any]:
    """What knowing the usual job types is, in the database."""
    with closing(open_store(url)) as store:
        knows_usual(store)
    return _emptier(url).execute("select name, spec from types").fetchall()


def _empty(url: str, usual: bool) -> None:
    """Making a schema takes as long as ten tests; emptying it takes milliseconds."""
    rows = _usual_rows(url) if usual else []
    connection = _emptier(url)
    empty = "; ".join(f'delete from "{name}"' for name in metadata.tables if name != "meta")
    counters = ", ".join(f"('{name}', 0)" for name in COUNTERS)
    connection.execute(f"{empty}; insert into counters (name, value) values {counters}")
    connection.execute("alter table audit enable trigger all")
    connection.cursor().executemany("insert into types (name, spec) values (%s, %s)", rows)


def knows_usual(store: Store) -> None:
    store.register(USUAL, ())


WITHOUT_BEING_ASKED = {
    "test_accounts", "test_cancelling", "test_children", "test_claiming", "test_data", "test_deadlocks",
    "test_hand_over", "test_jobs_from_stages", "test_keys", "test_late_records", "test_left_for_others",
    "test_lock_amounts", "test_locks", "test_look_ahead", "test_machine", "test_needs", "test_nodes",
    "test_outcomes", "test_recovering", "test_regrowing", "test_serial", "test_sharing", "test_submitting",
    "test_sweeping",
}  # fmt: skip
"""The kernel: what nodes ask of a store. ``make test`` runs it on PostgreSQL, too; ``make postgres`` runs all there."""
WITHOUT_BEING_ASKED_POOLED = {"test_submitting"}
"""The same through a pooler; ``SPINNEY_POSTGRES=pooled`` runs all of it there."""


PLACES: dict[str, Place] = {"sqlite": _sqlite, "postgresql": _postgresql, "pooled": _pooled}


def places(module: ModuleType) -> list[str]:
    """Where the tests of a module run."""
    asked = os.environ.get("SPINNEY_POSTGRES", "")
    more = {"postgresql": WITHOUT_BEING_ASKED, "pooled": WITHOUT_BEING_ASKED_POOLED}
    if asked:
        del more["pooled" if asked == "pooled" else "postgresql"]
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
