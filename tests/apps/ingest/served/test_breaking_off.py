"""A payload that comes over a connection, and whose sender goes away in the middle."""

import socket
import time
from pathlib import Path

import pytest

from listening import Listening
from spinney.model.jobs import Filter
from spinney.server.settings import ServerSettings

from .conftest import build

PATIENCE_S = 30.0
HEAD = (
    b"POST /api/v1/apps/ingest/submit?name=map.tif&profile=maps&kind=file HTTP/1.1\r\nHost: localhost\r\n"
    b"X-Asker: ann\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\nsome bytes"
)


def until(folder: Path, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(list(folder.iterdir())) != count:
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def test_half_a_payload_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, app = build(tmp_path, monkeypatch)
    incoming = service.settings.incoming
    listening = Listening(app, ServerSettings())
    with socket.create_connection(("127.0.0.1", listening.port)) as sender:
        sender.sendall(HEAD)
        until(incoming, 1)
    until(incoming, 0)
    listening.end()
    with service.store() as store:
        assert not store.bulk.find(Filter(), limit=1)
