"""A URL in a manifest names one thing over http, https or file, and carries no secret into a message."""

from pathlib import Path

import pytest

from apps.ingest.manifests.texts import checkm, put
from spinney.apps.ingest.manifests import ManifestRefused, read


def url_of(folder: Path, url: str) -> str:
    (row,) = read(put(folder, checkm(f"{url} | | | | | name")))
    return row.url


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a",
        "HTTP://EXAMPLE.org:8080/a%20b?x=1&y=2",
        "http://[::1]:80/a",
        "http://b\u00fccher.example/\u00e9",
        "https://example.org",
        "https://example.org/a?who=a@b",
        "file:///scans/p.tif",
        "file://localhost/scans/p.tif",
    ],
)
def test_what_is_admitted_is_kept_as_it_was_given(tmp_path: Path, url: str) -> None:
    assert url_of(tmp_path, url) == url


@pytest.mark.parametrize(
    "url",
    [
        "p.tif",
        "/etc/passwd",
        "//example.org/a",
        "ftp://example.org/a",
        "s3://bucket/a",
        "gopher://example.org/a",
        "javascript:alert(1)",
        "data:text/plain,x",
        "http:///a",
        "http:a",
        "http://:80/a",
        "http://example.org:99999/a",
        "http://example.org:0/a",
        "http://example.org:port/a",
        "http://[::1/a",
        "http://[x]/a",
        "http://\u2100.example/a",
        "https://example.org/a b",
        "https://example.org/a\tb",
        "https://example.org/a\u00a0b",
        "https://example.org\\@other.example/a",
        "https://example.org/a\x7f",
        "https://example.org/a\u2028b",
        "https://example.org/p#1.tif",
        "https://example.org/p#",
        "file://other.example/scans/p.tif",
        "file:scans/p.tif",
        "file:///scans/p?.tif",
        "https://example.org/" + "x" * 8192,
    ],
)
def test_what_is_no_such_url_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ManifestRefused, match=r"URL|no file on this machine") as refused:
        url_of(tmp_path, url)

    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    "url",
    [
        "https://user:s3cret@example.org/a",
        "https://s3cret@example.org/a",
        "https://:s3cret@example.org/a",
        "https://user:s3cret@/a",
        "https://user:s3%63ret/s3cret@example.org:port/a",
        "https://user:s3cret?s3cret@example.org/a",
        "ftp://example.org/a?token=s3cret",
        "ftp://example.org/a?to=a@b&token=s3cret",
        "https://example.org/a b?token=s3cret",
        "https://example.org/a#token=s3cret",
        "https://example.org/?token=s3cret",
        "s3cret@example.org",
    ],
)
def test_a_secret_in_a_url_is_in_no_message(tmp_path: Path, url: str) -> None:
    with pytest.raises(ManifestRefused) as refused:
        list(read(put(tmp_path, checkm(url))))

    assert "s3cret" not in str(refused.value)
    assert "s3cret" not in repr(refused.value)
