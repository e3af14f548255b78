"""The files in a job's folder, as commands read them: from the open store (``job_folder``), or through a server."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, cast

from spinney.terminal.connection import now_us, resolve_settings

if TYPE_CHECKING:
    from spinney.commands import LocalPerformer, Performs
    from spinney.model.homes import DirectoryEntry
    from spinney.model.jobs import Attempt


class Files(Protocol):
    """The files of one job: ``JobFiles`` of an open store, or ``RemoteFiles`` through a server."""

    def content(self, path: str, *, start: int = 0, must: bool = True) -> Iterator[bytes]:
        """Yield the content of a file from the byte ``start`` on, in pieces. ``must``: raise an error when it
        does not exist, instead of yielding nothing."""

    def output(self, attempt: "Attempt", stream: str, *, start: int = 0) -> Iterator[bytes]:
        """Yield what an attempt wrote to stdout or stderr, from the byte ``start`` on."""

    def everything(self) -> "Iterator[tuple[str, DirectoryEntry]]":
        """Yield all files below the folder, with their paths."""


def files_of(performer: "Performs", job_id: int, url: str | None) -> Files:
    """Return the files of a job, from the open store or through a server, with secrets redacted in what the
    engine keeps there.

    ``url``: the store as the command line names it, by whose settings the folder root is found. Raises
    NoSuchJob.
    """
    remote = getattr(performer, "job_files", None)
    if remote is not None:
        return cast(Files, remote(job_id))
    from spinney.features.files import job_folder
    from spinney.service.queries import Queries
    from spinney.wakeup import wake_all

    local, settings = cast("LocalPerformer", performer), resolve_settings(url)
    return job_folder.job_files(
        local.store,
        job_id,
        settings.folders,
        local.part(Queries).redactor(job_id),
        clock=now_us,
        wake_nodes=lambda: wake_all(local.store, settings.run_dir),
    )
