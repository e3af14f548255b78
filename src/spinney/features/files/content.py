"""Files of a job as pages and the API send them: from this host, or through a node of the host that has them.

What the engine itself keeps in the folder (output, parameters) may contain secrets of the job, which are redacted.
"""

import asyncio
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol

from spinney.commands.control import Control
from spinney.define.params.redaction import Redactor
from spinney.features.files.job_folder import JobFiles, elsewhere, job_files, redactor_of_file
from spinney.folders import folder_reader
from spinney.model.errors import NoSuch
from spinney.model.homes import DirectoryEntry
from spinney.web.files.content import Content
from spinney.web.request_context import RequestContext

LISTED_MAX = 10_000
"""How many files of a whole folder are listed."""


class JobFile(Content, Protocol):
    """A file of a job, which may be output that is still written."""

    async def read(self, start: int, length: int, *, grows: bool = False) -> bytes:
        """Return the bytes as ``Content`` does; ``grows``: without an end that may be the beginning of a secret."""


async def opened(context: RequestContext, root: Path, job_id: int, path: str) -> JobFile:
    """Open a file in a job's folder, on this host or elsewhere.

    Raises NoSuchJob, NoSuch, and Refused (parameters with secrets, a host that does not answer).
    """

    def look(control: Control) -> tuple[bool, Redactor]:
        redactor = redactor_of_file(job_id, path, control.queries.redactor(job_id))
        return elsewhere(control.store, job_id, root) is None, redactor

    is_local, redactor = await context.run(look)
    if not is_local:
        return _RemoteFile(context=context, root=root, job_id=job_id, path=path)
    fd = await asyncio.to_thread(folder_reader.open_file, root, job_id, path)
    return _LocalFile(file=os.fdopen(fd, "rb", buffering=0), redactor=redactor)


async def listed(
    context: RequestContext, root: Path, job_id: int
) -> tuple[list[tuple[str, DirectoryEntry]], bool]:
    """Return the files below a job's folder with their paths, sorted by path, and whether these are all: no
    more than ``LISTED_MAX`` are listed. Raises NoSuchJob, Refused."""

    def look(control: Control) -> tuple[list[tuple[str, DirectoryEntry]], bool]:
        files = sorted(islice(files_of(control, job_id, root).everything(), LISTED_MAX + 1))
        return files[:LISTED_MAX], len(files) <= LISTED_MAX

    return await context.run(look, long=True)


@dataclass(slots=True, kw_only=True)
class _LocalFile:
    """A file on this host. It stays open from the first look on, so that size and content are of the same
    file even if another takes its name."""

    file: BinaryIO
    """The open file, unbuffered; it is closed when it is garbage-collected."""
    redactor: Redactor
    """Hides the secrets of the job in what is read."""

    async def size_and_tag(self) -> tuple[int, str | None]:
        """Return the size, and an ETag of size and time of change."""
        status = os.fstat(self.file.fileno())
        return status.st_size, f'"{status.st_mtime_ns:x}-{status.st_size:x}"'

    async def read(self, start: int, length: int, *, grows: bool = False) -> bytes:
        return await asyncio.to_thread(self.redactor.piece, self._read, start, length, grows=grows)

    def _read(self, start: int, length: int) -> bytes:
        return os.pread(self.file.fileno(), length, start)


@dataclass(slots=True, kw_only=True)
class _RemoteFile:
    """A file on another host, read through a node there; it has no ETag."""

    context: RequestContext
    root: Path
    job_id: int
    path: str

    async def size_and_tag(self) -> tuple[int, str | None]:
        """Return the size as the directory on the other host lists it. Raises NoSuch."""
        above, _, name = self.path.rpartition("/")

        def look(control: Control) -> int:
            for entry in files_of(control, self.job_id, self.root).names(above):
                if entry.name == name and entry.kind == "file":
                    return entry.size
            raise NoSuch(
                f"{self.path!r} in the folder of job {self.job_id} is not there; 'spinney files {self.job_id}' lists "
                f"what there is"
            )

        return await self.context.run(look, long=True), None

    async def read(self, start: int, length: int, *, grows: bool = False) -> bytes:
        def look(control: Control) -> bytes:
            return files_of(control, self.job_id, self.root).read(self.path, start, length, grows=grows)

        return await self.context.run(look, long=True)


@dataclass(slots=True, kw_only=True)
class WithoutEnd:
    """A file that is still written, without its last bytes where they may be the beginning of a secret. It has no
    ETag, because these bytes come without a change of the file."""

    content: JobFile
    back: int
    """The most bytes that may be left out."""

    async def size_and_tag(self) -> tuple[int, str | None]:
        size, _ = await self.content.size_and_tag()
        start = max(0, size - self.back)
        return start + len(await self.content.read(start, size - start, grows=True)), None

    async def read(self, start: int, length: int) -> bytes:
        return await self.content.read(start, length, grows=True)


def files_of(control: Control, job_id: int, root: Path) -> JobFiles:
    """Return the files of a visible job. Raises NoSuchJob."""
    redactor = control.queries.redactor(job_id)
    return job_files(
        control.store, job_id, root, redactor, clock=control.clock, wake_nodes=control.wake_nodes
    )
