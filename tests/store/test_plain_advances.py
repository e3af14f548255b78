"""Plain jobs that go to their next stages: set statements leave the rows that one record each leaves."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from new_store import new_store, new_store_on_server
from spinney.model.jobs import ClaimRequest, LaneRequest, Lease, NodeInfo, Record, SlotRequest, Submission
from spinney.model.outcomes import Outcome
from spinney.model.settings.queues import QueueSpec
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.record import plain_advances
from spinney.store.sql.record.plain_completions import Ended
from spinney.store.sql.transitions.cascades import Cascade

NOW = 1_700_000_000_000_000
SLOTS = 60
TABLES = (
    "jobs",
    "attempts",
    "inactive_jobs",
    "children_left",
    "serial_order",
    "throughput",
    "counters",
)
READY = (
    "select l.queue, l.type, l.stage, l.home, r.priority, r.share, r.position, r.job_id "
    "from ready r join lanes l on l.id = r.lane"
)
LEASES = (
    "select l.queue, l.type, l.stage, l.home, x.job_id, x.node_id, x.slot, x.share, x.attempt, x.parent_id, x.plain, "
    "x.claimed_us from leases x join lanes l on l.id = x.lane"
)
"""Lanes are compared by their names: their numbers depend on the order in which they were created, as those of leases
do."""
TYPES = (
    TypeSpec(name="plain", stages=(StageSpec(name="a"), StageSpec(name="b"), StageSpec(name="c"))),
    TypeSpec(name="elsewhere", stages=(StageSpec(name="a"), StageSpec(name="b", queue="narrow"))),
    TypeSpec(
        name="again", stages=(StageSpec(name="a"), StageSpec(name="b", again=True), StageSpec(name="c"))
    ),
    TypeSpec(name="breaker", stages=(StageSpec(name="a"), StageSpec(name="b")), breaker=3),
)
LANES = {(t.name, s.name): LaneRequest() for t in TYPES for s in t.stages}


@contextmanager
def _claimed(url: str) -> Iterator[tuple[SqlStore, list[Lease], int]]:
    """A store with jobs of all types whose first stages are leased, and what the node is called."""
    store: SqlStore = open_store(url)
    store.register(TYPES, [QueueSpec(name="narrow", order="lifo"), QueueSpec(name="fifo", order="fifo")])
    info = NodeInfo(
        id=0,
        name="n",
        boot_id="",
        host="",
        pid=0,
        slots=SLOTS,
        state="active",
        beat=0,
        started_us=0,
        seen_us=0,
        version="",
        types=(),
    )
    node = store.join(info, now_us=NOW)
    store.submit([Submission(type="plain", params=["{}"] * 12, submitter="ann")], now_us=NOW)
    store.submit(
        [Submission(type="plain", params=["{}"] * 4, queue="fifo", priority=7, share="bob")], now_us=NOW
    )
    store.submit([Submission(type="plain", params=["{}"] * 2, keys=["x", "y"])], now_us=NOW)
    store.submit([Submission(type="plain", params=["{}"] * 2, queue="narrow", collection="held")], now_us=NOW)
    for name in ("elsewhere", "again", "breaker"):
        store.submit([Submission(type=name, params=["{}"] * 4)], now_us=NOW)
    request = ClaimRequest(
        node_id=node, slots=[SlotRequest(n, 1, 1e5, True) for n in range(SLOTS)], lanes=LANES
    )
    leases = store.flush_and_claim([], request, now_us=NOW + 1).leases
    assert len(leases) == 32
    yield store, leases, node
    store.close()


def _passed(leases: list[Lease]) -> list[Record]:
    return [
        Record(lease.job_id, lease.fence, Outcome.OK, NOW + 2 + n, NOW + 9 + n, "1" if n % 3 else None)
        for n, lease in enumerate(leases)
    ]


def _nothing(store: SqlStore, leases: list[Lease], records: list[Record]) -> None:
    pass


def _holds(store: SqlStore, leases: list[Lease], records: list[Record]) -> None:
    with store.database.write() as tx:
        for number, (scope, name) in enumerate([("collection", "held"), ("job", str(leases[3].job_id))], 1):
            tx.run(
                "insert into holds (id, scope, name, reason, by, since_us, automatic) "
                "values (?, ?, ?, 'r', 'ann', 1, 0)",
                (number, scope, name),
            )
        tx.take("registry")


def _moved(store: SqlStore, leases: list[Lease], records: list[Record]) -> None:
    with store.database.write() as tx:
        tx.run("update jobs set queue_moved = 'fifo' where id = ?", (leases[1].job_id,))


def _earlier_attempts(store: SqlStore, leases: list[Lease], records: list[Record]) -> None:
    """One job has passed its second stage before, one has finished before, and one has begun before."""
    with store.database.write() as tx:
        for n, (stage, outcome, superseded) in enumerate(
            [("b", "ok", None), ("b", "finish", None), ("b", "ok", 1)]
        ):
            tx.run(
                "insert into attempts (job_id, fence, stage, attempt, outcome, node_id, started_us, ended_us, "
                "superseded) values (?, 0, ?, 1, ?, 1, 1, 2, ?)",
                (leases[n].job_id, stage, outcome, superseded),
            )
        tx.run(
            "update jobs set started_us = 5, attempts = 1, interruptions = 2, code = 4 where id = ?",
            (leases[2].job_id,),
        )


def _mixed(store: SqlStore, leases: list[Lease], records: list[Record]) -> None:
    """Some attempts warn, fail, or were handed back, one is late, and one comes twice."""
    records[4] = records[4]._replace(outcome=Outcome.WARNING, message="mind this")
    records[5] = records[5]._replace(outcome=Outcome.ERROR, message="it broke")
    records[6] = records[6]._replace(outcome=Outcome.RETURNED, started_us=0)
    records[7] = records[7]._replace(fence=9_999)
    records.append(records[8])


def _serial(store: SqlStore, leases: list[Lease], records: list[Record]) -> None:
    with store.database.write() as tx:
        tx.run(
            "insert into serial_order (root_id, lineage, job_id) values (?, ?, ?)",
            (leases[9].root_id, f"{leases[9].job_id:012d}", leases[9].job_id),
        )


def _needs(store: SqlStore, leases: list[Lease], records: list[Record]) -> None:
    """Of two jobs one needs the other, which is open again."""
    with store.database.write() as tx:
        tx.run("insert into needs (job_id, need_id) values (?, ?)", (leases[2].job_id, leases[1].job_id))


def _serial_by_now(store: SqlStore, leases: list[Lease], records: list[Record]) -> None:
    """The type of the parent of three jobs has become serial since the claim."""
    parent = next(lease for lease in leases if lease.type == "elsewhere")
    with store.database.write() as tx:
        for lease in leases[:3]:
            tx.run(
                "update jobs set parent_id = ?, root_id = ?, lineage = ? where id = ?",
                (parent.job_id, parent.job_id, f"{parent.job_id:012d}.{lease.job_id:012d}", lease.job_id),
            )
            tx.run("update leases set parent_id = ? where job_id = ?", (parent.job_id, lease.job_id))
    store.register([replace(store.types()["elsewhere"], serial=True)], [])


CASES = (_nothing, _holds, _moved, _earlier_attempts, _mixed, _serial, _needs, _serial_by_now)


@pytest.mark.parametrize("place", ["file", "server"])
@pytest.mark.parametrize("change", CASES)
def test_a_large_flush_leaves_what_single_records_leave(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    change: Callable[[SqlStore, list[Lease], list[Record]], None],
) -> None:
    rows, advanced = _both_ways(tmp_path, monkeypatch, place, change, slice(None), keep=False)

    assert rows[1] == rows[0]
    assert advanced >= 10


@pytest.mark.parametrize("place", ["file", "server"])
@pytest.mark.parametrize("change", [_nothing, _holds, _moved, _earlier_attempts, _needs, _serial_by_now])
def test_jobs_that_keep_their_slots_have_the_same_leases(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    change: Callable[[SqlStore, list[Lease], list[Record]], None],
) -> None:
    some = slice(0, plain_advances.KEPT_MOST)
    rows, advanced = _both_ways(tmp_path, monkeypatch, place, change, some, keep=True)

    assert rows[1] == rows[0]
    assert advanced >= 4
    assert rows[1]["leased"]


def _both_ways(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    change: Callable[[SqlStore, list[Lease], list[Record]], None],
    some: slice,
    *,
    keep: bool,
) -> tuple[list[dict[str, list[Any]]], int]:
    """Record attempts of the same jobs one by one and by set statements. Return the rows that each way leaves, and how
    many jobs have advanced by set statements. ``keep``: the node would continue the jobs in their slots."""
    rows: list[dict[str, list[Any]]] = []
    advanced: list[int] = []
    advance = plain_advances.advance

    def counting(cascade: Cascade, passed: Sequence[Ended], **options: bool) -> Any:
        remaining, kept = advance(cascade, passed, **options)
        advanced.append(len(passed) - len(remaining))
        return remaining, kept

    monkeypatch.setattr(plain_advances, "advance", counting)
    is_inner = plain_advances.is_inner
    for by_sets in (False, True):
        monkeypatch.setattr(plain_advances, "is_inner", is_inner if by_sets else lambda registry, lane: False)
        url = new_store_on_server() if place == "server" else new_store(tmp_path / f"{by_sets}.db")
        with _claimed(url) as (store, leases, node):
            records = _passed(leases)
            change(store, leases, records)
            records = [record._replace(keep=keep) for record in records][some]
            request = ClaimRequest(node_id=node, slots=[], lanes=LANES) if keep else None

            result = store.flush_and_claim(records, request, now_us=NOW + 50)

            with store.database.look() as tx:
                selects = [f"select * from {table}" for table in TABLES]
                tables = {sql: sorted(tx.all(sql), key=repr) for sql in (*selects, READY, LEASES)}
            leased = sorted(lease._replace(fence=0) for lease in result.leases)
            refused = [record.fence for record in result.refused]
            rows.append(tables | {"refused": refused, "leased": leased})
    return rows, sum(advanced)
