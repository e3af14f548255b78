"""Lists that come as one text, where that would be longer than a text may be."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from new_store import new_store
from spinney.model.jobs import ClaimRequest, LaneRequest, NodeInfo, SlotRequest, Submission
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.submit import job_inserts
from spinney.store.sql.transitions import lease_writes

SLOTS = 9


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A store whose texts may be of 100,000 bytes, not of a billion."""
    store: SqlStore = open_store(new_store(tmp_path / "s.db"))
    store.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])
    assert store.database._writer is not None
    store.database._writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
    yield store
    store.close()


@pytest.mark.parametrize("at_once", [2, SLOTS])
def test_jobs_are_submitted_and_claimed_whose_parameters_are_too_long_together(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(job_inserts, "LIST_CHARS", 50_000)
    monkeypatch.setattr(lease_writes, "AT_ONCE", at_once)
    params = [f'{{"n": {n}, "text": "{"x" * 20_000}"}}' for n in range(SLOTS)]
    ids = list(store.submit([Submission(type="t", params=params)], now_us=1).ids)
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
    node = store.join(info, now_us=1)
    want = ClaimRequest(
        node_id=node,
        slots=[SlotRequest(n, 1, 1e5, True) for n in range(SLOTS)],
        lanes={("t", "s"): LaneRequest()},
    )

    leases = store.flush_and_claim([], want, now_us=2).leases

    leased = [(lease.job_id, lease.slot, lease.params) for lease in leases]
    assert leased == list(zip(ids, range(SLOTS), params, strict=True))
