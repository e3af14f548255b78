"""Uploads on their way: each in a directory of its own below the folder root, so that a rename brings its
files into place.

The files have numbers as names here, and the names that the client gave are only checked texts until the
move: so no name of a client is used as a path while its request may still fail."""

import asyncio
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

from spinney.files.disk_space import is_full
from spinney.folders import folders
from spinney.host.ownership import make_directory
from spinney.model.errors import UsageError

T = TypeVar("T")
SPOOL = ".spool"
OLD_S = 86_400.0
"""An upload that nobody has touched for so many seconds was left by a server that died."""
NAME_MAX_BYTES = 255
PATH_MAX = 1_000
_NOT_TAKEN = "the files cannot be taken"
DEPTH_MAX = 20
"""The most parts that the path of a file may have."""


@dataclass(slots=True)
class Upload:
    """The files of one request, on disk but not yet in the job's folder."""

    root: Path
    """The folder root below which ``place`` is."""
    place: Path
    """The directory of this upload."""
    files: dict[str, Path] = field(default_factory=dict)
    """Where each file is now, by its path in the job's folder."""

    @contextmanager
    def writing(self, path: str) -> Iterator[BinaryIO]:
        """Yield a new file for this path in the job's folder; it is durable when the block is left, which may take long
        (``in_threads``). Raises UsageError
        for a path that is not allowed or given twice, and DiskFull, also for what the block writes."""
        path = checked(path)
        if any(
            path == other or f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")
            for other in self.files
        ):
            raise UsageError(f"{path!r} appears twice, or as a file and a folder; name each file once")
        at = self.place / str(len(self.files))
        with _saying_that_it_is_full(self.root):
            os.utime(self.place)
            with open(os.open(at, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123
                yield file
                file.flush()
                os.fsync(file.fileno())
        self.files[path] = at

    def digest(self) -> str:
        """Return a SHA-256 over all paths and contents, as hexadecimal digits. It does not depend on the
        order in which the files came. It reads all files again, so it belongs in a thread."""
        whole = hashlib.sha256()
        for path, at in sorted(self.files.items()):
            with at.open("rb") as file:
                whole.update(f"{path}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
        return whole.hexdigest()


@asynccontextmanager
async def in_threads(context_manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave a context manager in threads: a disk may take long to sync a file, or not answer, while the event
    loop has others to serve."""
    value = await asyncio.to_thread(context_manager.__enter__)
    try:
        yield value
    except BaseException as error:
        # Also for a request that is cancelled, what it began is tidied up.
        leaving = asyncio.to_thread(context_manager.__exit__, type(error), error, error.__traceback__)
        if not await asyncio.shield(leaving):
            raise
    else:
        await asyncio.shield(asyncio.to_thread(context_manager.__exit__, None, None, None))


def upload(root: Path) -> AbstractAsyncContextManager[Upload]:
    """Give room for the files of one request; see ``room``, which it enters and leaves in threads."""
    return in_threads(room(root))


@contextmanager
def room(root: Path) -> Iterator[Upload]:
    """Yield room for the files of one request; files that were not moved into place are removed when the block is left.

    Raises DiskFull when there is no room, and StoreUnusable for a root that is not writable.
    """
    folders.require_room(root, f"{_NOT_TAKEN}: ")
    place = root / SPOOL / secrets.token_hex(8)
    try:
        make_directory(place.parent, like=root)
        place.mkdir(mode=0o700)
    except OSError as error:
        raise folders.unusable(
            root, error, f"{_NOT_TAKEN}: {place.parent}", "check that it exists"
        ) from error
    try:
        yield Upload(root, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _saying_that_it_is_full(root: Path) -> Iterator[None]:
    """Turn an OSError of a full disk into DiskFull; others are raised as they are."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise folders.unusable(root, error, _NOT_TAKEN) from error


@asynccontextmanager
async def clearing(root: Path) -> AsyncIterator[None]:
    """Remove, at the start of a server, what uploads of servers that died have left."""
    await asyncio.to_thread(clear, root)
    yield


def clear(root: Path, *, now_s: float | None = None) -> int:
    """Remove uploads that nobody has touched for ``OLD_S`` seconds, and return how many there were. ``now_s``: seconds
    since 1970; None: now."""
    before = (time.time() if now_s is None else now_s) - OLD_S
    try:
        old = [
            entry.path
            for entry in os.scandir(root / SPOOL)
            if entry.stat(follow_symlinks=False).st_mtime < before
        ]
    except OSError:
        return 0
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return len(old)


def checked(path: str) -> str:
    """Return the path if it can be that of a file in a job's folder. Raises UsageError for ``..``, absolute
    or empty paths, unprintable characters, the engine's own directory, and for what is too long or too deep.
    It does not look at the disk."""
    steps = path.split("/")
    fits = 0 < len(path) <= PATH_MAX and path.isprintable() and len(steps) <= DEPTH_MAX
    if not fits or any(step in ("", ".", "..") or len(step.encode()) > NAME_MAX_BYTES for step in steps):
        raise UsageError(
            f"{path[:100]!r} is no path for a file in a job's folder; name it as in 'scans/page-1.tif', without '..' "
            f"and without a '/' at its beginning, in at most {PATH_MAX:,} characters and {DEPTH_MAX} names of at most "
            f"{NAME_MAX_BYTES} bytes"
        )
    if steps[0] == folders.OWN:
        raise UsageError(f"{folders.OWN} in a job's folder is Spinney's own; choose another name")
    return path
