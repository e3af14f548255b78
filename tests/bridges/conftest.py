"""The MongoDB-compatible server for all bridges that need one."""

import pytest

from bridges.mongo import db, mongo_server, own_server
from spinney.bridges.disbatch import database, registration
from spinney.bridges.disbatch.interface import nodes

__all__ = ["db", "mongo_server", "own_server", "short_reach"]


@pytest.fixture
def short_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer is away after two seconds, not after ten."""
    for module in (database, registration, nodes):
        monkeypatch.setattr(module, "REACH_S", 2.0)
