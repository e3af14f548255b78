"""Through which doors a webhook goes out."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import httpx
import pytest

from spinney.reports.http_post import SendAborted
from spinney.reports.safe_transport import SafeTransport

from .hook_server import answer, receiver

ADVICE = "open the door"


def post(url: str, doors: SafeTransport, timeout_s: float = 5.0) -> httpx.Response:
    with httpx.Client(transport=doors, timeout=timeout_s, trust_env=False) as client:
        return client.post(url, content=b"{}")


@contextmanager
def dripping() -> Iterator[str]:
    """It sends a byte of its head at a time, without end."""
    over = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
        while not over.wait(0.02):
            try:
                handler.wfile.write(b"a")
            except OSError:
                return

    with receiver(drip) as made:
        try:
            yield made.url
        finally:
            over.set()


def test_it_goes_to_where_the_configuration_says() -> None:
    with receiver(answer(204)) as made:
        host = made.url.split("/")[2]
        assert post(made.url, SafeTransport(hosts=frozenset({host}), advice=ADVICE)).status_code == 204
        assert post(made.url, SafeTransport(private=True, advice=ADVICE)).status_code == 204
    assert [call.body for call in made.calls] == [b"{}", b"{}"]


@pytest.mark.parametrize("hosts", [frozenset[str](), frozenset({"127.0.0.1:1"}), frozenset({"localhost"})])
def test_no_door_is_open_by_itself(hosts: frozenset[str]) -> None:
    with (
        receiver(answer(204)) as made,
        pytest.raises(ValueError, match=r"^127\.0\.0\.1 is not on the public Internet; open the door"),
    ):
        post(made.url, SafeTransport(hosts=hosts, advice=ADVICE))
    assert made.calls == []


def test_one_address_that_is_private_refuses_all() -> None:
    doors = SafeTransport(advice=ADVICE, resolve=lambda host, port: ["8.8.8.8", "10.0.0.1"])
    with pytest.raises(ValueError, match=r"example\.org leads to 10\.0\.0\.1"):
        post("http://example.org/", doors)


def test_the_connection_is_made_to_the_address_that_was_judged() -> None:
    hosts: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        hosts.append(host)
        return ["127.0.0.1"]

    with receiver(answer(204)) as made:
        port = made.url.split(":")[2].split("/")[0]
        post(f"http://nowhere.invalid:{port}/", SafeTransport(private=True, advice=ADVICE, resolve=resolve))

    assert hosts == ["nowhere.invalid"]
    assert made.calls[0].headers["Host"] == f"nowhere.invalid:{port}"


def test_a_name_that_is_not_resolved_may_be_resolved_later() -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    with pytest.raises(httpx.HTTPError, match="not resolved"):
        post("http://example.org/", SafeTransport(advice=ADVICE, resolve=resolve))


def test_who_drips_is_left_after_a_while() -> None:
    with dripping() as url, pytest.raises(httpx.HTTPError, match=r"more than 0\.4 s"):
        post(url, SafeTransport(private=True, advice=ADVICE, total_timeout_s=0.4))


def test_it_can_be_called_off() -> None:
    halt = threading.Event()
    timer = threading.Timer(0.2, halt.set)
    with dripping() as url:
        timer.start()
        with pytest.raises(SendAborted):
            post(url, SafeTransport(private=True, advice=ADVICE, halt=halt))
