"""The connection is lost between COMMIT and its answer: what the store says then, and what it tells afterwards."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from long_tests import long_alone
from private_server import Network, PrivateServer, server_with_store_schema
from spinney.model.errors import CommitUncertain, StoreUnavailable
from spinney.model.jobs import ClaimRequest, LaneRequest, NodeInfo, Record, SlotRequest, Submission
from spinney.model.outcomes import Outcome
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection import postgres_connection
from spinney.store.sql.connection.postgres import PostgresDatabase

WANT = ClaimRequest(
    node_id=1, slots=[SlotRequest(n, 1, 0.0, True) for n in range(2)], lanes={("t", "s"): LaneRequest()}
)


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    made = PrivateServer().start()
    yield made
    made.stop("immediate")


@pytest.fixture
def network(server: PrivateServer) -> Iterator[Network]:
    made = Network(server.port)
    yield made
    made.close()


@pytest.fixture
def store(server: PrivateServer, network: Network) -> Iterator[SqlStore]:
    """On the far side of the network, with two jobs and a node that has claimed them."""
    with server_with_store_schema(server) as schema:
        with closing(
            open_store(server.url(schema=schema))
        ) as patient:  # to make a store takes as long as it takes
            patient.create()
        made = open_store(server.url(schema=schema, port=network.port), 1.5)
        made.register([TypeSpec(name="t", stages=(StageSpec(name="s"),))], [])
        node = NodeInfo(
            id=0,
            name="oak",
            boot_id="b",
            host="h",
            pid=1,
            slots=2,
            state="active",
            beat=0,
            started_us=1,
            seen_us=1,
            version="0",
            types=("t",),
        )
        assert made.join(node, now_us=1) == 1
        made.submit([Submission(type="t", params=["{}"] * 4)], now_us=1)
        yield made
        network.lose_answers(0)
        made.close()


def test_what_was_recorded_and_what_was_claimed_is_in_the_account(store: SqlStore, network: Network) -> None:
    # Given two attempts that have ended
    first, second = store.flush_and_claim([], WANT, now_us=2).leases
    records = [Record(lease.job_id, lease.fence, Outcome.OK, 2, 3) for lease in (first, second)]
    # When the answer to their exchange is lost
    network.lose_answers()
    with pytest.raises(CommitUncertain, match="it is not known whether that was done"):
        store.flush_and_claim(records, WANT, now_us=3)
    network.lose_answers(0)
    # Then the account names both as recorded, and the leases that were granted with them
    account = store.reconcile(1, records)
    assert account.recorded == {first.fence, second.fence}
    assert sorted(job_id for job_id, _ in account.leased) == [3, 4]
    assert not {first.fence, second.fence} & {fence for _, fence in account.leased}


def test_a_connection_that_was_ended_while_nothing_was_asked_of_it_is_made_again(
    store: SqlStore, server: PrivateServer
) -> None:
    first, second = store.flush_and_claim([], WANT, now_us=2).leases
    records = [Record(lease.job_id, lease.fence, Outcome.OK, 2, 3) for lease in (first, second)]
    with server.connect() as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
            "and backend_type = 'client backend'"
        )
    # Nothing had been asked of it, so it is made again, and nobody notices
    account = store.reconcile(1, records)
    assert account.recorded == frozenset()
    assert sorted(account.leased) == sorted((lease.job_id, lease.fence) for lease in (first, second))


@long_alone
@pytest.mark.timeout(20)
def test_a_network_that_swallows_what_is_sent_hangs_nobody(store: SqlStore, network: Network) -> None:
    store.signature()
    network.cut()
    with pytest.raises(StoreUnavailable, match=r"no answer within 1\.5 s"):
        store.signature()
    # ... nor who connects anew
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        store.signature()
    network.mend()
    assert store.signature() > 0


@pytest.mark.timeout(20)
def test_a_server_that_stands_still_hangs_nobody(store: SqlStore, server: PrivateServer) -> None:
    server.stand_still()
    try:
        with pytest.raises(StoreUnavailable, match=r"no answer within 1\.5 s"):
            store.flush_and_claim([], WANT, now_us=2)
    finally:
        server.go_on()
    assert len(store.flush_and_claim([], WANT, now_us=3).leases) == 2


@pytest.mark.timeout(20)
def test_a_server_that_answers_each_statement_is_not_called_away_when_all_of_them_take_too_long(
    store: SqlStore,
) -> None:
    too_long = pytest.raises(StoreUnavailable, match="answered, but a transaction took too long")
    with too_long as raised, store.database.write() as tx:
        for _ in range(20):
            tx.run("select pg_sleep(0.2)")
    assert "start it" not in str(raised.value)


def schema_of(store: SqlStore) -> str:
    assert isinstance(store.database, PostgresDatabase)
    return store.database.schema


@pytest.mark.timeout(20)
def test_one_who_stands_still_with_the_turn_is_ended_by_the_server(
    store: SqlStore, server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres_connection._SETTINGS, "idle_in_transaction_session_timeout", "1s")
    other = open_store(server.url(schema=schema_of(store)))
    with pytest.raises(StoreUnavailable, match="cannot be reached"), other.database.write() as tx:  # noqa: PT012
        # Who waits for the turn gets it after a pause, and not an error
        assert len(store.flush_and_claim([], WANT, now_us=2).leases) == 2
        tx.run("select 1")  # it wakes, and its connection is gone
    other.close()


@pytest.mark.timeout(20)
def test_one_who_stands_still_within_a_pipeline_is_ended_by_the_server(
    store: SqlStore, server: PrivateServer
) -> None:
    with server.connect() as connection:
        if connection.info.server_version < 170000:
            pytest.skip("needs a server that times transactions: PostgreSQL 17")
    other = open_store(server.url(schema=schema_of(store)), 0.7)
    with pytest.raises(StoreUnavailable, match="took too long"), other.database.write():  # noqa: PT012
        writer = other.database._writer  # type: ignore[attr-defined]
        with writer.pipeline():
            writer.execute("select 1").fetchone()
            # Who waits for the turn gets it after a pause, and not an error
            assert len(store.flush_and_claim([], WANT, now_us=2).leases) == 2
    other.close()


def test_a_claim_outlasts_a_crash_of_the_server(server: PrivateServer, store: SqlStore) -> None:
    # Given a claim alone, and a server that writes nothing by itself for a while
    schema = schema_of(store)
    server.stop()
    server.start(wal_writer_delay="10s", wal_writer_flush_after="0")
    store.close()
    leases = store.flush_and_claim([], WANT, now_us=2).leases
    # When it crashes at once
    server.stop("immediate")
    server.start()
    # Then the leases that a node may be running are there, so that nobody is given their jobs or their fences
    again = open_store(server.url(schema=schema))
    assert sorted(again.reconcile(1, []).leased) == sorted((lease.job_id, lease.fence) for lease in leases)
    again.close()
    store.close()


def test_the_lines_of_a_message_of_libpq_are_sentences() -> None:
    with (
        closing(open_store("postgresql://postgres@127.0.0.1:1/nothing")) as store,
        pytest.raises(StoreUnavailable, match=r"Connection refused\. Is the server running"),
    ):
        store.facts()
