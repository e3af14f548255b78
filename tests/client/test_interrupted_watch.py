"""A watch through a proxy whose server restarts meanwhile."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from threading import Thread
from unittest import mock

import pytest

from spinney.client import AsyncClient, Client, clients
from spinney.client.errors import UnexpectedResponse
from spinney.commands.job_queries import ListJobs
from spinney.model.errors import Forbidden, SpinneyError

STREAM = b'id: a.%d\nevent: overview\ndata: {"n": %d}\n\n'


@contextmanager
def proxy(*statuses: int) -> Iterator[str]:
    """A server that answers one request after another so; 200 is a stream that breaks off after one event, and all
    others are pages."""
    left = iter(enumerate(statuses, 1))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number, status = next(left)
            content = STREAM % (number, number) if status == 200 else b"<html>Bad Gateway</html>"
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream" if status == 200 else "text/html")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server,
        mock.patch.object(clients, "AGAIN_S", 0.0),
    ):
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def watched(url: str, events: int) -> list[int]:
    with Client(url) as client:
        return [event.data["n"] for event in islice(client.watch("overview"), events)]


def watched_async(url: str, events: int) -> list[int]:
    async def watch() -> list[int]:
        ids: list[int] = []
        async with AsyncClient(url) as client:
            async for event in client.watch("overview"):
                ids.append(event.data["n"])
                if len(ids) == events:
                    break
        return ids

    return asyncio.run(watch())


WATCHES = (watched, watched_async)


@pytest.mark.parametrize("watch", WATCHES)
@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_watch_that_has_begun_outlasts_a_server_that_is_away_for_now(watch: object, status: int) -> None:
    assert callable(watch)
    with proxy(200, status, status, 200) as url:
        assert watch(url, 2) == [1, 4]


@pytest.mark.parametrize("watch", WATCHES)
def test_a_watch_that_may_go_on_no_more_is_told_why(watch: object) -> None:
    assert callable(watch)
    with proxy(200, 403) as url, pytest.raises(SpinneyError) as error:
        watch(url, 2)
    assert isinstance(error.value, Forbidden) or "403" in str(error.value)


@pytest.mark.parametrize("watch", WATCHES)
@pytest.mark.parametrize("statuses", [(203, 203), (200, 203, 203)], ids=["at first", "later"])
def test_a_page_in_place_of_the_stream_ends_the_watch(watch: object, statuses: tuple[int, ...]) -> None:
    assert callable(watch)
    with proxy(*statuses) as url, pytest.raises(UnexpectedResponse, match="Bad Gateway"):
        watch(url, 2)


@pytest.mark.parametrize("watch", WATCHES)
def test_a_server_that_is_away_at_first_is_told_by_the_watch(watch: object) -> None:
    assert callable(watch)
    with proxy(502) as url, pytest.raises(SpinneyError):
        watch(url, 1)


def test_a_page_in_place_of_an_answer_is_no_answer_of_spinneys() -> None:
    async def listed(url: str) -> None:
        async with AsyncClient(url) as client:
            await client.do(ListJobs())

    with (
        proxy(203) as url,
        Client(url) as client,
        pytest.raises(UnexpectedResponse, match=r"answered 203.*Bad Gateway"),
    ):
        client.do(ListJobs())
    with proxy(203) as url, pytest.raises(UnexpectedResponse, match=r"answered 203.*Bad Gateway"):
        asyncio.run(listed(url))
