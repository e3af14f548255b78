"""Which URLs may be asked, what is shown of them, which servers they name."""

from pathlib import Path

import pytest

from spinney.apps.ingest.fetch import hosts_of, urls
from spinney.files.paths import NotAdmitted


def test_servers_are_named_once_with_a_port_that_is_not_the_usual_one() -> None:
    named = hosts_of(
        [
            "http://B.example.org/1",
            "https://b.example.org:443/2",
            "http://a.example.org:8080/x",
            "file:///scans/1.tif",
            "http://[::1]:8080/",
            "http://bücher.example/",
        ]
    )

    assert named == ["[::1]:8080", "a.example.org:8080", "b.example.org", "xn--bcher-kva.example"]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://example.org/a", "only http, https and file"),
        ("gopher://example.org/", "only http, https and file"),
        ("javascript:alert(1)", "only http, https and file"),
        ("/etc/passwd", "only http, https and file"),
        ("", "only http, https and file"),
        ("http:///nowhere", "names no host"),
        ("http://example.org:99999999/", "port"),
        ("http://example.org:0/", "port"),
        ("http://example.org:-1/", "port"),
        ("http://example.org/a\nHost: b", "not a URL"),
        ("http://[::1", "not a URL"),
        ("http://" + "a" * 300 + ".example/é\udcff", "not a URL"),
        ("http://example.org/" + "a" * 9000, "longer than"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(url: str, says: str) -> None:
    with pytest.raises(NotAdmitted, match=says):
        urls.admitted(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@example.org/",
        "http://secret@example.org/",
        "http://:secret@example.org",
        "https://me:secret@[::1]/",
        "ftp://me:secret@example.org/",
        "http://me:secret@[::1/",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(NotAdmitted) as refusal:
        urls.admitted(url)

    assert "secret" not in str(refusal.value)
    assert "secret" not in urls.shown_text(url)


def test_a_query_is_not_shown_since_it_may_be_a_signature() -> None:
    url = "https://s3.example.org/a%20b?X-Amz-Signature=c0ffee#top"

    assert urls.shown_text(url) == "https://s3.example.org/a%20b?…"


def test_a_file_url_is_a_path_below_a_root() -> None:
    roots = (Path("/scans"), Path("/other/scans"))

    assert urls.beneath(urls.admitted("file:///scans/a%20b/1.tif"), roots) == (Path("/scans"), "a b/1.tif")
    assert urls.beneath(urls.admitted("file://localhost/other/scans/x"), roots) == (roots[1], "x")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "file:///scans",
        "file:///scans/",
        "file:///scansother/1",
        "file:///scans/../etc/passwd",
        "file:///scans/%2e%2e/etc/passwd",
        "file:///scans/..%2fetc/passwd",
        "file:////scans/1",
        "file:///scans//1",
        "file:///scans/a%00b",
        "file:///scans/caf%e9",
        "file://elsewhere/scans/1",
        "file:///scans/1?x",
        "file:///scans/1#x",
        "file:scans/1",
    ],
)
def test_a_file_url_leads_nowhere_else(url: str) -> None:
    with pytest.raises(NotAdmitted):
        urls.beneath(urls.admitted(url), (Path("/scans"),))


def test_without_roots_no_file_url_is_admitted() -> None:
    with pytest.raises(NotAdmitted, match="no folder"):
        urls.beneath(urls.admitted("file:///scans/1"), ())
