"""The stores under test. A new store joins by one more entry in ``PLACES``."""

import atexit
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

import psycopg
import pytest

from in_memory import in_memory
from new_store import new_store
from servers import pooled, postgres_schema, postgres_url
from spinney.stores.contract import Store
from spinney.stores.sql import marks, open_store
from spinney.stores.sql.schema import metadata

from .words import USUAL, Clock, Site

COUNTERS = (
    "job", "fence", "lane", "share", "node", "registry", "hold", "lift", "lift_swept", "hold_sweep", "removed", "home",
    "fetch", "marks", "turn", "webhook", "webhook_event",
)  # fmt: skip

Opener = Callable[[], Store]
"""Opens one more store object on the same database, as another process would have."""


@contextmanager
def _sqlite() -> Iterator[Opener]:
    with tempfile.TemporaryDirectory(prefix="spinney-contract-", dir=in_memory()) as folder, ExitStack() as opened:
        yield _opener(new_store(Path(folder) / "spinney.db"), opened)


@contextmanager
def _postgresql() -> Iterator[Opener]:
    url = _schema_of_this_process()
    try:
        # Marks as close as they can be, so that whatever could get below one does.
        with ExitStack() as opened, mock.patch.object(marks, "EVERY", 1):
            yield _opener(url, opened)
    finally:
        _empty(url)


@contextmanager
def _pooled() -> Iterator[Opener]:
    direct = _schema_of_this_process()
    try:
        with ExitStack() as opened:
            yield _opener(_pooler_of_this_process(), opened)
    finally:
        _empty(direct)


@cache
def _pooler_of_this_process() -> str:
    stack = ExitStack()
    url = stack.enter_context(pooled(_schema_of_this_process()))
    atexit.register(stack.close)
    return url


def _opener(url: str, opened: ExitStack) -> Opener:
    def another() -> Store:
        store = open_store(url)
        opened.callback(store.close)
        return store

    return another


@cache
def _schema_of_this_process() -> str:
    stack = ExitStack()
    url = stack.enter_context(postgres_schema())
    atexit.register(stack.close)
    store = open_store(url)
    store.create()
    store.close()
    return url


def _empty(url: str) -> None:
    """Making a schema takes as long as ten tests; emptying it takes milliseconds."""
    empty = "; ".join(f'delete from "{name}"' for name in metadata.tables if name != "meta")
    counters = ", ".join(f"('{name}', 0)" for name in COUNTERS)
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")  # past the guards of the audit
        connection.execute(f'set search_path to "{url.rpartition("schema=")[2]}"')
        connection.execute(f"{empty}; insert into counters (name, value) values {counters}")
        connection.execute("alter table audit enable trigger all")


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = os.environ.get("SPINNEY_POSTGRES", "")
    more = {"postgresql": WITHOUT_BEING_ASKED, "pooled": WITHOUT_BEING_ASKED_POOLED}
    if asked:
        del more["pooled" if asked == "pooled" else "postgresql"]
    here = Path(__file__).parent
    run: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        place = next((name for name in more if f"[{name}" in item.name), None)
        asked_for = item.path.parent != here or place is None or item.path.stem in more[place]
        (run if asked_for else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = run


PLACES: dict[str, Callable[[], AbstractContextManager[Opener]]] = {
    "sqlite": _sqlite, "postgresql": _postgresql, "pooled": _pooled,
}  # fmt: skip

sqlite_alone = pytest.mark.parametrize("open_another", ["sqlite"], indirect=True)
"""For what only a database in a file has."""


@pytest.fixture(params=sorted(PLACES))
def open_another(request: pytest.FixtureRequest) -> Iterator[Opener]:
    with PLACES[request.param]() as opener:
        yield opener


@pytest.fixture
def store(open_another: Opener) -> Store:
    return open_another()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def site(store: Store, clock: Clock) -> Site:
    """A store that knows the usual job types, with a clock and nodes."""
    made = Site(store, clock)
    made.knows(*USUAL)
    return made
