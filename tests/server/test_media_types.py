"""Which media type a client prefers, by rules and examples of RFC 9110, section 12.5.1."""

import pytest
from fastapi import Request

from spinney.web.media_types import is_of_page, preferred, prefers_page, takes_gzip

JSON, CSV = "application/json", "text/csv"


def request(*headers: str, name: bytes = b"accept") -> Request:
    return Request({"type": "http", "headers": [(name, header.encode()) for header in headers]})


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (CSV, CSV),
        ("TEXT/CSV", CSV),
        ("text/csv; charset=utf-8", CSV),
        ("text/*", CSV),
        ("application/json, text/csv;q=0.5", JSON),
        ("application/json;q=0.5, text/csv", CSV),
        ("application/json;q=0.5, text/csv ; Q=0.50", JSON),  # equal: the one named first
        ("text/csv, application/json", CSV),
        ("application/json, text/csv", JSON),
        ("text/csv, */*", CSV),  # equal: the one named more specifically
        ("text/*, application/json", JSON),
        ("text/csv;q=0, */*", JSON),
        ("text/csv;q=0", JSON),
        ("text/*;q=1, text/csv;q=0.1, application/json;q=0.2", JSON),  # the most specific range counts
        ("*/*;q=0.1, text/csv;q=0.2", CSV),
        ("*/*", JSON),
        ("", JSON),
        (",;q=,", JSON),
        ("text/html", JSON),
        ("x/text/csv, text/csvs", JSON),
        ("text/csv;q=high", JSON),
        ("text/csv;q=nan, application/json;q=0.1", JSON),
        ("text/csv;q=2, application/json;q=0.1", JSON),
    ],
)
def test_given_a_header_then_one_of_the_offered_types_is_preferred(header: str, expected: str) -> None:
    assert preferred(request(header), (JSON, CSV)) == expected


def test_given_no_header_then_the_first_is_preferred_and_of_two_headers_both_count() -> None:
    assert preferred(request(), (JSON, CSV)) == JSON
    assert preferred(request("application/json;q=0.1", "text/csv"), (JSON, CSV)) == CSV


@pytest.mark.parametrize(
    ("header", "is_page"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("text/html", True),
        ("*/*", False),
        ("", False),
        ("application/json, text/html;q=0.5", False),
        ("application/problem+json, text/html;q=0.5", False),
        ("text/html;q=0, */*", False),
    ],
)
def test_given_a_header_then_a_page_is_for_those_who_prefer_one(header: str, is_page: bool) -> None:
    assert prefers_page(request(header)) is is_page


@pytest.mark.parametrize(
    ("path", "header", "value", "of_page"),
    [
        ("/jobs", b"accept", b"text/html", True),
        ("/jobs", b"hx-request", b"true", True),
        ("/jobs", b"accept", b"*/*", False),
        ("/api/v1/jobs", b"accept", b"text/html", False),
        ("/metrics", b"accept", b"text/html", False),
    ],
)
def test_given_a_request_then_people_read_the_answers_of_pages_alone(
    path: str, header: bytes, value: bytes, of_page: bool
) -> None:
    scope = {"type": "http", "server": ("host", 80), "scheme": "http", "path": path, "query_string": b""}
    assert is_of_page(Request({**scope, "headers": [(header, value)]})) is of_page


@pytest.mark.parametrize(
    ("header", "packed"),
    [
        ("gzip, deflate, br", True),
        ("GZIP;q=0.1", True),
        ("*", True),
        ("gzip;q=0, *", False),
        ("gzip;q=0", False),
        ("identity", False),
        ("x-gzipped", False),
        ("", False),
    ],
)
def test_given_a_header_then_gzip_is_for_those_who_take_it(header: str, packed: bool) -> None:
    assert takes_gzip(request(header, name=b"accept-encoding")) is packed
