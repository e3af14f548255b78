"""Where things lie: pure rules about paths, one for everybody who asks."""

from pathlib import Path


def job_folder(job_id: int) -> str:
    """The folder of a job, relative to the folder root: ``00/00/12/000000001270`` for job 1270.

    A directory of the last level holds at most a hundred jobs, one above it a hundred of those, so
    that ten million jobs never share one.
    """
    return f"{job_id // 10**6:02d}/{job_id // 10**4 % 100:02d}/{job_id // 100 % 100:02d}/{job_id:012d}"


def database_file(store: str) -> Path | None:
    """The file of a store that is one file (``sqlite:///file``); None for other stores."""
    scheme, _, path = store.partition(":///")
    return Path(path.partition("?")[0]) if scheme == "sqlite" and path else None


def run_dir(store: str) -> Path | None:
    """The run-time directory that goes with a store: locks, pages and sockets of this host's nodes.

    Beside the database file, so that everybody who opens the file finds it; None for a store that is
    no file.
    """
    file = database_file(store)
    return None if file is None else Path(f"{file.absolute()}.run")
