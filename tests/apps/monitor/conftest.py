"""A monitor on 127.0.0.1: its folder, its store and tables, and a node when a test wants one."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from servers import postgres_schema
from spinney.apps.monitor import settings
from spinney.apps.monitor.database import database
from spinney.tables.database import Database

from .monitor import Monitor


@pytest.fixture(params=["sqlite", "postgresql"])
def monitor(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Monitor]:
    """Set up, with no services, no tasks and no node."""
    with ExitStack() as stack:
        store, tables = f"sqlite:///{tmp_path}/spinney.db", None
        if request.param == "postgresql":
            store = stack.enter_context(postgres_schema())
            tables = stack.enter_context(postgres_schema())
        made = Monitor(place=tmp_path, store=store, tables=tables)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("SPINNEY_STORE", store)
        monkeypatch.delenv(settings.VARIABLE, raising=False)
        made.set_up()
        stack.callback(made.close)
        yield made


@pytest.fixture
def tables(monitor: Monitor) -> Database:
    """The tables of the monitor."""
    return database()
