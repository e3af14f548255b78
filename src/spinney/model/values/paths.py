"""Where things lie: pure rules about paths, one for everybody who asks."""

import os
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from spinney.model.errors import UsageError

HOME_MARK = ".spinney-home"
"""The file in a folder root that tells it from the others of a store whose folders are local."""


def job_folder(job_id: int) -> str:
    """The folder of a job, relative to the folder root: ``00/00/12/000000001270`` for job 1270.

    A directory of the last level holds at most a hundred jobs, one above it a hundred of those, so
    that ten million jobs never share one.
    """
    return f"{job_id // 10**6:02d}/{job_id // 10**4 % 100:02d}/{job_id // 100 % 100:02d}/{job_id:012d}"


def database_file(store: str) -> Path | None:
    """The file of a store that is one file (``sqlite:///file``); None for other stores.

    All behind ``sqlite:///`` is the path: a URL of a store has no query, so ``?`` and ``#`` are letters
    of a file's name like others. Raises UsageError for a database in memory, which nobody else sees.
    """
    scheme, _, path = store.partition(":///")
    if scheme != "sqlite" or not path:
        return None
    if path == ":memory:":
        raise UsageError(
            "a store must be a file that all its nodes can open; write it as sqlite:///spinney.db"
        )
    return Path(path)


def beside(file: Path, suffix: str) -> Path:
    """What belongs to a store's file and lies beside it, absolute: where a link to the file leads. So it is one for
    all who open the file, by whichever name, as SQLite has it with its own. The file need not be there yet.
    """
    return Path(os.path.realpath(file) + suffix)


def run_dir(store: str) -> Path | None:
    """The run-time directory that goes with a store: locks, pages and sockets of this host's nodes.

    Beside the database file, so that everybody who opens the file finds it. For a store on a server, in the
    directory for such things (XDG_RUNTIME_DIR, else /tmp), by the store's URL: a process that writes the URL
    otherwise wake-ups nobody, and what it submits is found by polling. None for other stores.
    """
    file = database_file(store)
    if file is not None:
        return beside(file, ".run")
    if not is_postgres(store):
        return None
    name = f"spinney-{os.geteuid()}-{sha256(without_password(store).encode()).hexdigest()[:16]}"
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp", name)  # noqa: S108 - made 0700, and its owner is checked


def is_postgres(store: str) -> bool:
    """Whether the URL is that of a store on PostgreSQL."""
    return store.startswith(("postgresql://", "postgres://"))


def without_password(url: str) -> str:
    """A URL as it may be shown and logged."""
    if url.startswith("sqlite:"):
        return url  # all of it is the path of a file
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = urlencode([(n, v) for n, v in parse_qsl(parts.query, keep_blank_values=True) if n != "password"])
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=query))
