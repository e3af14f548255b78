"""The paths of job folders, of files beside a store and of run-time directories, as pure functions."""

import os
from hashlib import sha256
from pathlib import Path

from spinney.model.values.store_urls import database_file, is_postgres, without_password

OWN = ".spinney"
"""The directory in a job's folder where the engine keeps its own files: output and parameters, which need not be
durable."""
HOME_MARK = ".spinney-home"
"""The file in a folder root that identifies it, in a store whose folders are local."""
ROOT_TOKEN = ".spinney-token"  # noqa: S105 - the name of a file
"""The file in a folder root that marks it as the store's."""
_SOCKET_NAME_CHARS = 50


def job_folder(job_id: int) -> str:
    """Return the folder of a job, relative to the folder root: ``00/00/12/000000001270`` for job 1270.

    A directory of the last level holds at most a hundred jobs, one above it a hundred of those, so
    that ten million jobs never share one.
    """
    return f"{job_id // 10**6:02d}/{job_id // 10**4 % 100:02d}/{job_id // 100 % 100:02d}/{job_id:012d}"


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
    """Return the name of a node's socket in the run-time directory. It contains only the beginning of a long name: the
    process id tells nodes apart, and the address of a socket is limited."""
    return f"wakeup-{node[:_SOCKET_NAME_CHARS]}.{pid}.sock"
