"""Servers that break off, lie, refuse, loop, drip: each against a real one."""

import contextlib
import gzip
import hashlib
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.fetch.conftest import Rests
from apps.ingest.web import (
    Behaviour,
    Exchange,
    Web,
    cut,
    dripping,
    endless,
    headed,
    interim,
    raw,
    redirect,
    status,
    stuck,
    whole_again,
)
from spinney.apps.ingest.fetch import FetchFailed, RemoteFile, Rules, aside_of, fetch_all
from spinney.files.digests import digest

BODY = bytes(range(256)) * 40
SUM = digest("sha256", hashlib.sha256(BODY).hexdigest())
Fetch = Callable[..., bytes]


@pytest.fixture
def fetch(rules: Rules, folder: Path, rests: Rests) -> Fetch:
    """Return a function that fetches one URL and returns the content; keywords set rules."""

    def fetch_one(url: str, *, file_fields: dict[str, Any] | None = None, **changed: Any) -> bytes:
        one = RemoteFile(url=url, name="a", **(file_fields or {}))
        [fetched] = fetch_all([one], folder, replace(rests.in_place_of(rules), **changed))
        assert fetched.sums["sha256"] == hashlib.sha256((folder / "a").read_bytes()).hexdigest()
        return (folder / "a").read_bytes()

    return fetch_one


def failure_of(fetch: Fetch, url: str, **changed: object) -> FetchFailed:
    with pytest.raises(FetchFailed) as failure:
        fetch(url, **changed)
    return failure.value


def test_after_a_break_only_the_rest_is_asked_for(web: Web, fetch: Fetch, rests: Rests) -> None:
    url = web.put("/a", BODY, cut(3000), cut(4000))

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-", "bytes=7000-"]
    assert web.log[1].headers["if-range"] == '"/a"'
    assert web.sent_bytes == len(BODY)
    assert rests.taken_s == [1.0, 2.0]


def test_a_date_serves_when_there_is_no_tag(web: Web, fetch: Fetch) -> None:
    date = "Sun, 09 Sep 2001 01:46:40 GMT"
    url = web.put("/a", BODY, cut(3000), headers={"Last-Modified": date})

    assert fetch(url) == BODY
    assert web.log[1].headers["if-range"] == date


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"a"'}])
def test_without_a_strong_validator_it_begins_anew(web: Web, fetch: Fetch, headers: dict[str, str]) -> None:
    url = web.put("/a", BODY, cut(3000), headers=headers)

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, None]


def test_a_file_that_changed_meanwhile_begins_anew(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", b"old" * 3000)

    def change(x: Exchange) -> None:
        cut(3000)(x)
        web.put("/a", BODY, headers={"ETag": '"new"'})

    web.pages["/a"].first.append(change)

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-"]


def test_a_server_without_ranges_begins_anew(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", BODY, cut(3000), whole_again)

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Range": "bytes 2999-10239/10240"},
        {"Content-Range": "bytes 3000-10239/10241"},
        {"Content-Range": "bytes 3000-10239/10240", "ETag": '"other"'},
        {"Content-Range": "bytes 3000-10239/10240", "Content-Encoding": "gzip"},
        {"Content-Range": "multipart"},
        {"Content-Type": "multipart/byteranges; boundary=x"},
    ],
)
def test_a_rest_that_does_not_fit_begins_anew(web: Web, fetch: Fetch, headers: dict[str, str]) -> None:
    url = web.put("/a", BODY, cut(3000), headed(headers, b"?" * 7240, 206))

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-", None]


def test_a_rest_that_is_refused_begins_anew(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", BODY, cut(3000), status(416, {"Content-Range": "bytes */2000"}))

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-", None]


def test_a_file_whose_end_was_not_announced_is_whole_when_there_is_no_rest(web: Web, fetch: Fetch) -> None:
    head = b'HTTP/1.1 200 OK\r\nETag: "/a"\r\nTransfer-Encoding: chunked\r\n\r\n'
    url = web.put("/a", BODY, raw(head + b"2800\r\n" + BODY))

    assert fetch(url, file_fields={"size_bytes": len(BODY), "digest": SUM}) == BODY
    assert web.ranges("/a") == [None, "bytes=10240-"]


def in_parts(x: Exchange, whole: str = str(len(BODY))) -> None:
    """Send a range of 3000 bytes at most, with this size of the whole."""
    start = x.start()
    assert start is not None
    piece = BODY[start : start + 3000]
    content_range = f"bytes {start}-{start + len(piece) - 1}/{whole}"
    x.head(206, {"Content-Range": content_range, "Content-Length": len(piece), "ETag": '"/a"'})
    x.raw(piece)


def in_parts_of_unknown(x: Exchange) -> None:
    in_parts(x, whole="*")


WITHOUT_LENGTH = b'HTTP/1.1 200 OK\r\nETag: "/a"\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\n' + BODY[:3000]


def test_a_file_without_a_length_whose_rest_comes_in_parts_is_asked_for_until_it_is_whole(
    web: Web, fetch: Fetch
) -> None:
    url = web.put("/a", BODY, raw(WITHOUT_LENGTH), in_parts, in_parts, in_parts)

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-", "bytes=6000-", "bytes=9000-"]


def test_a_file_whose_size_no_answer_gives_begins_anew(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", BODY, raw(WITHOUT_LENGTH), in_parts_of_unknown)

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-", None]


def test_a_rest_of_unknown_size_is_taken_where_the_file_has_a_digest(web: Web, fetch: Fetch) -> None:
    rest = headed({"Content-Range": "bytes 3000-10239/*", "ETag": '"/a"'}, BODY[3000:], 206)
    url = web.put("/a", BODY, raw(WITHOUT_LENGTH), rest)

    assert fetch(url, file_fields={"digest": SUM}) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-"]


def test_a_part_of_a_file_that_nobody_asked_for_is_refused(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", BODY, always=headed({"Content-Range": "bytes 0-1/10240"}, b"12", 206))

    assert "206" in failure_of(fetch, url).reason


def test_damage_on_disk_is_found_before_the_rest_is_asked_for(web: Web, fetch: Fetch, folder: Path) -> None:
    url = web.put("/a", BODY, cut(3000))
    with pytest.raises(FetchFailed):
        fetch_all([RemoteFile(url=url, name="a")], folder, Rules(hosts=frozenset({web.host})), tries=1)
    [part] = aside_of(folder).glob("*.part")
    with part.open("r+b") as file:
        file.seek(1500)
        file.write(b"!!")

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, None]


def test_a_part_of_another_url_is_not_gone_on_with(web: Web, fetch: Fetch, folder: Path) -> None:
    # Two servers may well give the same tag to different files.
    other = web.put("/other", b"?" * len(BODY), cut(3000), headers={"ETag": '"1"'})
    with pytest.raises(FetchFailed):
        fetch_all([RemoteFile(url=other, name="a")], folder, Rules(hosts=frozenset({web.host})), tries=1)

    assert fetch(web.put("/a", BODY, headers={"ETag": '"1"'})) == BODY
    assert web.ranges("/a") == [None]


@pytest.mark.parametrize("mark", [b"", b"{", b"[]", b"null", b'{"head": {}, "at": 1, "sums": {}}'])
def test_a_garbled_mark_begins_anew(web: Web, fetch: Fetch, folder: Path, mark: bytes) -> None:
    url = web.put("/a", BODY, cut(3000))
    with pytest.raises(FetchFailed):
        fetch_all([RemoteFile(url=url, name="a")], folder, Rules(hosts=frozenset({web.host})), tries=1)
    [standing] = aside_of(folder).glob("*.json")
    standing.write_bytes(mark)

    assert fetch(url) == BODY
    assert web.ranges("/a") == [None, None]


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_a_server_that_is_unwell_is_tried_again(web: Web, fetch: Fetch, code: int) -> None:
    url = web.put("/a", BODY, status(code), status(code))

    assert fetch(url) == BODY
    assert web.request_count("/a") == 3


@pytest.mark.parametrize("code", [204, 304, 400, 401, 403, 404, 410, 451, 501])
def test_a_refusal_is_final(web: Web, fetch: Fetch, code: int) -> None:
    failure = failure_of(fetch, web.put("/a", BODY, always=status(code)))

    assert not failure.retryable
    assert str(code) in failure.reason
    assert web.request_count("/a") == 1


def test_tries_are_finite_and_rests_grow(web: Web, fetch: Fetch, rests: Rests) -> None:
    failure = failure_of(fetch, web.put("/a", BODY, always=status(500)))

    assert failure.retryable
    assert "500" in failure.reason
    assert "tried 5 times" in failure.reason
    assert web.request_count("/a") == 5
    assert rests.taken_s == [1.0, 2.0, 4.0, 8.0]


def test_a_server_is_left_alone_as_long_as_it_asks_within_bounds(
    web: Web, fetch: Fetch, rests: Rests
) -> None:
    url = web.put(
        "/a", BODY, status(503, {"Retry-After": "7"}), status(429, {"Retry-After": "99999"}), status(503)
    )

    fetch(url)

    assert rests.taken_s == [7.0, 120.0, 4.0]


def test_a_body_always_shorter_than_promised_fails_after_its_tries(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", BODY, always=cut(0))

    failure = failure_of(fetch, url)

    assert failure.retryable
    assert "broke off" in failure.reason


def test_another_digest_is_fetched_anew_once_and_then_refused_with_both(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", b"!" + BODY[1:])
    digest = hashlib.sha256(b"!" + BODY[1:]).hexdigest()

    failure = failure_of(fetch, url, file_fields={"digest": SUM})

    assert not failure.retryable
    assert digest in failure.reason
    assert SUM.value in failure.reason
    assert web.ranges("/a") == [None, None]


def test_a_digest_that_is_right_the_second_time_is_right(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", BODY, headed({}, b"!" + BODY[1:]))

    assert fetch(url, file_fields={"digest": SUM}) == BODY


def test_a_resumed_file_of_another_digest_is_fetched_whole(web: Web, fetch: Fetch) -> None:
    # The tag stayed, the bytes did not.
    failed_children = headed({"Content-Range": "bytes 3000-10239/10240", "ETag": '"/a"'}, b"?" * 7240, 206)
    url = web.put("/a", BODY, cut(3000), failed_children)

    assert fetch(url, file_fields={"digest": SUM}) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-", None]


@pytest.mark.parametrize("size_bytes", [10239, 10241])
def test_another_size_is_refused_before_the_body_is_read(web: Web, fetch: Fetch, size_bytes: int) -> None:
    url = web.put("/a", BODY, always=stuck(0))

    failure = failure_of(fetch, url, file_fields={"size_bytes": size_bytes})

    assert not failure.retryable
    assert "10,240 bytes" in failure.reason
    assert f"{size_bytes:,} bytes" in failure.reason
    assert web.request_count("/a") == 2


def test_a_body_shorter_than_given_without_a_promise_is_refused(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", always=raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"))

    failure = failure_of(fetch, url, file_fields={"size_bytes": 9})

    assert "its size is 5 bytes, and the given one is 9 bytes" in failure.reason


def test_an_endless_body_ends_at_the_size_given(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", always=endless)

    failure = failure_of(fetch, url, file_fields={"size_bytes": 100_000})

    assert not failure.retryable
    assert "100,000 bytes" in failure.reason


def test_an_endless_body_ends_at_the_size_allowed(web: Web, fetch: Fetch, folder: Path) -> None:
    url = web.put("/a", always=endless)

    failure = failure_of(fetch, url, largest_bytes=1_000_000)

    assert "1,000,000 bytes that are allowed" in failure.reason
    assert web.request_count("/a") == 1
    assert not (folder / "a").exists()


def test_a_body_announced_too_large_is_not_begun(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", BODY, always=stuck(0))

    assert "larger than" in failure_of(fetch, url, largest_bytes=10_000).reason


def test_a_coded_body_is_not_taken_for_the_file(web: Web, fetch: Fetch) -> None:
    coded = headed({"Content-Encoding": "gzip"}, gzip.compress(BODY))

    failure = failure_of(fetch, web.put("/a", BODY, always=coded))

    assert not failure.retryable
    assert "'gzip'" in failure.reason
    assert web.log[0].headers["accept-encoding"] == "identity"


def test_a_server_that_falls_silent_is_left_and_asked_for_the_rest(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", BODY, stuck(3000))

    failure = failure_of(fetch, url, read_s=0.1)

    assert (failure.host, failure.tried) == (web.host, 1)
    assert fetch(url, read_s=0.5) == BODY
    assert web.ranges("/a") == [None, "bytes=3000-"]


def silent(x: Exchange) -> None:
    x.web.closing.wait()
    x.close()


def test_a_server_that_never_answers_is_not_waited_for(web: Web, fetch: Fetch, rests: Rests) -> None:
    reached = threading.Event()

    def reached_and_silent(x: Exchange) -> None:
        reached.set()
        silent(x)

    failure = failure_of(fetch, web.put("/a", BODY, always=reached_and_silent), read_s=0.02)

    assert reached.wait(20), "a busy server may read the question when nobody waits for its answer any more"
    assert failure.retryable
    assert "silent" in failure.reason
    assert (failure.host, failure.tried, web.request_count("/a"), rests.taken_s) == (web.host, 1, 1, [])


def test_who_answers_is_told_whatever_is_said(web: Web, rules: Rules, folder: Path) -> None:
    heard: list[str] = []

    def answering_hosts(behaviour: Behaviour) -> set[str]:
        heard.clear()
        with contextlib.suppress(FetchFailed):
            one = RemoteFile(url=web.put("/a", BODY, always=behaviour), name="a")
            fetch_all([one], folder, replace(rules, read_s=0.1), tries=1, answered=heard.append)
        return set(heard)

    for behaviour in (status(404), status(503), cut(100), raw(b"no HTTP"), redirect("/gone"), Exchange.well):
        assert answering_hosts(behaviour) == {web.host}
    (folder / "a").unlink()
    assert answering_hosts(silent) == answering_hosts(stuck(3000)) == set()


def test_of_hosts_that_a_redirect_leads_to_it_is_told_which_is_silent(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", always=redirect("http://127.0.0.1:1/b"))
    hosts = frozenset({"127.0.0.1"})

    assert failure_of(fetch, url, hosts=hosts).host == "127.0.0.1:1"


def test_hosts_that_are_avoided_are_not_asked(web: Web, fetch: Fetch) -> None:
    with Web() as other:
        url = web.put("/a", always=redirect(other.put("/b", BODY)))
        hosts = frozenset({"127.0.0.1"})

        failure = failure_of(fetch, url, hosts=hosts, skipped_hosts=frozenset({other.host}))

    assert (failure.host, failure.tried, other.log) == (other.host, 0, [])


def test_earlier_tries_count(web: Web, fetch: Fetch) -> None:
    failure = failure_of(fetch, web.put("/a", BODY, always=status(500)), file_fields={"tried": 3})

    assert (failure.tried, web.request_count("/a")) == (5, 2)


def test_a_server_that_drips_is_left(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", BODY, dripping(0.05))

    assert fetch(url, floor_bytes_s=150, floor_window_s=0.5) == BODY
    assert web.request_count("/a") == 2


def test_a_head_that_drips_is_left_too(web: Web, fetch: Fetch) -> None:
    def drip(x: Exchange) -> None:
        x.raw(b"HTTP/1.1 200 OK\r\nX: ")
        while not x.web.closing.wait(0.01):
            x.raw(b"x")

    failure = failure_of(fetch, web.put("/a", always=drip), floor_bytes_s=10_000, floor_window_s=0.05)

    assert "bytes a second" in failure.reason
    assert web.request_count("/a") == 5


def test_interim_answers_without_end_are_ended(web: Web, fetch: Fetch) -> None:
    failure = failure_of(fetch, web.put("/a", always=interim))

    assert "no end of headers" in failure.reason


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"\0\0\0\0",
        b"SSH-2.0-OpenSSH_9.2p1\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\nContent-Encoding: gzip\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_http_fails_after_its_tries(web: Web, fetch: Fetch, response: bytes) -> None:
    failure = failure_of(fetch, web.put("/a", always=raw(response)))

    assert failure.retryable
    assert web.request_count("/a") == 5


@pytest.mark.parametrize("lengths", [b"Content-Length: 5, 5", b"Content-Length: 5\r\nContent-Length: 5"])
def test_a_length_that_is_repeated_ends_the_body_of_a_connection_that_stays_open(
    web: Web, fetch: Fetch, lengths: bytes
) -> None:
    def stay(x: Exchange) -> None:
        x.raw(b"HTTP/1.1 200 OK\r\n" + lengths + b"\r\n\r\nhello")
        x.web.closing.wait()

    assert fetch(web.put("/a", always=stay)) == b"hello"
    assert web.request_count("/a") == 1


def test_trailers_without_end_are_ended(web: Web, fetch: Fetch) -> None:
    def trail(x: Exchange) -> None:
        x.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n")
        while not x.web.closing.is_set():
            x.raw(b"X: y\r\n" * 1000)

    failure = failure_of(fetch, web.put("/a", always=trail))

    assert "no end of headers" in failure.reason


def test_a_body_in_chunks_of_one_byte_is_read_whole(web: Web, fetch: Fetch) -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY * 10)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert fetch(web.put("/a", always=raw(head + chunks + b"0\r\n\r\n"))) == BODY * 10


def test_an_interim_answer_is_skipped(web: Web, fetch: Fetch) -> None:
    def hint(x: Exchange) -> None:
        x.raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n")
        x.well()

    assert fetch(web.put("/a", BODY, hint)) == BODY


def test_what_follows_an_answer_is_not_taken_for_the_next(web: Web, fetch: Fetch) -> None:
    web.put("/b", BODY)
    more = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
    redirect = b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"

    assert fetch(web.put("/a", always=raw(redirect + more))) == BODY


def test_an_idle_connection_that_the_server_closes_is_replaced_at_once(
    web: Web, fetch: Fetch, rests: Rests
) -> None:
    web.put("/b", BODY, Exchange.reset)
    url = web.put("/a", b"", redirect("/b"))

    assert fetch(url) == BODY
    assert [request.path for request in web.log] == ["/a", "/b", "/b"]
    assert web.connections == 2
    assert rests.taken_s == []


def test_a_request_is_sent_again_only_once(web: Web, fetch: Fetch, rests: Rests) -> None:
    web.put("/b", BODY, Exchange.reset, Exchange.reset)
    url = web.put("/a", always=redirect("/b"))

    assert fetch(url) == BODY
    assert [request.path for request in web.log] == ["/a", "/b", "/b", "/a", "/b"]
    assert rests.taken_s == [1.0]


@pytest.mark.parametrize("begun", [b"HTTP/1.1 20", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
def test_an_answer_that_broke_off_is_a_try_on_an_idle_connection_too(
    web: Web, fetch: Fetch, rests: Rests, begun: bytes
) -> None:
    web.put("/b", BODY, raw(begun))
    url = web.put("/a", always=redirect("/b"))

    assert fetch(url) == BODY
    assert [request.path for request in web.log] == ["/a", "/b", "/a", "/b"]
    assert rests.taken_s == [1.0]


def test_a_new_connection_that_the_server_closes_is_a_try(web: Web, fetch: Fetch, rests: Rests) -> None:
    assert fetch(web.put("/a", BODY, Exchange.reset)) == BODY
    assert rests.taken_s == [1.0]


def test_nobody_listening_is_told(web: Web, fetch: Fetch) -> None:
    failure = failure_of(fetch, "http://127.0.0.1:1/a", hosts=frozenset({"127.0.0.1"}))

    assert failure.retryable
    assert failure.host == "127.0.0.1:1"
    assert "no connection" in failure.reason


def test_redirects_are_followed_relative_ones_too(web: Web, fetch: Fetch) -> None:
    web.put("/b/c", BODY, redirect("../d", 307))
    web.put("/d", BODY)
    url = web.put("/a", b"", redirect("/b/c#top", 301))

    assert fetch(url) == BODY


def test_redirects_end(web: Web, fetch: Fetch) -> None:
    url = web.put("/a", always=redirect("/a?again"))
    web.put("/a?again", always=redirect("/a"))

    failure = failure_of(fetch, url, redirects=3)

    assert not failure.retryable
    assert "more than 3 times" in failure.reason
    assert len(web.log) == 4


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        (
            "/gone?sig=c0ffee",
            "it is redirected to {}/gone?…: the server answers 404; make the file available there",
        ),
        ("/b", "it is redirected to {}/b: its size is 3 bytes"),
        ("http://10.0.0.1/c", "it is redirected to http://10.0.0.1/c: 10.0.0.1 "),
    ],
)
def test_what_fails_after_a_redirect_is_told_with_the_place_it_leads_to(
    web: Web, fetch: Fetch, to: str, reason: str
) -> None:
    web.put("/b", b"abc")
    url = web.put("/a", always=redirect(to))

    failure = failure_of(fetch, url, file_fields={"size_bytes": 1})

    assert failure.reason.startswith(reason.format(web.url("").rstrip("/")))


def test_a_redirect_to_nowhere_is_told(web: Web, fetch: Fetch) -> None:
    assert "without a target" in failure_of(fetch, web.put("/a", always=status(302))).reason


def test_neither_query_nor_its_secrets_are_in_a_failure(web: Web, fetch: Fetch) -> None:
    url = web.put("/a?sig=c0ffee", always=redirect("/b?sig=c0ffee"))
    web.put("/b?sig=c0ffee", always=redirect("/a?sig=c0ffee"))

    failure = failure_of(fetch, url)

    assert "c0ffee" not in str(failure) + repr(failure) + repr(RemoteFile(url=url, name="a"))
    assert failure.url == web.url("/a?…")
