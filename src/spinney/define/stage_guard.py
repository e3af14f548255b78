"""The refusal to open stores in processes in which stages run."""

from collections.abc import Iterator
from contextlib import contextmanager

from spinney.model.errors import UsageError

_storeless: list[object] = []
"""The applications whose stages run in this process; None: an application that is being loaded."""
_WITHIN_A_STAGE = (
    "a worker has no connection to the store of its node, so no store was opened; within a stage write "
    "job.submit(other, …) for a job of its own, job.spawn(other, …) for a subjob, and read what became of others from "
    "job.results and job.children() (another store is reached by an application of its own that names it, as "
    "Spinney('sqlite:////path/to/other.db'))"
)
_WHILE_LOADED = (
    "the module uses the store while it is imported, as every worker of a node does, so no store was opened; move "
    "that below 'if __name__ == \"__main__\":' or into a program of its own, and leave only declarations at the top "
    "level"
)


@contextmanager
def storeless(app: object = None) -> Iterator[None]:
    """Refuse to open stores in this process, because stages run in it: ``app`` opens none, and other applications only
    the store that their code names. Without ``app`` an application is being loaded, and nothing opens any: each worker
    that starts would submit the same jobs again.

    A stage would otherwise reach the store that its working directory or its environment names, which need not be its
    node's, and what it submits there would stay although its attempt fails.
    """
    _storeless.append(app)
    try:
        yield
    finally:
        _storeless.remove(app)


def require_store_allowed(app: object, *, names_store: bool) -> None:
    """Raise UsageError while an application is loaded, and where stages run, unless another application opens the store
    that its code names. ``names_store``: the application's code names the store, rather than settings or the
    environment."""
    if None in _storeless:
        raise UsageError(_WHILE_LOADED)
    if _storeless and (not names_store or app in _storeless):
        raise UsageError(_WITHIN_A_STAGE)
