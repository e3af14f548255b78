"""Jobs without subjobs, which most are, are removed by as few statements as one of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.words import USUAL, Clock, Site
from new_store import new_store
from spinney.model.rights.actor import Actor
from spinney.store.sql import open_store

ANN = Actor(by="ann", call="c")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_store(new_store(tmp_path / "x.db"))
    made = Site(store, Clock())
    made.knows(*USUAL)
    yield made
    store.close()


def removal_statements(site: Site, jobs: int) -> int:
    """Return how many statements the step runs that removes so many jobs."""
    ids = site.submit(n=jobs)
    site.drain()
    retention = site.store.retention
    retention.set("*", "completed", 0, ANN, now_us=site.now)
    assert retention.sweep(0, ANN, now_us=site.now)[0] == (), "they are marked"
    statements: list[str] = []
    writer = site.store.database._writer  # type: ignore[attr-defined]
    writer.set_trace_callback(statements.append)
    removed, _ = retention.sweep(ids[-1], ANN, now_us=site.now)
    writer.set_trace_callback(None)
    assert list(removed) == list(ids)
    return len(statements)


def test_many_jobs_take_as_many_statements_as_one(site: Site) -> None:
    assert removal_statements(site, 1) == removal_statements(site, 150)
