"""A server that dies in the middle of an answer: the client says that it is away, whatever it had sent by then."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.client import AsyncClient, Client
from spinney.client.calls import Call
from spinney.client.errors import IncompleteResponse, ServerUnavailable

FILE = Call(method="GET", path="/apps/library/file", decode=bytes)
"""Of an application: it cannot be asked for the rest alone."""


@pytest.fixture(params=[b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"], ids=["silent", "half"])
def dying(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a server that reads one request, sends so much of an answer, and is gone."""
    path = tmp_path / "s"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def once() -> None:
        connection, _ = listening.accept()
        listening.close()
        with connection:
            connection.recv(65536)
            connection.sendall(request.param)

    thread = threading.Thread(target=once)
    thread.start()
    yield f"unix:{path}"
    thread.join()


def test_the_client_says_that_it_is_away(dying: str) -> None:
    with Client(dying) as client, pytest.raises(ServerUnavailable, match="does not answer"):
        b"".join(client.output(1, 1))


def test_the_client_that_is_awaited_says_so_too(dying: str) -> None:
    async def read() -> bytes:
        async with AsyncClient(dying) as client:
            return b"".join([piece async for piece in client.output(1, 1)])

    with pytest.raises(ServerUnavailable, match="does not answer"):
        asyncio.run(read())


def test_what_an_application_sends_is_never_taken_for_the_whole(
    dying: str, request: pytest.FixtureRequest
) -> None:
    expected = IncompleteResponse if "half" in request.node.name else ServerUnavailable
    with Client(dying) as client, pytest.raises(expected):
        b"".join(client.pieces(FILE))


def test_nor_by_the_client_that_is_awaited(dying: str, request: pytest.FixtureRequest) -> None:
    async def read() -> bytes:
        async with AsyncClient(dying) as client:
            return b"".join([piece async for piece in client.pieces(FILE)])

    with pytest.raises(IncompleteResponse if "half" in request.node.name else ServerUnavailable):
        asyncio.run(read())
