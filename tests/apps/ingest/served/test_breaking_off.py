"""A payload that comes over a connection, and whose sender goes away in the middle."""

import socket
import time
from pathlib import Path

import pytest
from starlette.requests import Request

from http_listener import Listening
from server.conftest import Askers
from spinney.model.jobs import Filter
from spinney.web.request_context import REFRESH_S
from spinney.web.settings import ServerSettings
from spinney.web.store_pool import ServerBusy, StorePool
from waiting import until

from .conftest import build

HEAD = (
    b"POST /api/v1/apps/ingest/submit?name=map.tif&profile=maps&kind=file HTTP/1.1\r\nHost: localhost\r\n"
    b"X-Asker: ann\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\nsome bytes"
)
FORM = (
    b"POST /api/v1/apps/ingest/submit HTTP/1.1\r\nHost: localhost\r\nX-Asker: ann\r\n"
    b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000\r\n\r\n"
    b'--x\r\nContent-Disposition: form-data; name="profile"\r\n\r\nmaps\r\n'
    b'--x\r\nContent-Disposition: form-data; name="kind"\r\n\r\nfile\r\n'
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="map.tif"\r\n\r\nsome bytes'
)


@pytest.mark.parametrize("head", [HEAD, FORM], ids=["body", "form"])
def test_half_a_payload_leaves_nothing(head: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, app = build(tmp_path, monkeypatch)
    incoming = service.settings.incoming
    listening = Listening(app, ServerSettings())
    with socket.create_connection(("127.0.0.1", listening.port)) as sender:
        sender.sendall(head)
        until(lambda: len(list(incoming.iterdir())) == 1)
    until(lambda: len(list(incoming.iterdir())) == 0)
    listening.end()
    with service.store() as store:
        assert not store.job_lists.find(Filter(), limit=1)


@pytest.mark.parametrize("why", ["busy", "signed out"])
def test_a_payload_that_nobody_may_hand_over_any_more_leaves_nothing(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, app = build(tmp_path, monkeypatch)
    incoming = service.settings.incoming

    async def nobody(request: Request) -> None:
        return None

    async def busy(*_: object, **__: object) -> None:
        raise ServerBusy("more is asked of this server than it can answer")

    listening = Listening(app, ServerSettings())
    with socket.create_connection(("127.0.0.1", listening.port)) as sender:
        sender.sendall(HEAD)
        until(lambda: len(list(incoming.iterdir())) == 1)
        if why == "busy":
            monkeypatch.setattr(StorePool, "run", busy)
        else:
            monkeypatch.setattr(Askers, "reauthenticate", lambda self, request: nobody(request))
            time.sleep(REFRESH_S)
        sender.sendall(b"x" * 990)
        answer = sender.recv(1000)
    until(lambda: len(list(incoming.iterdir())) == 0)
    monkeypatch.undo()
    listening.end()
    assert answer.split()[1] == (b"503" if why == "busy" else b"401")
