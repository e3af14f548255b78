"""The files in a job's folder, for commands: see ``spinney.features.files.job_folder``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, cast

from spinney.terminal.connection import now_us, resolve_settings

if TYPE_CHECKING:
    from spinney.commands import LocalPerformer, Performs
    from spinney.features.files.job_folder import JobFiles
    from spinney.model.homes import DirectoryEntry
    from spinney.model.jobs import Attempt
    from spinney.store.contract import Store


def job_files(store: "Store", job_id: int, url: str | None) -> "JobFiles":
    """The files of a job of the open store, which ``url`` names. Raises NoSuchJob."""
    from spinney.features.files import job_folder as found
    from spinney.wakeup import wake_all

    here = resolve_settings(url)
    return found.job_files(
        store, job_id, here.folders, clock=now_us, wake_nodes=lambda: wake_all(store, here.run_dir)
    )


OWN = ".spinney"
"""The folder in a job's folder where its output is."""


class Files(Protocol):
    """The files of one job, wherever they are."""

    def content(self, path: str, *, start: int = 0, must: bool = True) -> Iterator[bytes]:
        """What a file has from there on."""

    def output(self, attempt: "Attempt", stream: str, *, start: int = 0) -> Iterator[bytes]:
        """What an attempt wrote to stdout or stderr, from there on; nothing where it wrote nothing."""

    def everything(self) -> "Iterator[tuple[str, DirectoryEntry]]":
        """All below the folder, folders aside, by path."""


def files_of(performer: "Performs", job_id: int, url: str | None) -> Files:
    """The files of a job, through a server or not. Raises NoSuchJob."""
    remote = getattr(performer, "job_files", None)
    if remote is not None:
        return cast(Files, remote(job_id))
    return _LocalFiles(job_files(cast("LocalPerformer", performer).store, job_id, url))


class _LocalFiles:
    def __init__(self, files: "JobFiles") -> None:
        self._files = files
        self.content = files.content

    def output(self, attempt: "Attempt", stream: str, *, start: int = 0) -> Iterator[bytes]:
        return self._files.content(f"{OWN}/{attempt.stage}.{attempt.fence}.{stream}", start=start, must=False)

    def everything(self) -> "Iterator[tuple[str, DirectoryEntry]]":
        return self._below("")

    def _below(self, path: str) -> "Iterator[tuple[str, DirectoryEntry]]":
        for entry in self._files.names(path, must=bool(path)):
            name = f"{path}/{entry.name}" if path else entry.name
            if entry.kind == "folder":
                yield from self._below(name)
            else:
                yield name, entry
