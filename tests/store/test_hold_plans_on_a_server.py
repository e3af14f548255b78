"""How many rows PostgreSQL reads for a step of a sweep: its planner knows nothing of the jobs that are held since."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from unittest import mock

import psycopg
import pytest

from contract.words import Clock, Site, kind
from servers import postgres_schema, postgres_url
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.store.sql import open_store
from spinney.store.sql.connection.postgres import PostgresTx

ANN = Actor(by="ann", call="c")
JOBS = 300
MOST = 5
"""The most rows that a plan may read for each job of a step."""


@pytest.fixture
def site() -> Iterator[Site]:
    """With a batch that has most of all children, and statistics of a time before any job was held, or of this type."""
    with postgres_schema() as url, closing(open_store(url)) as store:
        store.create()
        site = Site(store, Clock())
        site.knows(kind("tree", "expand", "report"), kind("leaf", "work"), kind("one", "work"))
        batch = site.run(site.submit_one("tree"))
        site.spawn(batch, "one", n=2 * JOBS)
        site.pass_(batch)
        site.sweep()
        with psycopg.connect(postgres_url(), autocommit=True) as connection:
            schema = url.rpartition("schema=")[2]
            connection.execute(f"set search_path to {schema}")
            for table in ("jobs", "ready", "inactive_jobs", "children_left"):
                connection.execute(f"alter table {table} set (autovacuum_enabled = off)")
                connection.execute(f"vacuum analyze {table}")
        yield site


@pytest.mark.parametrize("scope", [Scope.COLLECTION, Scope.TREE, Scope.TYPE])
def test_a_sweep_looks_up_each_of_its_jobs_by_the_key(site: Site, scope: Scope) -> None:
    top = site.run(site.submit_one("tree", priority=1))
    site.spawn(top, "leaf", n=JOBS, collection="new")
    site.pass_(top)
    site.sweep()
    name = {Scope.TREE: str(top.job_id), Scope.COLLECTION: "new", Scope.TYPE: "leaf"}[scope]
    read = Reads()
    with mock.patch.object(PostgresTx, "run", read.run):
        hold = site.store.holds.lay(scope, name, "why", ANN, now_us=site.now)
        _sweep(site)
        assert site.store.holds.held(hold.id) == JOBS
        site.store.holds.lift(hold.id, ANN, now_us=site.now)
        _sweep(site)

    assert site.count(type="leaf") == {"pending": JOBS}
    assert read.excessive == []


def _sweep(site: Site) -> None:
    while site.store.holds.sweep(now_us=site.now):
        pass


class Reads:
    """Looks at each statement that has a list of jobs: how many rows its plan reads."""

    def __init__(self) -> None:
        self.excessive: list[tuple[float, str]] = []
        self._run = PostgresTx.run

    @property
    def run(self) -> Any:
        def run(tx: PostgresTx, sql: str, args: Any = ()) -> Any:
            if "json_each" in sql and any(isinstance(arg, str) and arg.count(",") > JOBS / 2 for arg in args):
                with_rows = f"explain (analyze, format json, timing off) {sql}"
                tx._cursor.execute("savepoint explained")
                ((plan,),) = self._run(tx, with_rows, args).fetchone()
                tx._cursor.execute("rollback to savepoint explained")
                rows = sum(_rows(plan["Plan"]))
                if rows > MOST * JOBS:
                    self.excessive.append((rows, sql))
            return self._run(tx, sql, args)

        return run


def _rows(plan: dict[str, Any]) -> Iterator[float]:
    removed = sum(n for key, n in plan.items() if key.startswith("Rows Removed by"))
    if "Scan" in plan["Node Type"]:
        yield (plan["Actual Rows"] + removed) * plan["Actual Loops"]
    for below in plan.get("Plans", ()):
        yield from _rows(below)
