"""The rules for URLs, and the form in which they are shown.

URLs are written by depositors and by servers that redirect. They are parsed once, by the library that also
sends them, so that a check and a request cannot disagree about the host. Which addresses may be reached is
checked when a connection is made (``connections``). Nothing that is shown or logged contains a query or
userinfo.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from spinney.files import paths
from spinney.files.paths import NotAdmitted
from spinney.safe_http import bracketed

if TYPE_CHECKING:
    import httpx

LENGTH_MAX = 8000
"""RFC 9110 section 4.1 asks for 8,000 octets at least; longer URLs are refused."""

PORTS = {"http": 80, "https": 443}


@lru_cache(
    maxsize=1024
)  # each is parsed several times, which takes a tenth of the time of fetching a small file
def admitted(url: str) -> "httpx.URL":
    """Return the parsed URL if it is valid; otherwise raise NotAdmitted.

    Userinfo is refused, so that no credentials get into a manifest, a log or a report.
    """
    import httpx  # slow to load, and needed only for URLs

    if len(url) > LENGTH_MAX:
        raise NotAdmitted(f"the URL '{_cut(url)}' is longer than {LENGTH_MAX} characters; give a shorter one")
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise NotAdmitted(f"'{_cut(url)}' is not a URL; correct it") from None
    if parsed.scheme not in ("http", "https", "file"):
        raise NotAdmitted(
            f"'{_cut(url)}' begins with '{paths.shown(parsed.scheme[:20])}:'; "
            f"only http, https and file can be fetched"
        )
    if b"@" in parsed.netloc or parsed.userinfo:
        raise NotAdmitted(
            f"the URL of {paths.shown(parsed.host)} contains a user name or password; leave them out and make "
            f"the file readable without them, or by a signed URL"
        )
    if parsed.scheme != "file" and not parsed.host:
        raise NotAdmitted(f"'{_cut(url)}' names no host; give the complete URL")
    if parsed.port is not None and not 0 < parsed.port < 1 << 16:
        raise NotAdmitted(f"'{_cut(url)}' names an impossible port; correct the URL")
    return parsed


def joined(url: "httpx.URL", location: str) -> "httpx.URL":
    """Return the URL that a redirect leads to; ``location`` may be relative (RFC 9110 section 10.2.2). Raises
    NotAdmitted."""
    import httpx

    try:
        target = str(url.join(location))
    except (httpx.InvalidURL, ValueError):
        raise NotAdmitted("that is not a URL; ask its operators") from None
    return admitted(target)


def shown(url: "httpx.URL") -> str:
    """Return the URL for logs and people: no userinfo, no fragment, and no query, which may be a signature."""
    if url.scheme == "file":
        return paths.shown(f"file://{url.path}")
    query = "?…" if url.query else ""
    return paths.shown(
        f"{url.scheme}://{host_name(url)}{url.raw_path.partition(b'?')[0].decode('ascii')}{query}"
    )


def shown_text(url: str) -> str:
    """Return text that may be no URL at all in the form for logs and people."""
    try:
        return shown(admitted(url))
    except NotAdmitted:
        return _cut(url)


def hosts_of(urls: Iterable[str]) -> list[str]:
    """Return the servers of the URLs: sorted ``host``, or ``host:port`` where the port is not the usual one.

    ``file:`` has none. The targets of redirects are not known before. Raises NotAdmitted for an invalid URL.
    """
    return sorted({host_name(parsed) for parsed in map(admitted, urls) if parsed.scheme != "file"})


def host_name(url: "httpx.URL") -> str:
    """Return ``host`` or ``host:port`` as in a URL, in ASCII and lower case."""
    host = bracketed(url.raw_host.decode("ascii").lower())
    return host if url.port is None else f"{host}:{url.port}"


def beneath(url: "httpx.URL", roots: Sequence[Path]) -> tuple[Path, str]:
    """Return the root that a ``file:`` URL is below, and its path from there. Raises NotAdmitted.

    Only names are checked here; links are refused when the file is opened.
    """
    if url.host not in ("", "localhost") or url.query or url.fragment:
        raise NotAdmitted(
            f"'{_cut(str(url))}' has a host, query or fragment; write file:/// and the path, "
            f"with '?' as %3F and '#' as %23"
        )
    try:
        path = unquote_to_bytes(url.raw_path).decode()
    except UnicodeDecodeError:
        raise NotAdmitted(f"the path of '{_cut(str(url))}' is not UTF-8; rename the file") from None
    if not path.startswith("/"):
        raise NotAdmitted(f"'{_cut(str(url))}' is no absolute path; write file:/// and the whole path")
    inside = paths.relative(path.removeprefix("/"))
    for root in roots:
        above = f"{str(root).strip('/')}/".removeprefix("/")
        if root.is_absolute() and inside.startswith(above):
            return root, inside.removeprefix(above)
    raise NotAdmitted(
        f"'{paths.shown(path)}' lies below no folder that is allowed for file: URLs; "
        f"move it there, or have the folder added to file_roots in the settings"
    )


def _cut(url: str) -> str:
    # An invalid URL may still contain a password: nothing before an '@' or after a '?' is shown.
    plain = url.rpartition("@")[2].partition("?")[0]
    return paths.shown(plain[:140] + ("…" if len(plain) > 140 else ""))
