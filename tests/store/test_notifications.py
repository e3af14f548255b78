"""What is announced to a store on PostgreSQL, and who hears it."""

import select
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from servers import postgres_schema, postgres_url
from spinney.model.errors import StoreUnusable
from spinney.store.contract import Listener
from spinney.store.sql import SqlStore, open_store
from spinney.store.sql.connection.notifications import channel
from spinney.store.sql.connection.postgres import PostgresDatabase

PATIENCE_S = 60.0


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def store(opened: ExitStack) -> SqlStore:
    return made(opened)


def made(opened: ExitStack) -> SqlStore:
    url = opened.enter_context(postgres_schema())
    store = open_store(f"{url}&application_name={url.rpartition('=')[2]}")
    opened.callback(store.close)
    store.create()
    return store


def ear_of(store: SqlStore, opened: ExitStack) -> Listener:
    listener = store.listen()
    assert listener is not None
    opened.callback(listener.close)
    return listener


def next_heard(listener: Listener) -> list[str]:
    """The server may also send what is no notification, or the beginning of one."""
    while True:
        readable, _, _ = select.select([listener], [], [], PATIENCE_S)
        assert readable, "nothing was heard"
        if names := list(listener.poll()):
            return names


def terminate(store: SqlStore) -> None:
    """End all connections of this store, and no others: the processes that run tests share one server."""
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        ended = connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s",
            (store.database.schema,),
        ).rowcount
    assert ended > 0


def test_what_is_announced_is_heard_with_its_sender(store: SqlStore, opened: ExitStack) -> None:
    listener = ear_of(store, opened)
    store.notify("oak")

    assert next_heard(listener) == ["oak"]
    assert listener.poll() == []


def test_stores_in_one_database_do_not_wake_each_other(store: SqlStore, opened: ExitStack) -> None:
    listener, other = ear_of(store, opened), made(opened)
    other.notify("of the other")
    store.notify("own")

    assert next_heard(listener) == ["own"]


def test_a_long_name_of_a_schema_has_a_channel_of_its_own() -> None:
    one, two = "s" * 62 + "1", "s" * 62 + "2"

    assert channel("spinney") == "spinney_spinney"
    assert len({channel(one), channel(two), channel("s" * 55)}) == 3
    assert max(map(len, map(channel, (one, two, "s" * 55)))) <= 63


def test_an_ear_whose_connection_was_ended_says_so(store: SqlStore, opened: ExitStack) -> None:
    listener = ear_of(store, opened)
    terminate(store)

    def hear_on() -> None:
        while True:
            next_heard(listener)

    with pytest.raises(StoreUnusable, match="polling goes on"):
        hear_on()


def test_announcing_fails_silently(store: SqlStore) -> None:
    store.signature()
    terminate(store)

    store.notify("oak")
    store.notify("oak")

    assert store.signature() >= 0


def test_a_file_has_no_ears(tmp_path: object) -> None:
    store = open_store(f"sqlite:///{tmp_path}/spinney.db")
    store.create()
    store.notify("oak")
    assert store.listen() is None
    store.close()


def test_making_a_store_is_one_transaction(opened: ExitStack) -> None:
    url = opened.enter_context(postgres_schema())
    database = PostgresDatabase(url)

    def broken(connection: object) -> None:
        connection.exec_driver_sql(f'create table "{database.schema}".half (n integer)')  # type: ignore[attr-defined]
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        database.upgrade(broken)

    with psycopg.connect(postgres_url()) as connection:
        assert connection.execute("select to_regnamespace(%s)", (database.schema,)).fetchone() == (None,)
