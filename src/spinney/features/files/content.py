"""What is in a job's folder, for who may see the job: read here, or through a node of the host where it is.

What the engine keeps there itself (output, parameters) may have a secret in it: it is shown without.
"""

import asyncio
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from spinney.control import Control
from spinney.define.params.masking import REDACT_NOTHING, Redactor
from spinney.features.files.job_folder import JobFiles, elsewhere, job_files
from spinney.folders import folder_reader, folders
from spinney.model.errors import NoSuch, Refused
from spinney.model.homes import DirectoryEntry
from spinney.web.files.content import Content
from spinney.web.request_context import RequestContext

_PARAMETERS = ".params.json"
"""Of the files in which programs are given their parameters."""
LISTED_MAX = 10_000
"""Names in one listing of a whole folder."""


async def opened(context: RequestContext, root: Path, job_id: int, path: str) -> Content:
    """A file in a job's folder. Raises NoSuchJob, NoSuch, Refused."""
    own = path.split("/")[0] == folders.OWN

    def look(control: Control) -> tuple[bool, Redactor]:
        redactor = control.queries.redactor(job_id)
        return elsewhere(control.store, job_id, root) is None, redactor if own else REDACT_NOTHING

    here, redactor = await context.run(look)
    if redactor is not REDACT_NOTHING and path.endswith(_PARAMETERS):
        raise Refused(
            f"{path!r} has the parameters of job {job_id}, and some are secret; its page shows the others"
        )
    if not here:
        return _RemoteFile(context=context, root=root, job_id=job_id, path=path, redactor=redactor)
    fd = await asyncio.to_thread(folder_reader.open_file, root, job_id, path)
    return _LocalFile(file=os.fdopen(fd, "rb", buffering=0), redactor=redactor)


async def listed(
    context: RequestContext, root: Path, job_id: int
) -> tuple[list[tuple[str, DirectoryEntry]], bool]:
    """All files below a job's folder by their paths, and whether that is all. Raises NoSuchJob, Refused."""

    def look(control: Control) -> tuple[list[tuple[str, DirectoryEntry]], bool]:
        control.queries.job(job_id)
        folder = _files(control, root, job_id)
        found: list[tuple[str, DirectoryEntry]] = []
        todo = [""]
        while todo:
            path = todo.pop()
            for entry in folder.names(path, must=bool(path)):
                name = f"{path}/{entry.name}" if path else entry.name
                if entry.kind == "folder":
                    todo.append(name)
                elif len(found) == LISTED_MAX:
                    return sorted(found), False
                else:
                    found.append((name, entry))
        return sorted(found), True

    return await context.run(look, long=True)


@dataclass(slots=True, kw_only=True)
class _LocalFile:
    file: BinaryIO
    """Closed when nobody has it any more."""
    redactor: Redactor

    async def seen(self) -> tuple[int, str | None]:
        found = os.fstat(self.file.fileno())
        return found.st_size, f'"{found.st_mtime_ns:x}-{found.st_size:x}"'

    async def read(self, start: int, length: int) -> bytes:
        return await asyncio.to_thread(self.redactor.piece, self._read, start, length)

    def _read(self, start: int, length: int) -> bytes:
        return os.pread(self.file.fileno(), length, start)


@dataclass(slots=True, kw_only=True)
class _RemoteFile:
    context: RequestContext
    root: Path
    job_id: int
    path: str
    redactor: Redactor

    async def seen(self) -> tuple[int, str | None]:
        above, _, name = self.path.rpartition("/")

        def look(control: Control) -> int:
            for entry in _files(control, self.root, self.job_id).names(above):
                if entry.name == name and entry.kind == "file":
                    return entry.size
            raise NoSuch(
                f"{self.path!r} in the folder of job {self.job_id} is not there; 'spinney files {self.job_id}' lists "
                f"what there is"
            )

        return await self.context.run(look, long=True), None

    async def read(self, start: int, length: int) -> bytes:
        def look(control: Control) -> bytes:
            read = partial(_piece, _files(control, self.root, self.job_id), self.path)
            return self.redactor.piece(read, start, length)

        return await self.context.run(look, long=True)


def _files(control: Control, root: Path, job_id: int) -> JobFiles:
    return job_files(control.store, job_id, root, clock=control.clock, wake_nodes=control.wake_nodes)


def _piece(files: JobFiles, path: str, start: int, length: int) -> bytes:
    found = bytearray()
    for piece in files.content(path, start=start):
        found += piece
        if len(found) >= length:
            break
    return bytes(found[:length])
