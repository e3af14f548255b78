"""Sizes by HEAD: what is told, what is not, what is wrong."""

import threading
from pathlib import Path

import pytest

from apps.ingest.web import Exchange, Repeated, Web, headed, raw, redirect, status
from spinney.apps.ingest.fetch import (
    Estimate,
    FetchFailed,
    RemoteFile,
    Rules,
    Stopped,
    estimate,
    fetch_all,
)


def test_each_url_is_asked_for_its_size_in_order(web: Web, rules: Rules) -> None:
    urls = [web.put(f"/{n}", b"x" * n) for n in range(40)]

    estimates = estimate(urls, rules)

    assert estimates == [Estimate(url=url, size_bytes=n) for n, url in enumerate(urls)]
    assert {a.method for a in web.log} == {"HEAD"}


@pytest.mark.parametrize(
    "behaviour",
    [
        status(405),
        status(501),
        raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        headed({"Content-Encoding": "gzip"}, b"1234"),
    ],
)
def test_a_server_that_does_not_tell_leaves_the_size_unknown(
    web: Web, rules: Rules, behaviour: object
) -> None:
    url = web.put("/a", always=behaviour)  # type: ignore[arg-type]

    [size] = estimate([url], rules)

    assert (size.size_bytes, size.problem) == (None, None)


def test_a_problem_is_told_and_stops_no_other(web: Web, rules: Rules, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"1234")
    urls = [
        web.url("/missing"),
        web.put("/broken", b"x", always=status(503)),
        web.put("/loop", b"x", always=redirect("/loop")),
        "http://127.0.0.1:1/",
        "http://me:secret@example.org/",
        (tmp_path / "gone").as_uri(),
        "file:///etc/passwd",
        web.put("/good", b"12"),
        (tmp_path / "here").as_uri(),
    ]

    estimates = estimate(urls, Rules(hosts=rules.hosts, file_roots=(tmp_path,)))

    assert [e.size_bytes for e in estimates] == [None] * 7 + [2, 4]
    problems = [e.problem or "" for e in estimates]
    for problem, says in zip(
        problems,
        [
            "404",
            "503",
            "redirected more",
            "public Internet",
            "password",
            "not there",
            "below no folder",
            "",
            "",
        ],
        strict=True,
    ):
        assert says in problem
    assert "secret" not in "".join(problems)
    assert problems[0].startswith(f"{web.url('/missing')}: ")


def test_a_connection_that_breaks_is_tried_once_more(web: Web, rules: Rules) -> None:
    url = web.put("/a", b"1234", raw(b""))

    assert estimate([url], rules) == [Estimate(url=url, size_bytes=4)]
    assert web.request_count("/a", "HEAD") == 2


def test_a_silent_server_ends_it_and_one_that_is_not_to_be_asked_leaves_sizes_unknown(web: Web) -> None:
    rules = Rules(hosts=frozenset({"127.0.0.1"}))
    urls = [web.put("/a", b"1234"), "http://127.0.0.1:1/b"]

    with pytest.raises(FetchFailed) as failure:
        estimate(urls, rules)
    assert failure.value.host == "127.0.0.1:1"

    [here, there] = estimate(urls, rules, skipped_hosts=frozenset({"127.0.0.1:1"}))
    assert (here.size_bytes, there.size_bytes) == (4, None)
    assert there.problem == "http://127.0.0.1:1/b: 127.0.0.1:1 does not answer; try again later"


def test_many_are_asked_at_once(web: Web, rules: Rules) -> None:
    # Each waits until all four are there: asked one after the other, none would be answered.
    everybody = threading.Barrier(4)

    def together(x: Exchange) -> None:
        everybody.wait(timeout=30)
        x.well()

    urls = [web.put(f"/{n}", b"x", together) for n in range(4)]

    assert [e.size_bytes for e in estimate(urls, rules, at_once=4)] == [1] * 4


def test_it_can_be_called_off(web: Web, rules: Rules) -> None:
    url = web.put("/a", Repeated(10), always=lambda x: x.web.closing.wait() and None)

    with pytest.raises(Stopped):
        estimate([url], rules, stopped=lambda: web.request_count("/a", "HEAD") > 0)


def test_one_connection_serves_many_questions(web: Web, rules: Rules, folder: Path) -> None:
    urls = [web.put(f"/{n}", b"x" * n) for n in range(5)]

    estimate(urls, rules, at_once=1)
    fetch_all([RemoteFile(url=url, name=str(n)) for n, url in enumerate(urls)], folder, rules, at_once=1)

    assert web.connections == 2


def test_nothing_to_ask() -> None:
    assert estimate([], Rules()) == []
