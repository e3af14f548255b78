"""The files in a job's folder, wherever that is: read here, or through a node of the host where it is."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from spinney.model.errors import Refused
from spinney.model.homes import MISSING, NAMES_MOST, PIECE_BYTES, DirectoryEntry, Fetch, FetchResult, Home

if TYPE_CHECKING:
    from spinney.store.contract import Store


class _Source(Protocol):
    def get(self, path: str, *, start: int, length: int) -> FetchResult: ...


class JobFiles:
    """Of one job."""

    def __init__(self, job_id: int, source: _Source) -> None:
        self._job_id, self._source = job_id, source

    def content(self, path: str, *, start: int = 0, must: bool = True) -> Iterator[bytes]:
        """What a file has from there on, in pieces. Raises Refused when it cannot be read, or (``must``) is not
        there."""
        while True:
            found = self._source.get(path, start=start, length=PIECE_BYTES)
            if found.error == MISSING and not must:
                return
            data = self._found(path, found).data or b""
            if data:
                yield data
            if len(data) < PIECE_BYTES:
                return
            start += len(data)

    def names(self, path: str, *, must: bool = True) -> Iterator[DirectoryEntry]:
        """What is in a folder. Raises Refused when it cannot be read, or (``must``) is not there."""
        start = 0
        while True:
            found = self._source.get(path, start=start, length=0)
            if found.error == MISSING and not must:
                return
            names = self._found(path, found).names or ()
            yield from names
            if len(names) < NAMES_MOST:
                return
            start += NAMES_MOST

    def _found(self, path: str, found: FetchResult) -> FetchResult:
        if found.error is not None:
            what = (
                f"{path!r} in the folder of job {self._job_id}"
                if path
                else f"the folder of job {self._job_id}"
            )
            raise Refused(f"{what} {found.error}; 'spinney files {self._job_id}' lists what there is")
        return found


def job_files(
    store: "Store", job_id: int, root: Path, *, clock: Callable[[], int], wake_nodes: Callable[[], None]
) -> JobFiles:
    """The files of a job, where ``root`` is the folder root here. Raises NoSuchJob."""
    from spinney.features.homes.fetches import Fetcher

    store.job(job_id)
    home = elsewhere(store, job_id, root)
    if home is None:
        return JobFiles(job_id, _Here(root, job_id))
    return JobFiles(job_id, Fetcher(store, job_id, home, clock=clock, wake_nodes=wake_nodes))


def elsewhere(store: "Store", job_id: int, root: Path) -> Home | None:
    """The folder root in which a job has its folder, where that is another than this one."""
    from spinney.folders import folders

    home = store.homes.of(job_id)
    return None if home is None or folders.fingerprint(root, make=False) == home.mark else home


class _Here:
    def __init__(self, root: Path, job_id: int) -> None:
        self._root, self._job_id = root, job_id

    def get(self, path: str, *, start: int, length: int) -> FetchResult:
        from spinney.folders import folder_reader

        return folder_reader.read(self._root, Fetch(0, self._job_id, path, start, length))
