"""A ZooKeeper for each process of the tests, and in it a tree for each test."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from spinney.bridges.merritt import MerrittQueue
from zookeeper_servers import Server, standalone

NOW = "2026-03-01 14:05:09 -0800"
SESSION_S = 1.0
"""For clients that are killed: their locks go with their session."""
LONG_SESSION_S = 20.0
"""For all others, which a busy machine may keep from their heartbeats."""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with standalone() as each:
        yield each


@pytest.fixture
def hosts(server: Server) -> str:
    """Address and chroot: a tree of the test's own."""
    return new_tree(server)


@pytest.fixture
def connect(hosts: str) -> Iterator[Callable[[], KazooClient]]:
    """Make further clients of the same tree, each with a session of its own."""
    clients: list[KazooClient] = []

    def one() -> KazooClient:
        clients.append(started(hosts, LONG_SESSION_S))
        return clients[-1]

    yield one
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def client(connect: Callable[[], KazooClient]) -> KazooClient:
    return connect()


@pytest.fixture
def queue(client: KazooClient) -> MerrittQueue:
    queue = MerrittQueue(client, "ingest01:4711")
    queue.initialize()
    return queue


@pytest.fixture
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("spinney.bridges.merritt.codec.now_text", lambda: NOW)
    return NOW


def new_tree(server: Server) -> str:
    """Return the address and the chroot of an empty tree."""
    chroot = f"/{uuid.uuid4().hex}"
    client = started(server.address, LONG_SESSION_S)
    client.ensure_path(chroot)
    client.stop()
    client.close()
    return server.address + chroot


def started(hosts: str, session_s: float = SESSION_S) -> KazooClient:
    """Return a client that is connected."""
    client = KazooClient(hosts, timeout=session_s)
    client.start(timeout=20)
    return client
