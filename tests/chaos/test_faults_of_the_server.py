"""PostgreSQL is restarted, its backends are ended, its connections are exhausted; the load goes on."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from chaos_load import Grove, Harvest, works

from long_tests import long_alone
from private_server import PrivateServer, server_with_store_schema

pytestmark = [
    long_alone,
    pytest.mark.timeout(600),
]
LASTING_S = 8.0
"""A lease that outlasts what is done to the server; a guard lets its node live for 6.4 s of it."""
ROUNDS = 5
Tell = Callable[[str, str, Harvest], None]


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    made = PrivateServer()
    yield made
    made.stop("immediate")


@pytest.fixture
def grow(
    plant: Callable[..., Grove], server: PrivateServer, stack: contextlib.ExitStack
) -> Callable[[float], Grove]:
    """Two nodes at work on that server, with leases of so many seconds."""
    if not server.running:
        server.start()
    schema = stack.enter_context(server_with_store_schema(server))

    def made(lease_period_s: float) -> Grove:
        grove = plant(server.url(schema=schema), lease_period_s=lease_period_s)
        for name in ("oak", "elm"):
            grove.start(name)
        return grove

    return made


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_the_server_is_restarted(
    grow: Callable[[float], Grove], server: PrivateServer, tell: Tell, how: str
) -> None:
    grove = grow(LASTING_S)
    with grove.under_load(100):
        works(grove)
        for _ in range(ROUNDS):
            grove.rest(1.0)
            grove.blow(lambda: server.stop(how), lasts=lambda: (grove.rest(1.0), server.start()))
    harvest = grove.harvest()
    assert grove.restarts == 0, "no node ended for it"
    tell({"fast": "PostgreSQL restarted", "immediate": "PostgreSQL crashed"}[how], "PostgreSQL", harvest)


def test_the_server_is_away_for_longer_than_a_lease(
    grow: Callable[[float], Grove], server: PrivateServer, tell: Tell
) -> None:
    grove = grow(2.0)
    with grove.under_load(100):
        works(grove)
        for _ in range(2):
            grove.rest(1.0)
            grove.blow(lambda: server.stop("immediate"), lasts=lambda: (grove.rest(4.0), server.start()))
    harvest = grove.harvest()
    assert grove.restarts >= 2, "a node outlived its lease"
    tell("PostgreSQL away for two leases", "PostgreSQL", harvest)


def test_backends_are_terminated(grow: Callable[[float], Grove], server: PrivateServer, tell: Tell) -> None:
    grove = grow(LASTING_S)
    ended = 0
    with grove.under_load(100), server.connect() as connection:
        works(grove)
        for _ in range(10 * ROUNDS):
            grove.rest(grove.draw.uniform(0.02, 0.2))
            grove.blow(lambda: None)
            ended += connection.execute(END_ALL).rowcount
    assert ended > 10 * ROUNDS
    harvest = grove.harvest()
    assert grove.restarts == 0, "no node ended for it"
    tell("PostgreSQL's backends terminated", "PostgreSQL", harvest)


def test_connections_are_exhausted(grow: Callable[[float], Grove], server: PrivateServer, tell: Tell) -> None:
    server.stop()
    server.start(max_connections="20")
    grove = grow(LASTING_S)
    with grove.under_load(100):
        works(grove)
        for _ in range(ROUNDS):
            grove.rest(1.0)
            with server.connect() as connection, all_taken(server) as taken:
                grove.blow(
                    lambda: connection.execute(END_ALL), lasts=lambda: (grove.rest(2.0), taken.clear())
                )
    harvest = grove.harvest()
    assert "connection" in grove.log("oak") + grove.log("elm")
    assert grove.restarts == 0, "no node ended for it"
    tell("PostgreSQL's connections exhausted", "PostgreSQL", harvest)
    server.stop()


END_ALL = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where pid <> pg_backend_pid() and backend_type = 'client backend' and application_name <> 'taker'"
)


@contextlib.contextmanager
def all_taken(server: PrivateServer) -> Iterator[threading.Event]:
    """Whatever connection there is to be had is taken, until the event is cleared."""
    going_on = threading.Event()
    going_on.set()

    def take() -> None:
        taken: list[psycopg.Connection[tuple[object, ...]]] = []
        while going_on.is_set():
            try:
                taken.append(server.connect(application_name="taker"))
            except psycopg.OperationalError:
                time.sleep(0.002)
        for one in taken:
            one.close()

    taker = threading.Thread(target=take)
    taker.start()
    try:
        yield going_on
    finally:
        going_on.clear()
        taker.join()
