"""The files in a job's folder, as commands read them: from the open store (``job_folder``), or through a server."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, cast

from spinney.terminal.connection import now_us, resolve_settings

if TYPE_CHECKING:
    from spinney.commands import LocalPerformer, Performs
    from spinney.features.files.job_folder import JobFiles
    from spinney.model.homes import DirectoryEntry
    from spinney.model.jobs import Attempt
    from spinney.store.parts import Store


def job_files(store: "Store", job_id: int, url: str | None) -> "JobFiles":
    """Return the files of a job of the open store that ``url`` names. Raises NoSuchJob."""
    from spinney.features.files import job_folder
    from spinney.wakeup import wake_all

    settings = resolve_settings(url)
    return job_folder.job_files(
        store, job_id, settings.folders, clock=now_us, wake_nodes=lambda: wake_all(store, settings.run_dir)
    )


class Files(Protocol):
    """The files of one job: ``JobFiles`` of an open store, or ``RemoteFiles`` through a server."""

    def content(self, path: str, *, start: int = 0, must: bool = True) -> Iterator[bytes]:
        """Yield the content of a file from the byte ``start`` on."""

    def output(self, attempt: "Attempt", stream: str, *, start: int = 0) -> Iterator[bytes]:
        """Yield what an attempt wrote to stdout or stderr, from the byte ``start`` on."""

    def everything(self) -> "Iterator[tuple[str, DirectoryEntry]]":
        """Yield all files below the folder, with their paths."""


def files_of(performer: "Performs", job_id: int, url: str | None) -> Files:
    """Return the files of a job, from the open store or through a server. Raises NoSuchJob."""
    remote = getattr(performer, "job_files", None)
    if remote is not None:
        return cast(Files, remote(job_id))
    return job_files(cast("LocalPerformer", performer).store, job_id, url)
