"""Completing plain jobs: one statement for hundreds leaves the rows that one statement each leaves."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from long_tests import LONG
from new_store import new_store
from spinney.model.jobs import ClaimRequest, LaneRequest, Lease, NodeInfo, Record, SlotRequest, Submission
from spinney.model.outcomes import Outcome
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.record import plain_completions

SECOND = 1_000_000
NOW = 1_700_000_000 * SECOND
JOBS = 6


@pytest.fixture(scope="module")
def claimed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqlStore, list[Lease]]]:
    """A store in which a few jobs are leased, some of them with numbers far from the others'."""
    store: SqlStore = open_store(new_store(Path(tmp_path_factory.mktemp("store"), "s.db")))
    store.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])
    info = NodeInfo(
        id=0,
        name="n",
        boot_id="",
        host="",
        pid=0,
        slots=9,
        state="active",
        beat=0,
        started_us=0,
        seen_us=0,
        version="",
        types=(),
    )
    node = store.join(info, now_us=NOW)
    store.submit([Submission(type="t", params=["{}"] * (JOBS - 2))], now_us=NOW)
    with store.database.write() as tx:
        tx.take("job", 5_000_000)
    store.submit([Submission(type="t", params=["{}"] * 2)], now_us=NOW)
    want = ClaimRequest(
        node_id=node,
        slots=[SlotRequest(n, 1, 1e5, True) for n in range(9)],
        lanes={("t", "s"): LaneRequest()},
    )
    leases = store.flush_and_claim([], want, now_us=NOW).leases
    assert len(leases) == JOBS
    yield store, leases
    store.close()


class Undone(Exception):
    """Takes a transaction back."""


records = st.lists(
    st.tuples(
        st.integers(0, JOBS - 1),
        st.one_of(st.integers(NOW, NOW + 100), st.integers(NOW, NOW + 5 * SECOND)),
        st.one_of(st.integers(0, 100), st.integers(-5, 5 * SECOND)),
        st.one_of(st.none(), st.just("1")),
    ),
    min_size=1,
    unique_by=lambda row: row[0],
)


@settings(max_examples=60 if LONG else 20)
@given(drawn=records)
def test_a_list_leaves_what_each_by_itself_leaves(
    claimed: tuple[SqlStore, list[Lease]], drawn: list[tuple[int, int, int, str | None]]
) -> None:
    store, leases = claimed
    ended = [
        Record(leases[n].job_id, leases[n].fence, Outcome.OK, began, began + took, result)
        for n, began, took, result in drawn
    ]

    at_once = _left(store, ended, plain_completions.complete)

    assert at_once == _left(store, ended, plain_completions._one_by_one)
    for record in ended:
        row = next(row for row in at_once if row["id"] == record.job_id)
        assert (row["state"], row["settled_us"], row["started_us"]) == (
            "completed",
            NOW + 7,
            record.started_us,
        )
        assert (row["final_began_us"], row["final_ended_us"]) == (record.started_us, record.ended_us)
        assert (row["final_fence"], row["final_result"]) == (record.fence, record.result)


def _left(store: SqlStore, ended: list[Record], complete: Any) -> list[dict[str, Any]]:
    """All jobs after that, which is undone."""
    states: list[dict[str, Any]] = []
    with suppress(Undone), store.database.write() as tx:
        complete(tx, [(record, _held(tx, record)) for record in ended], NOW + 7)
        names = [name for _, name, *_ in tx.all("pragma table_info(jobs)")]
        states = [dict(zip(names, row, strict=True)) for row in tx.all("select * from jobs order by id")]
        raise Undone
    return states


def _held(tx: Tx, record: Record) -> tuple[Any, ...]:
    sql = "select job_id, fence, node_id, slot, lane, attempt, parent_id, plain from leases where job_id = ?"
    held: tuple[Any, ...] = tx.one(sql, (record.job_id,))
    return held


def test_what_is_usual_goes_as_one_list(claimed: tuple[SqlStore, list[Lease]]) -> None:
    store, leases = claimed
    ended = [
        Record(x.job_id, x.fence, Outcome.OK, NOW + n, NOW + n + 8) for n, x in enumerate(sorted(leases)[:3])
    ]
    with suppress(Undone), store.database.write() as tx:
        lists: list[Any] = []
        run = tx.run
        tx.run = lambda sql, args=(): (lists.append(args), run(sql, args))[1]
        plain_completions.complete(tx, [(record, _held(tx, record)) for record in ended], NOW)
        assert [len(orjson.loads(args[-1])) for args in lists if len(args) == 4] == [3]
        raise Undone
