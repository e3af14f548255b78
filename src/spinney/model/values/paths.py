"""The paths of job folders, store files and run-time directories, as pure functions."""

import os
import re
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from spinney.model.errors import UsageError

HOME_MARK = ".spinney-home"
"""The file in a folder root that identifies it, in a store whose folders are local."""
ROOT_TOKEN = ".spinney-token"  # noqa: S105 - the name of a file
"""The file in a folder root that marks it as the store's."""


_SOCKET_NAME_CHARS = 50
_QUERY = re.compile(r"\?(?=\w+=)")
"""Where the query of a URL begins; another ``?`` is one of a password."""
_HOST_AND_PORT = re.compile(r"^(.*?)(?::(\d*))?$")
_NO_PORT = re.compile(r"[^@/\[]*:\d*[^\d,/@][^@]*$")
"""The front of a URL without an ``@``, in which no port follows the colon: it has the beginning of a password."""
DEFAULT_SCHEMA = "spinney"
"""The schema of a store on PostgreSQL whose URL names none."""


def job_folder(job_id: int) -> str:
    """Return the folder of a job, relative to the folder root: ``00/00/12/000000001270`` for job 1270.

    A directory of the last level holds at most a hundred jobs, one above it a hundred of those, so
    that ten million jobs never share one.
    """
    return f"{job_id // 10**6:02d}/{job_id // 10**4 % 100:02d}/{job_id // 100 % 100:02d}/{job_id:012d}"


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


def beside(file: Path, suffix: str) -> Path:
    """Return the absolute path of a file beside a store's file. Links are resolved, so that it is the same for all that
    open the store, by whichever name, as for SQLite's own files. The store's file need not exist yet."""
    return Path(os.path.realpath(file) + suffix)


def run_dir(store: str) -> Path | None:
    """Return the run-time directory of a store: locks, shared pages and sockets of this host's nodes.

    It is beside the database file, so that every process that opens the file finds it. For a store on a server, it is
    in XDG_RUNTIME_DIR (else /tmp), named by the store's URL: a process that writes the URL in another way wakes no
    nodes, and its jobs are found by polling. None for other stores."""
    file = database_file(store)
    if file is not None:
        return beside(file, ".run")
    if not is_postgres(store):
        return None
    name = f"spinney-{os.geteuid()}-{sha256(without_password(store).encode()).hexdigest()[:16]}"
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp", name)  # noqa: S108 - made 0700, and its owner is checked


def socket_name(node: str, pid: int) -> str:
    """Return the name of a node's socket in the run-time directory. Of a long name it has the beginning: the process id
    tells nodes apart, and the address of a socket is limited."""
    return f"wakeup-{node[:_SOCKET_NAME_CHARS]}.{pid}.sock"


def is_postgres(store: str) -> bool:
    """Return whether the URL is that of a store on PostgreSQL."""
    return store.startswith(("postgresql://", "postgres://"))


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
