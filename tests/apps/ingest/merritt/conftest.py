"""The ZooKeeper of the library's tests, and an ingest service that works for the queue in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from bridges.merritt.conftest import client, connect, hosts, new_tree, queue, server, started
from spinney.bridges.merritt import MerrittQueue
from zookeeper_servers import Server

from .consumers import start
from .service import IngestService

__all__ = ["client", "connect", "hosts", "queue", "server", "start"]


@pytest.fixture
def service(tmp_path: Path, hosts: str) -> Iterator[IngestService]:
    """A service that is ended after the test."""
    made = IngestService(tmp_path / "oak", hosts, "oak")
    yield made
    made.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[IngestService]:
    """A service at work on a tree of its own, for all tests of a module. Each submits batches of its own, and leaves
    the service at work and its queues and locks as they were."""
    made = IngestService(tmp_path_factory.mktemp("running") / "oak", new_tree(server), "oak")
    client = started(made.hosts)
    MerrittQueue(client).initialize()
    client.stop()
    client.close()
    try:
        made.start()
        made.until("the bridge to work", lambda: "merritt:" in made.spinney("bridges"))
        yield made
        made.stop()
    finally:
        made.close()


@pytest.fixture
def its_client(running: IngestService) -> Iterator[KazooClient]:
    """A client of the tree of the service that runs for all tests of a module."""
    client = started(running.hosts)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def its_queue(its_client: KazooClient) -> MerrittQueue:
    return MerrittQueue(its_client, "ingest01:4711")
