"""The files in a job's folder, wherever that is: on this host, or read through a node of the host that has
it.

Files of other hosts are fetched in pieces through the store (``features.homes.fetches``), so that no node
needs a port. What the engine itself keeps in the folder (output, parameters) may contain secrets of the job,
which are redacted: each byte of a secret becomes ``*``, so that positions in a file stay the same. The job's
own files are shown as they are.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.define.params.redaction import REDACT_NOTHING, Redactor
from spinney.files.paths import DEPTH_MAX
from spinney.model.errors import Refused
from spinney.model.homes import MISSING, NAMES_MOST, PIECE_BYTES, DirectoryEntry, Fetch, FetchResult, Home
from spinney.model.values.paths import OWN

if TYPE_CHECKING:
    from spinney.features.homes.fetches import Fetcher
    from spinney.model.jobs import Attempt
    from spinney.store.parts import Store

_PARAMETERS = ".params.json"
"""The end of the names of the files in which programs get their parameters."""


class _Unreadable(Refused):
    """This file or directory cannot be read, or does not exist; others in the folder may be readable."""


class JobFiles:
    """The files of one job. Paths are relative to its folder.

    Methods raise Refused for what cannot be read (a link, a path that leads out, a host that does not answer)
    and, where ``must`` is true, for what does not exist; otherwise that counts as empty.
    """

    def __init__(self, job_id: int, source: "_Here | Fetcher", redactor: Redactor) -> None:
        """Read the files of a job from ``source``, which is on this host or on another one; ``redactor`` hides the
        secrets of the job."""
        self._job_id, self._source, self._redactor = job_id, source, redactor

    def content(self, path: str, *, start: int = 0, must: bool = True) -> Iterator[bytes]:
        """Yield the content of a file from the byte ``start`` on, in pieces of ``PIECE_BYTES``, up to where
        it ends when it is read. A file that grows meanwhile may be read further."""
        return _pieces(partial(self.read, path, must=must), start)

    def read(self, path: str, start: int, length: int, *, must: bool = True, grows: bool = False) -> bytes:
        """Return ``length`` bytes of a file from ``start`` on; fewer at its end. The part of a secret that
        crosses either end is hidden, too. ``grows``: the file is still being written, as for ``Redactor.piece``."""
        redactor = redactor_of_file(self._job_id, path, self._redactor)
        return redactor.piece(partial(self._read, path, must=must), start, length, grows=grows)

    def _read(self, path: str, start: int, length: int, *, must: bool) -> bytes:
        """Return this many bytes of the file, unchanged, from as many answers of the source as that takes."""
        data = bytearray()
        while (rest := min(PIECE_BYTES, length - len(data))) > 0:
            piece = self._get(path, start + len(data), rest, must=must).data or b""
            data += piece
            if len(piece) < rest:
                break
        return bytes(data)

    def output(self, attempt: "Attempt", stream: str, *, start: int = 0) -> Iterator[bytes]:
        """Yield what an attempt wrote to ``stdout`` or ``stderr``, from the byte ``start`` on, in pieces as
        ``output_piece`` returns them."""
        return _pieces(partial(self.output_piece, attempt, stream), start)

    def output_piece(self, attempt: "Attempt", stream: str, start: int, length: int) -> bytes:
        """Return ``length`` bytes of what an attempt wrote to ``stdout`` or ``stderr`` from ``start`` on; fewer at its
        end. While it runs, the last bytes are left out as long as they may be the beginning of a secret. Files of
        output are made at their first byte, so one that is missing counts as empty."""
        path = output_path(attempt, stream)
        return self.read(path, start, length, must=False, grows=attempt.ended_us is None)

    def names(self, path: str, *, must: bool = True) -> Iterator[DirectoryEntry]:
        """Yield the entries of a directory (an empty path: the job's folder), as they are listed, in
        pages."""
        start = 0
        while True:
            names = self._get(path, start, 0, must=must).names or ()
            yield from names
            if len(names) < NAMES_MOST:
                return
            start += NAMES_MOST

    def everything(self, path: str = "") -> Iterator[tuple[str, DirectoryEntry]]:
        """Yield all files below a directory with their paths, directory by directory.

        Two kinds of directories are yielded themselves, in place of what is in them. Those that lie ``DEPTH_MAX``
        levels deep: each directory is opened from the folder on, so the time would grow with the square of the levels,
        and a program may make any number of levels. And those that cannot be read, because their name is no text or
        for want of permission, or because they were deleted meanwhile: they must not hide all other files.
        """
        listings = [(path, DirectoryEntry(path, "folder", 0), self.names(path, must=bool(path)))]
        while listings:
            directory, own_entry, entries = listings[-1]
            try:
                entry = next(entries, None)
            except _Unreadable:
                listings.pop()
                if not listings:
                    raise
                yield directory, own_entry
                continue
            if entry is None:
                listings.pop()
                continue
            name = f"{directory}/{entry.name}" if directory else entry.name
            if entry.kind == "folder" and name.count("/") < DEPTH_MAX:
                listings.append((name, entry, self.names(name)))
            else:
                yield name, entry

    def _get(self, path: str, start: int, length: int, *, must: bool) -> FetchResult:
        """Return one answer of the source. Raises Refused for its error; what is missing counts as empty
        unless ``must``."""
        result = self._source.get(path, start=start, length=length)
        if result.error == MISSING and not must:
            return FetchResult()
        if result.error is not None:
            folder = f"the folder of job {self._job_id}"
            if not path:
                raise _Unreadable(
                    f"{folder} {result.error}; on a host that has it, check its permissions, and move away what is "
                    f"not a folder"
                )
            raise _Unreadable(
                f"{path!r} in {folder} {result.error}; 'spinney files {self._job_id}' lists what there is"
            )
        return result


def _pieces(read: Callable[[int, int], bytes], start: int) -> Iterator[bytes]:
    """Yield what ``read`` returns for a position and a length, in pieces of ``PIECE_BYTES``, up to the end."""
    while data := read(start, PIECE_BYTES):
        yield data
        if len(data) < PIECE_BYTES:
            return
        start += len(data)


def redactor_of_file(job_id: int, path: str, redactor: Redactor) -> Redactor:
    """Return the redactor of a file in a job's folder. ``redactor``: the one that hides the secrets of the job.

    The job's own files are shown as they are. Raises Refused for a file of parameters some of which are
    secret.
    """
    if path.split("/")[0] != OWN:
        return REDACT_NOTHING
    if redactor is not REDACT_NOTHING and path.endswith(_PARAMETERS):
        raise Refused(
            f"{path!r} has the parameters of job {job_id}, and some are secret; its page and 'spinney show {job_id}' "
            f"show the others"
        )
    return redactor


def output_path(attempt: "Attempt", stream: str) -> str:
    """Return the path of an attempt's ``stdout`` or ``stderr`` in the job's folder."""
    return f"{OWN}/{attempt.stage}.{attempt.fence}.{stream}"


def job_files(
    store: "Store",
    job_id: int,
    root: Path,
    redactor: Redactor,
    *,
    clock: Callable[[], int],
    wake_nodes: Callable[[], None],
) -> JobFiles:
    """Return the files of a job, redacted by ``redactor``. ``root`` is the folder root of this host; where
    the job's folder is elsewhere, its files are fetched through the store. Raises NoSuchJob."""
    from spinney.features.homes.fetches import Fetcher

    store.job(job_id)
    home = elsewhere(store, job_id, root)
    if home is None:
        return JobFiles(job_id, _Here(root, job_id), redactor)
    fetcher = Fetcher(store, job_id, home, clock=clock, wake_nodes=wake_nodes)
    return JobFiles(job_id, fetcher, redactor)


def elsewhere(store: "Store", job_id: int, root: Path) -> Home | None:
    """Return the home of a job, if its folder is below another root than this one; None: it is here, or nowhere yet."""
    from spinney.folders import folders

    home = store.homes.of(job_id)
    return None if home is None or folders.fingerprint(root, make=False) == home.mark else home


class _Here:
    """Reads from the folder root of this host."""

    def __init__(self, root: Path, job_id: int) -> None:
        self._root, self._job_id = root, job_id

    def get(self, path: str, *, start: int, length: int) -> FetchResult:
        from spinney.folders import folder_reader

        return folder_reader.read(self._root, Fetch(0, self._job_id, path, start, length))
