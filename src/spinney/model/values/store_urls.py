"""URLs of stores: ``sqlite:///file``, or ``postgresql://user:password@host:port/database?schema=name``.

A password may hold characters that its author has not escaped, so that the URL ends or is divided at the wrong
place. Such a URL is refused by ``require_escaped`` before anything connects, and ``without_password`` shows nothing
of what may belong to the password.
"""

import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from spinney.model.errors import UsageError

DEFAULT_SCHEMA = "spinney"
"""The schema of a store on PostgreSQL whose URL names none."""
_QUERY = re.compile(r"\?(?=\w+=)")
"""Where the query of a URL begins; another ``?`` is one of a password."""
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_HOST_AND_PORT = re.compile(r"^(.*?)(?::(\d*))?$")
_NO_PORT = re.compile(r"[^@/\[]*:\d*[^\d,/@][^@]*$")
"""The front of a URL without an ``@``, in which no port follows the colon: it has the beginning of a password."""
_UNESCAPED = re.compile(
    r"://([^/?#]*@[^/?#]*@|[^?]*[/#][^?]*@|[^?]*\?[^=]*@|[^?]*#|[^@/?#\[]*:\d*[^\d,@/?#][^@/?#]*\?.*@)"
    r"|%(?![0-9A-Fa-f]{2})",
    re.DOTALL,
)
"""A URL whose password holds what ends or splits that part of a URL: a second ``@``, one behind the host, a ``#`` or a
``%`` that begins no code. Its parts, and messages of the driver, would show the password. The values of the query may
hold an ``@``."""


def is_postgres(store: str) -> bool:
    """Return whether the URL is that of a store on PostgreSQL."""
    return store.startswith(("postgresql://", "postgres://"))


def database_file(store: str) -> Path | None:
    """Return the file of a store that is one file (``sqlite:///file``); None for other stores.

    Everything after ``sqlite:///`` is the path: the URL has no query, so ``?`` and ``#`` are ordinary characters of a
    file's name. Raises UsageError for a database in memory, which no other process can open."""
    scheme, _, path = store.partition(":///")
    if scheme != "sqlite" or not path:
        return None
    if path == ":memory:":
        raise UsageError(
            "a store must be a file that all its nodes can open; write it as sqlite:///spinney.db"
        )
    return Path(path)


def store_location(store: str) -> tuple[str, ...]:
    """Return what is the same in all URLs of one store: the path of its file, links resolved, or host, port, database
    and schema on PostgreSQL, whoever connects. Hosts are compared by name: one that has two is taken for two."""
    file = database_file(store)
    if file is not None:
        return (os.path.realpath(file),)
    parts = urlsplit(store)
    query = dict(parse_qsl(parts.query))
    host, port = _HOST_AND_PORT.findall(parts.netloc.rpartition("@")[2].lower())[0]
    return (
        query.get("host", host or "localhost"),
        query.get("port", port or "5432"),
        query.get("dbname", parts.path.strip("/")),
        query.get("schema", DEFAULT_SCHEMA),
    )


def is_schema(name: str) -> bool:
    """Return whether a schema of a PostgreSQL database may have this name, which needs no quotes."""
    return _SCHEMA.fullmatch(name) is not None and not name.startswith("pg_")


def require_escaped(url: str) -> None:
    """Raise UsageError for the URL of a PostgreSQL database that has a character which is not escaped. The message does
    not quote the URL, because the character may be one of the password."""
    if _UNESCAPED.search(url):
        raise UsageError(
            "the URL of the PostgreSQL database has a character that is not escaped; write # / ? @ % of the password "
            "as %23 %2F %3F %40 %25"
        )


def without_password(url: str) -> str:
    """Return a URL as it may be shown and logged. All up to the last ``@`` in front of the query counts as name and
    password, because a password may hold characters that its author has not escaped."""
    scheme, slashes, rest = url.partition("://")
    if scheme == "sqlite" or not slashes:
        return url  # the rest is the path of a file
    place, query = [*_QUERY.split(rest, maxsplit=1), ""][:2]
    if _NO_PORT.match(place):  # what looks like a query is a part of the password
        last = rest.rfind("@") + 1
        place, _, query = rest[last:].partition("?")
        place = rest[:last] + place
    credentials, at, place = place.rpartition("@")
    shown = urlencode(
        [(n, v) for n, v in parse_qsl(query, keep_blank_values=True) if not n.endswith("password")]
    )
    return f"{scheme}://{credentials.partition(':')[0]}{at}{place}" + (f"?{shown}" if shown else "")
