"""What every statement of the hot path costs: none of them walks a table that grows with the work."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import job_verbs
from new_store import new_store
from spinney.features.jobs.relatives_sql import Relation
from spinney.features.jobs.sql import SORT_KEYS
from spinney.model.access import AccessScope
from spinney.model.jobs import (
    ClaimRequest,
    Filter,
    LaneRequest,
    Lease,
    NodeInfo,
    Record,
    SlotRequest,
    Submission,
)
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.queues import QueueSpec
from spinney.model.settings.schedules import CatchUp, Overlap, Schedule
from spinney.model.states import State
from spinney.model.types import LockSpec, StageSpec, TypeSpec
from spinney.store.sql import SqlStore, open_store

SMALL = {
    "leases",
    "lanes",
    "nodes",
    "cancel_requests",
    "staging",
    "met_needs",
    "holds",
    "schedules",
    "queues",
    "types",
    "counters",
    "webhooks",
    "invites",
    "streaks",
    "locks",
    "retention",
    "removals",
    "queue_settings",
    "node_settings",
    "leadership",
    "low_watermarks",
    "homes",
    "lock_capacities",
    "j",
    "l",
    "s",
    "json_each",
    "history",
    "found",
    "few",
    "v",
}
"""What holds what runs now or what was declared may be read whole; of the view ``history`` that is
what its two searches by job have found. Of ``invites`` a user has one at most, for a day. ``found`` and ``few`` are
bounded, and ``v`` one value of an index after the other."""

TYPES = [
    TypeSpec(name="plain", stages=(StageSpec(name="run"),)),
    TypeSpec(name="two", stages=(StageSpec(name="a"), StageSpec(name="b", max_attempts=2))),
    TypeSpec(name="limited", stages=(StageSpec(name="run", queue="narrow"),)),
    TypeSpec(name="locked", stages=(StageSpec(name="run", locks=(LockSpec(template="r:{n}"),)),)),
    TypeSpec(name="tree", serial=True, stages=(StageSpec(name="grow"), StageSpec(name="merge", again=True))),
]


class House:
    """A store with something of everything in it, whose statements are written down."""

    def __init__(self, path: Path) -> None:
        self.store: SqlStore = open_store(new_store(path))
        self.store.register(TYPES, [QueueSpec(name="narrow", limit=1)])
        info = NodeInfo(
            id=0,
            name="n",
            boot_id="",
            host="",
            pid=0,
            slots=8,
            state="active",
            beat=0,
            started_us=0,
            seen_us=0,
            version="",
            types=(),
        )
        self.node = self.store.join(info, now_us=1)
        for kind in TYPES:
            self.store.submit([Submission(type=kind.name, params=['{"n": 1}'] * 20)], now_us=1)
        self.seen: list[str] = []
        writer = self.store.database._writer
        assert writer is not None
        writer.set_trace_callback(self.seen.append)

    def flush_and_claim(self, records: list[Record], slots: int = 8, *, keep: bool = False) -> list[Lease]:
        wanted = {
            (t.name, s.name): LaneRequest(
                run_us=5.0 if t.name == "plain" else None,
                locks=tuple((lock.template, lock.until) for lock in s.locks),
            )
            for t in TYPES
            for s in t.stages
        }
        want = ClaimRequest(
            node_id=self.node, slots=[SlotRequest(n, 50, 1e5, True) for n in range(slots)], lanes=wanted
        )
        return self.store.flush_and_claim(records, want, now_us=10).leases

    def drain(self, outcome: Callable[[Lease], Record]) -> None:
        records: list[Record] = []
        for _ in range(40):
            leases = self.flush_and_claim(records)
            if not leases and not records:
                return
            records = [outcome(lease) for lease in leases]
        self.store.flush_and_claim(records, None, now_us=11)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "x.db")


def ok(lease: Lease) -> Record:
    return Record(lease.job_id, lease.fence, Outcome.OK, 2, 3, keep=True)


def failed(lease: Lease) -> Record:
    return Record(lease.job_id, lease.fence, Outcome.ERROR, 2, 3, message="no")


def deferred(lease: Lease) -> Record:
    return Record(lease.job_id, lease.fence, Outcome.DEFER, 2, 3, delay_s=9.0)


@pytest.mark.parametrize("outcome", [ok, failed, deferred], ids=lambda f: f.__name__)
def test_no_statement_of_an_exchange_walks_a_growing_table(
    house: House, outcome: Callable[[Lease], Record]
) -> None:
    house.drain(outcome)

    assert walks(house) == []


def test_nor_do_those_of_a_tree(house: House) -> None:
    parent = next(lease for lease in house.flush_and_claim([], slots=8) if lease.type == "tree")
    house.store.spawn(parent.job_id, parent.fence, [Submission(type="plain", params=["{}"] * 5)], now_us=5)
    house.store.flush_and_claim([ok(parent)], None, now_us=6)
    house.drain(ok)
    job_verbs.retry(house.store, _failed_child(house), stage=None, by="ann", now_us=20)
    house.drain(ok)

    assert walks(house) == []


def test_nor_does_housekeeping(house: House) -> None:
    house.drain(deferred)
    house.seen.clear()

    house.store.sweep(now_us=10**9)

    assert walks(house) == []


def test_nor_does_retention(house: House) -> None:
    house.drain(ok)
    actor, retention = Actor(by="ann", call="c"), house.store.retention
    retention.set("*", "completed", 0.0, actor, now_us=20)
    house.seen.clear()

    after: int | None = 0
    removed = 0
    while after is not None:
        gone, after = retention.sweep(after, actor, now_us=20)
        removed += len(gone)

    assert removed > 50
    assert walks(house) == []


def test_nor_do_schedules(house: House) -> None:
    actor, schedules = Actor(by="ann", call="c"), house.store.schedules
    house.seen.clear()
    for overlap in Overlap:
        made = Schedule(name=str(overlap), type="plain", every_s=1, overlap=overlap, catch_up=CatchUp.ALL)
        schedules.put(made, actor, now_us=0)
    while schedules.tick(now_us=3 * 10**8):
        pass
    schedules.pause("queue", actor, paused=True, now_us=3 * 10**8)
    schedules.drop("queue", actor, now_us=3 * 10**8)

    assert sum("schedule_runs" in sql for sql in house.seen) > 10
    assert walks(house) == []


def test_a_step_of_the_schedules_finds_those_with_times_that_wait_by_the_index_of_these(house: House) -> None:
    made = Schedule(name="often", type="plain", every_s=1, overlap=Overlap.QUEUE, catch_up=CatchUp.ALL)
    house.store.schedules.put(made, Actor(by="ann", call="c"), now_us=0)
    house.seen.clear()

    house.store.schedules.tick(now_us=3 * 10**6)

    (sql,) = (sql for sql in house.seen if "from schedules" in sql and "schedule_runs" in sql)
    with closing(sqlite3.connect(house.store.database.path)) as connection:
        steps = [step for *_, step in connection.execute(f"explain query plan {sql}")]
    reads = [step for step in steps if "schedule_runs" in step or " r " in step]
    assert len(reads) == 2
    assert all("SEARCH schedule_runs USING INDEX schedule_runs_queued" in step for step in reads), steps


def test_nor_do_failures_a_breaker_and_a_lock_that_is_taken_away(house: House) -> None:
    store, wary = house.store, TypeSpec(name="wary", stages=(StageSpec(name="run"),), breaker=3)
    store.register([wary], [])
    TYPES.append(wary)
    try:
        for outcome in (failed, ok, failed):
            store.submit([Submission(type="wary", params=["{}"] * 2)], now_us=1)
            house.drain(outcome)
    finally:
        TYPES.remove(wary)
    assert [hold.name for hold in store.holds.all()] == []
    store.submit([Submission(type="locked", params=['{"n": 9}'] * 2)], now_us=1)
    house.flush_and_claim([])
    store.locks.free("r:9", Actor(by="ann", call="c"), now_us=20)
    store.sweep(now_us=10**9)

    for table in ("failures", "streaks", "audit"):
        assert any(re.match(rf"(insert into|update|delete from) {table}\b", sql) for sql in house.seen), table
    assert walks(house) == []


def test_nor_does_looking_at_a_job(house: House) -> None:
    house.drain(ok)
    house.store.signature()
    reader = house.store.database._reader
    assert reader is not None
    house.seen.clear()
    reader.set_trace_callback(house.seen.append)

    store = house.store
    for look in (store.job, store.attempts, store.results, store.get_data, store.tree, store.children):
        look(3)
    store.tree(3, within=AccessScope(collections=("c",), queues=("narrow",)))
    for which in (
        Filter(type="plain"),
        Filter(collection="c"),
        Filter(states=(State.FAILED,)),
        Filter(parent_id=1),
    ):
        store.jobs(which)
    for key in SORT_KEYS:
        store.job_lists.sorted_ids(Filter(type="plain"), key, descending=True, offset=0, limit=50, now_us=99)
    store.job_lists.names("collection")
    for relation in Relation:
        store.relatives.groups(3, relation, AccessScope(queues=("narrow",)))
    for relation in (Relation.NEEDS, Relation.NEEDED_BY):
        store.relatives.ids(3, relation)
    store.relatives.has_needs(3)
    store.relatives.parents([1, 2, 3])
    store.saved_filters.all("ann")
    store.node_attempts.running(house.node, AccessScope(queues=("narrow",)))
    store.node_attempts.ended(house.node, 1, AccessScope(queues=("narrow",)))
    for figures in (store.throughput_history.by_slice, store.throughput_history.by_stage):
        figures(60, 1, 60, [1, 2])

    assert len(house.seen) > 10
    assert walks(house) == []


def _failed_child(house: House) -> int:
    house.store.submit([Submission(type="plain")], now_us=12)
    (lease,) = (lease for lease in house.flush_and_claim([]) if lease.type == "plain")
    house.store.flush_and_claim([failed(lease)], None, now_us=13)
    return lease.job_id


def walks(house: House) -> list[str]:
    """Steps of query plans that read a growing table whole, with their statement."""
    connection = sqlite3.connect(house.store.database.path)
    plans = []
    for sql in dict.fromkeys(_shape(s) for s in house.seen):
        if not re.match(r"\s*(select|insert|update|delete|with)", sql, re.IGNORECASE):
            continue
        if sql.startswith("select exists("):
            continue  # stops at the first row
        steps = [step for *_, step in connection.execute(f"explain query plan {sql}")]
        subqueries = {
            made[1] for step in steps if (made := re.match(r"(?:CO-ROUTINE|MATERIALIZE) (\w+)", step))
        }
        for step in steps:
            scanned = re.match(r"SCAN (\w+)(?! VIRTUAL)", step)
            # What a subquery returns is read whole; what it reads has steps of its own.
            names = {scanned[1], _table(sql, scanned[1])} if scanned else set()
            if scanned and names.isdisjoint(SMALL | subqueries) and "CONSTANT" not in step:
                plans.append(f"{step}: {sql}")
    connection.close()
    return plans


def _table(sql: str, alias: str) -> str:
    """The table that a statement calls by this name."""
    named = re.search(rf"\b(?:from|join) (\w+) {alias}\b", sql)
    return alias if named is None else named[1]


def _shape(sql: str) -> str:
    """One of all statements that differ in numbers alone."""
    return re.sub(r"(?<![\w'])\d+(?![\w'])", "1", sql)
