"""Room for everybody, on a real server with little of it: connections, streams, outputs, uploads, downloads."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import orjson
import pytest
from starlette.requests import HTTPConnection
from starlette.responses import StreamingResponse

import waiting
from contract.words import RealClock, Site
from http_listener import Listening
from spinney.folders import folders
from spinney.model.access import Rights, Role
from spinney.server.application import Parts, make
from spinney.store.parts import Store
from spinney.store.sql import open_store
from spinney.web.files.responses import LONG_BYTES
from spinney.web.long_requests.quotas import Quota, Quotas
from spinney.web.problems import TooMany
from spinney.web.settings import ServerSettings

from .conftest import Askers, store_at

PATIENCE_S = 20.0
SETTINGS = ServerSettings(
    trusted_proxies=("127.0.0.1/32",),
    connections_max=24,
    connections_per_address=12,
    idle_per_address=8,
    streams_max=5,
    streams_per_user=2,
    streams_per_address=3,
    followers_max=5,
    followers_per_user=2,
    followers_per_address=3,
    downloads_max=5,
    downloads_per_user=2,
    downloads_per_address=3,
    uploads_max=5,
    uploads_per_user=2,
    uploads_per_address=3,
)
USERS = {name: Rights(role=Role.OPERATOR) for name in ("ann", "bob", "cyd", "dot", "eve")}
HERE, THERE, ELSEWHERE = "127.0.0.2", "127.0.0.3", "127.0.0.4"
"""Addresses of clients. Only 127.0.0.1 is a proxy's."""
PROXY = "127.0.0.1"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@dataclass
class Place:
    """A server, and sockets that lead to it."""

    store: Store
    site: Site
    folders: Path
    listening: Listening
    quotas: Quotas
    sockets: ExitStack

    def connect(self, address: str = HERE) -> socket.socket:
        """A new connection from this address."""
        sock = socket.create_connection(
            ("127.0.0.1", self.listening.port), timeout=PATIENCE_S, source_address=(address, 0)
        )
        return self.sockets.enter_context(sock)

    def ask(self, method: str, path: str, user: str, *, address: str = HERE, more: str = "") -> socket.socket:
        """A connection on which this was asked."""
        sock = self.connect(address)
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nX-Asker: {user}\r\n{more}\r\n"
        sock.sendall(head.encode())
        return sock

    def keep_busy(self, address: str) -> None:
        """A connection from there on which something is being answered for as long as the test lasts."""
        until(self.ask("GET", "/endless", "ann", address=address), b"begun")

    def answers(self, address: str = ELSEWHERE) -> bool:
        """Whether it answers somebody who comes now."""
        return healthy(self.connect(address))


def healthy(sock: socket.socket) -> bool:
    sock.sendall(HEALTH)
    return until(sock, b'{"status":"alive"}').startswith(b"HTTP/1.1 200 ")


def status(sock: socket.socket) -> int:
    """Of the next answer."""
    return int(until(sock, b"\r\n\r\n").split(b" ", 2)[1])


def until(sock: socket.socket, wanted: bytes) -> bytes:
    """What comes up to this, or to the end."""
    text = b""
    while wanted not in text and (piece := sock.recv(65_536)):
        text += piece
    return text


def closed(sock: socket.socket) -> bool:
    """Whether the server has closed it, or does so in time."""
    with suppress(ConnectionResetError):
        return sock.recv(1) == b""
    return True


async def endless() -> StreamingResponse:
    """An answer that does not end by itself."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"begun"
        await asyncio.Event().wait()

    return StreamingResponse(pieces())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = tmp_path_factory.mktemp("place")
    url, root = store_at(place / "spinney.db"), place / "folders"
    store = open_store(url)
    folders.write_token(root, store.facts()["folder_token"])
    app = make(
        Parts(
            settings=SETTINGS,
            open_store=lambda: open_store(url),
            folders=root,
            run_dir=None,
            identity=lambda stores, settings: Askers(USERS),
            refresh_s=0.05,
        )
    )
    app.add_api_route("/endless", endless)
    listening = Listening(app, SETTINGS)
    yield Place(
        store=store,
        site=Site(store, RealClock()),
        folders=root,
        listening=listening,
        quotas=app.state.quotas,
        sockets=ExitStack(),
    )
    listening.end()
    store.close()


@pytest.fixture
def place(served: Place) -> Iterator[Place]:
    """With no connection open but those of the test."""
    with ExitStack() as served.sockets:
        yield served
    state = served.listening.server.server_state
    with httpx.Client(base_url=served.listening.url) as client:
        while len(state.connections) > 1:  # its own
            assert client.get("/health").status_code == 200


# --- connections ------------------------------------------------------------------------------


@pytest.mark.parametrize("address", [HERE, PROXY])
def test_given_many_more_idle_connections_than_there_is_room_for_then_all_who_come_are_answered(
    place: Place, address: str
) -> None:
    for _ in range(3 * SETTINGS.connections):
        place.connect(address)
        assert place.answers()


def test_given_idle_connections_of_one_then_those_of_another_stay(place: Place) -> None:
    mine = place.connect(THERE)
    assert healthy(mine)

    many = [place.connect(HERE) for _ in range(3 * SETTINGS.connections)]

    assert closed(many[0])
    assert healthy(mine)


def test_given_an_address_with_as_many_busy_connections_as_it_may_have_then_it_is_told_so_and_others_are_answered(
    place: Place,
) -> None:
    for _ in range(SETTINGS.connections_per_address):
        place.keep_busy(HERE)
    assert place.answers(HERE)

    refused = place.ask("GET", "/api/v1/jobs", "ann")
    answer = until(refused, b"}")
    served = place.ask("GET", "/api/v1/jobs", "ann", address=THERE)

    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: " in answer.lower()
    assert b"urn:spinney:problem:busy" in answer
    assert closed(refused)
    assert status(served) == 200


def test_given_no_room_and_nobody_idle_then_one_is_told_to_come_again_and_health_is_answered(
    place: Place,
) -> None:
    for _ in range(SETTINGS.connections):
        place.keep_busy(PROXY)
    assert place.answers()

    refused = place.ask("GET", "/api/v1/jobs", "ann", address=THERE)
    answer = until(refused, b"}")

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: " in answer.lower()
    assert place.answers()


# --- what is asked for ------------------------------------------------------------------------


class Kind:
    """Something that lasts, of which there are bounds."""

    def __init__(self, place: Place, name: str) -> None:
        self._place, self._name = place, name
        job = place.site.submit_one()
        folder = folders.make(place.folders, job)
        if name == "followers":
            lease = place.site.claim_one()  # that of an earlier test, perhaps
            place.site.start(lease)
            self._path = f"/api/v1/jobs/{lease.job_id}/attempts/{lease.fence}/stdout?follow=true"
        elif name == "downloads":
            (folder / "large").touch()
            os.truncate(folder / "large", 64 * LONG_BYTES)
            self._path = f"/api/v1/jobs/{job}/files/large"
        else:
            self._path = {"streams": "/api/v1/events?topic=holds", "uploads": f"/api/v1/jobs/{job}/files/x"}[
                name
            ]

    def begun(self, user: str, address: str = HERE, more: str = "") -> socket.socket:
        """One more, of which nothing was read yet."""
        if self._name == "uploads":
            return self._place.ask(
                "PUT", self._path, user, address=address, more=f"Content-Length: 10\r\n{more}"
            )
        return self._place.ask("GET", self._path, user, address=address, more=more)

    def wait_until_open(self, number: int) -> None:
        """Return when so many are open; they are, unless the server is broken."""
        room = getattr(self._place.quotas, self._name)
        waiting.until(lambda: room.open == number, lambda: f"{room.open} are open, not {number}")


@pytest.fixture(params=["streams", "followers", "downloads", "uploads"])
def kind(place: Place, request: pytest.FixtureRequest) -> Kind:
    room_kind = Kind(place, request.param)
    room_kind.wait_until_open(0)
    return room_kind


def refused(sock: socket.socket) -> str:
    """The sentence of a refusal for want of room."""
    answer = until(sock, b"}")
    assert answer.startswith(b"HTTP/1.1 429 "), answer
    assert b"retry-after: 10" in answer.lower()
    return str(orjson.loads(answer.partition(b"\r\n\r\n")[2])["detail"])


def test_given_as_many_as_a_user_an_address_or_all_may_have_then_others_are_served(kind: Kind) -> None:
    first = kind.begun("ann", HERE)
    kind.begun("ann", THERE)
    kind.wait_until_open(2)
    assert refused(kind.begun("ann", ELSEWHERE)).startswith("ann has 2 ")

    kind.begun("bob", HERE)
    kind.begun("cyd", HERE)
    kind.wait_until_open(4)
    assert f"are open from {HERE}" in refused(kind.begun("dot", HERE))
    assert f"are open from {HERE}" in refused(kind.begun("dot", PROXY, f"X-Forwarded-For: {HERE}\r\n"))

    kind.begun("dot", PROXY, "X-Forwarded-For: 2001:db8::1\r\n")
    kind.wait_until_open(5)
    assert "is the maximum of this server" in refused(kind.begun("eve", THERE))

    first.close()
    kind.wait_until_open(4)
    kind.begun("eve", THERE)
    kind.wait_until_open(5)


def test_given_a_user_with_many_streams_then_an_operator_has_one_and_health_is_answered(place: Place) -> None:
    kind = Kind(place, "streams")
    kinds = [kind.begun("ann", PROXY) for _ in range(3 * SETTINGS.connections)]

    operators = kind.begun("bob", PROXY)

    assert status(operators) == 200
    assert place.answers(PROXY)
    assert {status(sock) for sock in kinds[-4:]} == {429}


# --- counting, without any server -------------------------------------------------------------


def test_given_an_address_of_ipv6_then_its_network_counts_and_a_proxys_own_does_not() -> None:
    quotas = Quotas(ServerSettings(trusted_proxies=("10.0.0.0/8",)))

    def address(client: str, *forwarded: str) -> str | None:
        headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
        return quotas.address(HTTPConnection({"type": "http", "client": (client, 1), "headers": headers}))

    assert address("2001:db8:0:1::7") == address("2001:db8:0:1:ffff::1") == "2001:db8:0:1::/64"
    assert address("2001:db8:0:2::7") == "2001:db8:0:2::/64"
    assert (
        address("::ffff:192.0.2.1") == address("192.0.2.1") == address("10.0.0.1", "192.0.2.1") == "192.0.2.1"
    )
    assert address("10.0.0.1") is None
    assert address("uid:1000") is None
    assert address("192.0.2.1", "203.0.113.9") == "192.0.2.1"  # anybody may say so


def test_given_a_refusal_then_nothing_is_counted() -> None:
    quota = Quota("things", most=10, per_user=1, per_address=10)
    with quota.place("ann", "a"):
        with pytest.raises(TooMany, match="ann has 1 things open"), quota.place("ann", "a"):
            pass
        with quota.place(None, "a"), quota.place("bob", None):
            assert quota.open == 3
    assert quota.open == 0
    with quota.place("ann", "a"):
        assert quota.open == 1
