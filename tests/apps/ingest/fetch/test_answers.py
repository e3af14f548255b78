"""Reading headers, those of hostile servers too."""

import socket
from datetime import UTC, datetime

import pytest

from spinney.apps.ingest.fetch import response_headers
from spinney.apps.ingest.fetch.connections import Connection, Pace
from spinney.apps.ingest.fetch.errors import Halt
from spinney.apps.ingest.fetch.rules import Rules

LATER = "Sun, 09 Sep 2001 01:46:41 GMT"
EARLIER = "Sun, 09 Sep 2001 01:46:40 GMT"


def test_repeated_headers_are_joined() -> None:
    assert response_headers.headers_of([("A", "1"), ("a", "2"), ("B", "é\r\n e")]) == {
        "a": "1, 2",
        "b": "é e",
    }


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1_000", "١", "0x10", "1, 2", "5, 05", "5,", "9" * 30, "1.5"]
)
def test_a_length_that_is_no_number_is_unknown(text: str) -> None:
    assert response_headers.length_of({"content-length": text}) is None


def test_a_length_that_is_repeated_is_that_length() -> None:
    assert response_headers.length_of({"content-length": "5, 5, 5"}) == 5


def test_a_content_range() -> None:
    span = response_headers.span_of({"content-range": "bytes 5-9/10"})
    assert span == response_headers.Span(first=5, whole_bytes=10)
    unsatisfied = response_headers.span_of({"content-range": "bytes */10"})
    assert unsatisfied == response_headers.Span(first=None, whole_bytes=10)
    for text in ("", "bytes", "bytes 5-/10", "bytes -5-9/10", "lines 5-9/10", "bytes 5-9/10, bytes 1-2/10"):
        assert response_headers.span_of({"content-range": text}) is None


@pytest.mark.parametrize(
    ("headers", "condition"),
    [
        ({"etag": '"a"'}, '"a"'),
        ({"etag": 'W/"a"'}, None),
        ({"etag": "a"}, None),
        ({"etag": '"a", "b"'}, None),
        ({"last-modified": EARLIER, "date": LATER}, EARLIER),
        ({"last-modified": LATER, "date": LATER}, None),
        ({"last-modified": EARLIER}, None),
        ({"last-modified": "yesterday", "date": LATER}, None),
        ({}, None),
    ],
)
def test_only_a_strong_validator_lets_a_file_be_resumed(
    headers: dict[str, str], condition: str | None
) -> None:
    assert response_headers.condition_of(headers) == condition


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "86400"}, 120.0),
        ({"retry-after": LATER, "date": EARLIER}, 1.0),
        ({"retry-after": EARLIER, "date": LATER}, 0.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT", "date": EARLIER}, 120.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_a_server_is_left_alone_as_long_as_it_asks_within_bounds(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert response_headers.retry_after_s(headers, 120.0) == seconds


@pytest.mark.parametrize("text", ["", "soon", "Sun, 99 Sep 2001 01:46:41 GMT", "Sun, 09 Sep 99999 1:1:1 GMT"])
def test_a_date_that_is_none(text: str) -> None:
    assert response_headers.date_of({"date": text}, "date") is None


def test_a_date_is_told_in_utc() -> None:
    date = response_headers.date_of({"date": "Sun, 09 Sep 2001 03:46:40 +0200"}, "date")
    assert date == datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)


def test_a_pace_is_judged_over_whole_windows() -> None:
    pace = Pace(floor_bytes_s=10, window_s=60)

    assert pace.is_kept(waited_s=59, read_bytes=0)
    assert pace.is_kept(waited_s=1, read_bytes=600)
    assert pace.is_kept(waited_s=59, read_bytes=10_000)
    assert pace.is_kept(waited_s=1, read_bytes=0)
    assert not pace.is_kept(waited_s=60, read_bytes=599)


def test_a_response_may_be_closed_after_its_stream_as_the_garbage_collector_does() -> None:
    here, server = socket.socketpair()
    with here, server:
        server.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
        response = Connection(("http", "a.example", 80), here, Rules(), Halt()).request("GET", b"\r\n")
        response.fp.close()
        response.close()
    assert response.closed
