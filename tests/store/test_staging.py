"""Calls that are written in steps, and what may come between two of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import job_verbs
from new_store import new_store
from spinney.model.errors import (
    CommitUncertain,
    NoSuchJob,
    Refused,
    StaleFence,
    StoreUnavailable,
    StoreUnusable,
)
from spinney.model.jobs import (
    ClaimRequest,
    Filter,
    FlushResult,
    LaneRequest,
    Lease,
    NodeInfo,
    Record,
    SlotRequest,
    Submission,
)
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.submit import staging

LATE_US = 61_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    store = open_store(new_store(tmp_path / "x.db"))
    store.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])
    yield store
    store.close()


def long_call(n: int) -> list[Submission]:
    return [Submission(type="t", params=["{}"] * n)]


def test_a_call_that_was_taken_for_abandoned_is_refused_whole(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_store(f"sqlite:///{tmp_path}/x.db")
    write, turns = store.session.write, iter(range(100))

    @contextmanager
    def interrupted(**how: bool) -> Iterator[Tx]:
        if next(turns) == 4:
            other.sweep(now_us=LATE_US)
        with write(**how) as tx:
            yield tx

    monkeypatch.setattr(store.session, "write", interrupted)

    with pytest.raises(Refused, match="submit it again"):
        store.submit(long_call(8000), now_us=0)

    monkeypatch.undo()
    while store.sweep(now_us=LATE_US).more:
        pass
    assert store.counts(Filter()) == {}
    other.close()


def test_a_job_of_a_call_that_is_still_being_written_is_named_by_its_number_where_it_is_refused(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_store(f"sqlite:///{tmp_path}/x.db")
    write, turns = store.session.write, iter(range(100))

    @contextmanager
    def looked_at(**how: bool) -> Iterator[Tx]:
        if next(turns) == 4:
            with pytest.raises(NoSuchJob, match="there is no job 1;"):
                other.holds.covering(1)
        with write(**how) as tx:
            yield tx

    monkeypatch.setattr(store.session, "write", looked_at)

    store.submit(long_call(8000), now_us=0)

    assert next(turns) > 5
    other.close()


def test_a_call_whose_need_is_deleted_between_two_steps_is_refused_whole(
    store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [need] = store.submit([Submission(type="t", params=["{}"])], now_us=1).ids
    job_verbs.cancel(store, need, tree=False, by="ann", reason=None, now_us=1)
    writes = []

    def deleted(**how: Any) -> Any:
        writes.append(how)
        if len(writes) == 2:  # the first has checked the call
            other = open_store(f"sqlite:///{tmp_path / 'x.db'}")
            job_verbs.delete(other, need, now_us=2)
            other.close()
        return write(**how)

    write = store.session.write
    monkeypatch.setattr(store.session, "write", deleted)
    with pytest.raises(NoSuchJob):
        store.submit([Submission(type="t", params=["{}"] * 400, needs=(need,))], now_us=2)

    assert store.counts(Filter(states=(State.DELETED,)))[State.DELETED] == 1
    assert sum(store.counts(Filter()).values()) == 1


def test_a_call_of_which_a_server_lost_steps_when_it_crashed_is_refused_whole(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is back at once, and knows nothing of what it had not synced: the writer must find out."""
    write, turns = store.session.write, iter(range(100))

    @contextmanager
    def gone_back(**how: bool) -> Iterator[Tx]:
        turn = next(turns)
        with write(**how) as tx:
            if turn == 4:  # as it stood two steps before
                tx.run("delete from jobs where id > 2000")
                tx.run("update staging set beat_us = 0")
            yield tx

    monkeypatch.setattr(store.session, "write", gone_back)

    with pytest.raises(Refused, match="submit it again"):
        store.submit(long_call(8000), now_us=0)

    assert store.counts(Filter()) == {}
    with store.database.look() as tx:
        assert tx.value("select count(*) from jobs") == 0


@pytest.mark.parametrize("passed", [True, False], ids=["passed", "running"])
def test_a_job_that_somebody_ran_before_it_was_put_in_place_is_left_alone(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, passed: bool
) -> None:
    monkeypatch.setattr(store, "_staging_step", lambda now_us: None)
    ids = store.submit(long_call(5000), now_us=1).ids
    early = ids[2500]
    job_verbs.cancel(store, early, tree=False, by="ann", reason=None, now_us=2)
    job_verbs.retry(store, early, stage=None, by="ann", now_us=3)
    node = _node(store)
    (lease,) = _claim(store, node, [])
    assert lease.job_id == early
    monkeypatch.undo()
    record = Record(early, lease.fence, Outcome.OK, 4, 5)
    if passed:
        store.flush_and_claim([record], None, now_us=6)
    while store.sweep(now_us=7).more:
        pass

    ran, records = [], [] if passed else [record]
    while leases := _claim(store, node, records):
        ran += [claimed.job_id for claimed in leases]
        records = [Record(claimed.job_id, claimed.fence, Outcome.OK, 8, 9) for claimed in leases]

    assert sorted(ran) == [i for i in ids if i != early]


def test_a_node_that_puts_one_call_in_place_goes_on_with_the_next(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it is given work of the first."""
    with monkeypatch.context() as patched:
        patched.setattr(store, "_staging_step", lambda now_us: None)
        for _ in range(2):
            store.submit(long_call(2500), now_us=1)
    node = _node(store, slots=3)
    assert _flush_and_claim(store, node, []).leases == []

    while _flush_and_claim(store, node, []).wake_us is not None:
        pass

    with store.database.look() as tx:
        assert tx.value("select count(*) from staging") == 0


def test_an_exchange_whose_staging_step_fails_takes_no_record_and_grants_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (parent,) = store.submit(long_call(1), now_us=1).ids
    (other,) = store.submit(long_call(1), now_us=1).ids
    node = _node(store, slots=3)
    bearing, running = _claim(store, node, [], slots=2)
    assert (bearing.job_id, running.job_id) == (parent, other)
    born = store.spawn(parent, bearing.fence, long_call(1000), now_us=2)
    step, calls = staging.step, iter(range(100))

    def fails_once(*how: Any) -> int | None:
        done = step(*how)
        if next(calls) == 0:
            raise StoreUnusable("the disk is full")
        return done

    monkeypatch.setattr(staging, "step", fails_once)
    store.flush_and_claim([Record(parent, bearing.fence, Outcome.OK, 3, 3)], None, now_us=3)
    before = store.counts(Filter())
    record = Record(other, running.fence, Outcome.OK, 3, 4)

    with pytest.raises(StoreUnusable, match="full"):
        _claim(store, node, [record])

    assert store.counts(Filter()) == before
    assert before == {State.WAITING: 1, State.CLAIMED: 1, State.PENDING: 1000}
    assert [a.outcome for a in store.attempts(other)] == [None]

    answer = _flush_and_claim(store, node, [record])

    assert (answer.refused, store.job(other).state) == ([], State.COMPLETED)
    ran, leases = [], answer.leases
    while leases:
        ran += [lease.job_id for lease in leases]
        leases = _claim(
            store, node, [Record(lease.job_id, lease.fence, Outcome.OK, 8, 9) for lease in leases]
        )
    assert sorted(ran) == list(born)
    assert store.counts(Filter()) == {State.COMPLETED: 1002}


@pytest.fixture
def bearing(store: SqlStore) -> Lease:
    """The attempt of the only job."""
    store.submit(long_call(1), now_us=1)
    (lease,) = _claim(store, _node(store), [])
    return lease


def _passes(lease: Lease) -> Record:
    return Record(lease.job_id, lease.fence, Outcome.OK, 3, 3)


def _between_steps(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, turn: int, happens: Callable[[], object]
) -> None:
    """Let this happen before a transaction of a spawn: 0 enters the call, 2 to 4 write it, 5 comes after the last."""
    write, turns = store.session.write, iter(range(100))

    @contextmanager
    def interrupted(**how: bool) -> Iterator[Tx]:
        if next(turns) == turn:
            happens()
        with write(**how) as tx:
            yield tx

    monkeypatch.setattr(store.session, "write", interrupted)


@pytest.mark.parametrize("verb", ["spawn", "submit_from"])
def test_an_attempt_that_passes_while_it_spawns_publishes_no_part_of_that(
    store: SqlStore, bearing: Lease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    other = open_store(f"sqlite:///{tmp_path}/x.db")
    _between_steps(store, monkeypatch, 3, lambda: other.flush_and_claim([_passes(bearing)], None, now_us=3))

    with pytest.raises(StaleFence):
        getattr(store, verb)(bearing.job_id, bearing.fence, long_call(5000), now_us=2)

    assert store.counts(Filter()) == {State.COMPLETED: 1}
    with store.database.look() as tx:
        assert tx.value("select count(*) from jobs") == 1
    other.close()


@pytest.mark.parametrize("verb", ["spawn", "submit_from"])
def test_a_spawn_that_was_cut_off_is_no_part_of_what_its_attempt_publishes(
    store: SqlStore, bearing: Lease, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    spawn = getattr(store, verb)
    with monkeypatch.context() as patched:

        def is_away() -> None:
            patched.setattr(store.session, "write", is_away)
            raise StoreUnavailable("the database is away")

        _between_steps(store, patched, 3, is_away)
        with pytest.raises(CommitUncertain, match="5000 jobs were written or none"):
            spawn(bearing.job_id, bearing.fence, long_call(5000), now_us=2)
    ids = spawn(bearing.job_id, bearing.fence, long_call(2500), now_us=2)

    store.flush_and_claim([_passes(bearing)], None, now_us=3)
    while store.sweep(now_us=LATE_US).more:
        pass

    assert store.counts(Filter())[State.PENDING] == len(ids)
    with store.database.look() as tx:
        assert tx.value("select count(*) from jobs") == 1 + len(ids)


def test_a_spawn_that_is_published_before_its_call_hears_of_it_stays(
    store: SqlStore, bearing: Lease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost in the commit of the last step, and the stage passes by the time the call is back."""
    other = open_store(f"sqlite:///{tmp_path}/x.db")
    write, turns = store.session.write, iter(range(100))

    @contextmanager
    def interrupted(**how: bool) -> Iterator[Tx]:
        with write(**how) as tx:
            yield tx
        if next(turns) == 4:
            other.flush_and_claim([_passes(bearing)], None, now_us=3)
            raise CommitUncertain("the connection was lost")

    monkeypatch.setattr(store.session, "write", interrupted)
    with pytest.raises(CommitUncertain):
        store.spawn(bearing.job_id, bearing.fence, long_call(5000), now_us=2)
    monkeypatch.undo()
    while store.sweep(now_us=LATE_US).more:
        pass

    assert store.counts(Filter()) == {State.WAITING: 1, State.PENDING: 5000}
    other.close()


def test_a_long_spawn_may_need_what_its_attempt_has_spawned_before(store: SqlStore, bearing: Lease) -> None:
    at = (bearing.job_id, bearing.fence)
    [need] = store.spawn(*at, long_call(1), now_us=2)
    store.spawn(*at, [Submission(type="t", params=["{}"] * 2500, needs=(need,))], now_us=2)

    store.flush_and_claim([_passes(bearing)], None, now_us=3)
    while store.sweep(now_us=4).more:
        pass

    assert store.counts(Filter()) == {State.WAITING: 2501, State.PENDING: 1}


def _node(store: SqlStore, slots: int = 1) -> int:
    info = NodeInfo(
        id=0,
        name="n",
        boot_id="",
        host="",
        pid=0,
        slots=slots,
        state="active",
        beat=0,
        started_us=0,
        seen_us=0,
        version="",
        types=(),
    )
    return store.join(info, now_us=1)


def _claim(store: SqlStore, node: int, records: list[Record], slots: int = 1) -> list[Lease]:
    return _flush_and_claim(store, node, records, slots).leases


def _flush_and_claim(store: SqlStore, node: int, records: list[Record], slots: int = 1) -> FlushResult:
    free = [SlotRequest(n, 500, 1e9, True) for n in range(slots)]
    want = ClaimRequest(node_id=node, slots=free, lanes={("t", "s"): LaneRequest(run_us=1.0)})
    return store.flush_and_claim(records, want, now_us=4)
