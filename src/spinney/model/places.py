"""Where things lie: pure rules about paths, one for everybody who asks."""

from pathlib import Path

from spinney.model.errors import UsageError


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
        raise UsageError("a store must be a file that all its nodes can open; write it as sqlite:///spinney.db")
    return Path(path)


def run_dir(store: str) -> Path | None:
    """The run-time directory that goes with a store: locks, pages and sockets of this host's nodes.

    Beside the database file, so that everybody who opens the file finds it; None for a store that is
    no file.
    """
    file = database_file(store)
    return None if file is None else Path(f"{file.absolute()}.run")
