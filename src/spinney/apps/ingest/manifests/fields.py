"""What the fields of a row may say, whatever form the manifest has.

Each function takes a field as it was given and returns it as it is used, or raises NotAdmitted.
Messages show neither the query of a URL nor what stands before its ``@``: both may be secrets.
"""

import re
from urllib.parse import unquote_to_bytes, urlsplit

from spinney.apps.ingest.files import digests, paths
from spinney.apps.ingest.files.digests import Digest
from spinney.apps.ingest.files.paths import NotAdmitted, shown

URL_MAX = 8192
TEXT_MAX = 8192
"""Characters of a URL; of a creator, title, identifier or date."""
SIZE_MAX_BYTES = 2**63 - 1
_SHOWN_MAX = 140

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNFIT_IN_URL = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\\]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://")
_QUERY = re.compile(r"[?#]")
_SIZE = re.compile(r"[0-9]{1,19}")
_MIME_TYPE = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`~-]+/[A-Za-z0-9!#$%&'*+.^_`~-]+(\s*;.*)?")


def url(given: str) -> str:
    """An http, https or file URL that names one thing. Where it may lead is for the fetching to judge."""
    if not given:
        raise NotAdmitted("there is no URL; say where the file is")
    if len(given) > URL_MAX:
        raise NotAdmitted(f"the URL '{_shown(given)}' is longer than {URL_MAX} characters; shorten it")
    if _UNFIT_IN_URL.search(given):
        raise NotAdmitted(
            f"the URL '{_shown(given)}' has a blank, a backslash or a control character in it; "
            f"percent-encode it (a blank is %20)"
        )
    try:
        parts = urlsplit(given)
        host, port, userinfo = parts.hostname, parts.port, "@" in parts.netloc
    except ValueError:
        raise NotAdmitted(f"'{_shown(given)}' is no URL; mend it") from None
    if userinfo:
        raise NotAdmitted(
            f"the URL '{_shown(given)}' has a user name or password in it; take them out, for manifests are kept"
        )
    if parts.fragment or given.endswith("#"):
        raise NotAdmitted(f"the URL '{_shown(given)}' has a '#' in it; write it as %23")
    if parts.scheme == "file":
        if parts.netloc.lower() not in ("", "localhost") or not parts.path.startswith("/") or parts.query:
            raise NotAdmitted(
                f"'{_shown(given)}' is no file on this machine; write file:///the/whole/path, "
                f"a '?' in it as %3F"
            )
    elif parts.scheme not in ("http", "https") or not host or port == 0:
        raise NotAdmitted(f"'{_shown(given)}' is no URL of http, https or file; write one of them in full")
    return given


def name(given: str | None, of_url: str) -> str:
    """The path of a file within its object; without one, the last part of its URL."""
    if given is not None:
        return paths.relative(given)
    try:
        last = unquote_to_bytes(urlsplit(of_url).path.rpartition("/")[2]).decode()
        return paths.component(last)
    except (UnicodeDecodeError, NotAdmitted):
        raise NotAdmitted(
            f"there is no file name, and the URL '{_shown(of_url)}' ends in none that may be used; give a name"
        ) from None


def digest(algorithm: str, value: str) -> Digest | None:
    """Both or neither."""
    if algorithm and value:
        return digests.digest(algorithm, value)
    if algorithm:
        raise NotAdmitted(
            f"there is a digest algorithm ('{shown(algorithm[:_SHOWN_MAX])}') and no value; give both or neither"
        )
    if value:
        raise NotAdmitted("there is a digest value and no algorithm; give both or neither")
    return None


def size(given: str) -> int | None:
    """A number of bytes in decimal digits."""
    if not given:
        return None
    if not _SIZE.fullmatch(given) or int(given) > SIZE_MAX_BYTES:
        raise NotAdmitted(f"the size '{shown(given[:_SHOWN_MAX])}' is no number of bytes; write digits only")
    return int(given)


def mime_type(given: str) -> str | None:
    """Type and subtype, parameters behind a semicolon (RFC 9110 section 8.3.1; without ``|``)."""
    if not given:
        return None
    if not _MIME_TYPE.fullmatch(given) or _CONTROL.search(given) or len(given) > TEXT_MAX:
        raise NotAdmitted(
            f"'{shown(given[:_SHOWN_MAX])}' is no media type; write one like image/tiff, or leave it empty"
        )
    return given


def one_line(given: str, what: str) -> str | None:
    """Text about an object, which will stand in line-based metadata: no control characters."""
    if not given:
        return None
    if len(given) > TEXT_MAX:
        raise NotAdmitted(f"the {what} is longer than {TEXT_MAX} characters; shorten it")
    if _CONTROL.search(given):
        raise NotAdmitted(
            f"the {what} '{shown(given[:_SHOWN_MAX])}' has a line break or control character in it; take it out"
        )
    return given


def _shown(given: str) -> str:
    if "@" in given:  # Whatever a broken URL means by it, what stands around it may be a password.
        scheme = _SCHEME.match(given)
        return f"{scheme[0] if scheme else ''}…"
    return shown(_QUERY.split(given, 1)[0][:_SHOWN_MAX])
