"""The ZooKeeper of the library's tests, and an ingest service that works for the queue in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridges.merritt.conftest import client, connect, hosts, queue, server

from .consumers import start
from .service import IngestService

__all__ = ["client", "connect", "hosts", "queue", "server", "start"]


@pytest.fixture
def service(tmp_path: Path, hosts: str) -> Iterator[IngestService]:
    """A service that is ended after the test."""
    made = IngestService(tmp_path / "oak", hosts, "oak")
    yield made
    made.close()
