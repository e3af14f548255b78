"""The rules for the fields of a row, in both forms of manifests.

Each function takes the text of a field and returns its value, or raises NotAdmitted. Messages show neither
the query of a URL nor the part before its ``@``: both may be secrets.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes, urlsplit

from spinney.apps.ingest.manifests.model import About
from spinney.files import digests, paths
from spinney.files.digests import Digest
from spinney.files.paths import NotAdmitted

FieldText = str | None
"""The text of a field; None or empty: it was not given."""
URL_MAX = 8192
TEXT_MAX = 8192
"""The maximum characters of a URL, and of a creator, title, identifier or date."""
SIZE_MAX_BYTES = 2**63 - 1
_SHOWN_MAX = 140
"""How many characters of a field a message shows."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNFIT_IN_URL = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\\]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://")
_QUERY = re.compile(r"[?#]")
_SIZE = re.compile(r"[0-9]{1,19}")
_MIME_TYPE = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`~-]+/[A-Za-z0-9!#$%&'*+.^_`~-]+(\s*;.*)?")


def url(text: FieldText) -> str:
    """Return an http, https or file URL that may stand in a manifest, unchanged.

    Which hosts it may lead to is checked when it is fetched. Raises NotAdmitted, as all functions of this
    module do; no message shows a query or a password.
    """
    if not text:
        raise NotAdmitted("there is no URL; give the file's URL")
    if len(text) > URL_MAX:
        raise NotAdmitted(f"the URL '{_shown_url(text)}' is longer than {URL_MAX} characters; shorten it")
    if _UNFIT_IN_URL.search(text):
        raise NotAdmitted(
            f"the URL '{_shown_url(text)}' has a blank, a backslash or a control character in it; "
            f"percent-encode it (a blank is %20)"
        )
    try:
        parts = urlsplit(text)
        host, port, userinfo = parts.hostname, parts.port, "@" in parts.netloc
    except ValueError:
        raise NotAdmitted(f"'{_shown_url(text)}' is not a URL; correct it") from None
    if userinfo:
        raise NotAdmitted(
            f"the URL '{_shown_url(text)}' has a user name or password in it; take them out, for manifests are kept"
        )
    if parts.fragment or text.endswith("#"):
        raise NotAdmitted(f"the URL '{_shown_url(text)}' has a '#' in it; write it as %23")
    if parts.scheme == "file":
        if parts.netloc.lower() not in ("", "localhost") or not parts.path.startswith("/") or parts.query:
            raise NotAdmitted(
                f"'{_shown_url(text)}' is no file on this machine; write file:///the/whole/path, "
                f"a '?' in it as %3F"
            )
    elif parts.scheme not in ("http", "https") or not host or port == 0:
        raise NotAdmitted(
            f"'{_shown_url(text)}' is not a URL of http, https or file; write one of these in full"
        )
    return text


def name(text: str | None, of_url: str) -> str:
    """Return the path of a file within its object; None: by default the last part of its URL, decoded."""
    if text is not None:
        return paths.relative(text)
    try:
        last = unquote_to_bytes(urlsplit(of_url).path.rpartition("/")[2]).decode()
        return paths.component(last)
    except (UnicodeDecodeError, NotAdmitted):
        raise NotAdmitted(
            f"there is no file name, and the URL '{_shown_url(of_url)}' ends in none that may be used; give a name"
        ) from None


def digest(algorithm: FieldText, value: FieldText) -> Digest | None:
    """Return a digest, or None. Raises NotAdmitted unless both or neither are given."""
    if algorithm and value:
        return digests.digest(algorithm, value)
    if algorithm:
        raise NotAdmitted(
            f"there is a digest algorithm ('{shown(algorithm)}') and no value; give both or neither"
        )
    if value:
        raise NotAdmitted("there is a digest value and no algorithm; give both or neither")
    return None


def size(text: str) -> int | None:
    """Parse a number of bytes in decimal digits. None: the field is empty. Raises NotAdmitted."""
    if not text:
        return None
    if not _SIZE.fullmatch(text) or int(text) > SIZE_MAX_BYTES:
        raise NotAdmitted(f"the size '{shown(text)}' is no number of bytes; write digits only")
    return int(text)


def mime_type(text: FieldText) -> str | None:
    """Check a media type: type and subtype, and parameters after a semicolon (RFC 9110 section 8.3.1; no ``|``). None:
    the field is empty. Raises NotAdmitted."""
    if not text:
        return None
    if not _MIME_TYPE.fullmatch(text) or _CONTROL.search(text) or len(text) > TEXT_MAX:
        raise NotAdmitted(f"'{shown(text)}' is no media type; write one like image/tiff, or leave it empty")
    return text


def one_line(text: FieldText, field: str) -> str | None:
    """Check a text about an object, which is written into line-based metadata: no control characters. ``field``: its
    name in messages. None: the text is empty. Raises NotAdmitted."""
    if not text:
        return None
    if len(text) > TEXT_MAX:
        raise NotAdmitted(f"the {field} is longer than {TEXT_MAX} characters; shorten it")
    if _CONTROL.search(text):
        raise NotAdmitted(
            f"the {field} '{shown(text)}' has a line break or control character in it; take it out"
        )
    return text


def about(
    primary_id: FieldText, local_ids: Iterable[str], creator: FieldText, title: FieldText, date: FieldText
) -> About:
    """Return the description of an object from the fields of its row; empty ones were not given."""
    return About(
        primary_id=one_line(primary_id, "primary identifier"),
        local_ids=local_identifiers(local_ids),
        creator=one_line(creator, "creator"),
        title=one_line(title, "title"),
        date=one_line(date, "date"),
    )


def local_identifiers(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the local ids, each once and in their order, without those that are blank."""
    local_ids = (one_line(text.strip(" \t"), "local identifier") for text in texts)
    return tuple(dict.fromkeys(local_id for local_id in local_ids if local_id))


def shown(text: str) -> str:
    """Return the beginning of a depositor's text, made safe for a message."""
    return paths.shown(text[:_SHOWN_MAX])


def _shown_url(value: str) -> str:
    """Return a URL for a message: its beginning without the query, and only the scheme where it might contain
    a password."""
    if "@" in value:  # In an invalid URL any text around it may be a password.
        scheme = _SCHEME.match(value)
        return f"{scheme[0] if scheme else ''}…"
    return shown(_QUERY.split(value, 1)[0])
