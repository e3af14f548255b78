"""Copy files while computing their digests, and make written files durable (on disk, whatever happens to the
machine)."""

import errno
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from spinney.files.digests import Sums
from spinney.files.thread_pool import thread_pool

CHUNK_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 18
SYNCS_AT_ONCE = 4
"""The number of threads that call fsync together. Measured on ext4: four at once share the commits of the file system's
journal and take a tenth of the time of sequential calls."""
_BATCH_MAX_FILES = 256
"""The maximum number of files that a thread takes at a time, so that no thread is left with most of the work."""


def copy(source: BinaryIO, target: Path, sums: Sums | None = None, *, sync: bool = True) -> int:
    """Copy ``source`` to the new file ``target`` and return the number of bytes. Raises FileExistsError.

    ``sums`` (digests) are updated with the content. The content is durable on return, unless ``sync`` is False; the
    name is durable when the caller has synced the folder.
    """
    size = 0
    with target.open("xb", buffering=0) as out:
        while chunk := source.read(CHUNK_BYTES):
            if sums is not None:
                sums.update(chunk)
            size += len(chunk)
            write_all(out, chunk)
        if sync:
            os.fsync(out.fileno())
    return size


def copy_atomically(source: Path, target: Path) -> None:
    """Copy a file by way of ``target``.new, so that ``target`` is complete or unchanged, even if the process dies. The
    caller has to sync the folder. Raises OSError, which names the target where the disk is full; then no part is left.
    """
    temporary = target.with_name(f"{target.name}.new")
    temporary.unlink(missing_ok=True)
    with source.open("rb") as file:
        try:
            copy(file, temporary)
        except OSError as error:
            # It would keep a full disk full, and nobody may repeat the copy.
            temporary.unlink(missing_ok=True)
            if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None:
                error.filename = str(target)
            raise
    temporary.replace(target)


def write_durably(path: Path, text: str) -> None:
    """Write a file durably by way of ``path``.new, so that it is complete or unchanged, even if the process dies."""
    with replacing(path) as out:
        out.write(text.encode())
    sync_folder(path.parent)


@contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file, ``path``.new, that is renamed to ``path`` at the end of the block, so that ``path`` is complete
    or unchanged, even if the process dies. Its content is durable then, unless ``sync`` is False; its name is durable
    when the caller has synced the folder."""
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("wb", _BUFFER_BYTES) as out:
        yield out
        if sync:
            out.flush()
            os.fsync(out.fileno())
    temporary.replace(path)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable: new, renamed and removed files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_together(paths: Sequence[Path]) -> None:
    """Make these files and folders durable: the content of files, the names in folders. Several threads sync them, in
    no particular order."""
    if len(paths) == 1:
        _sync_each(paths)
        return
    size = max(1, min(_BATCH_MAX_FILES, math.ceil(len(paths) / SYNCS_AT_ONCE)))
    batches = iter([paths[i : i + size] for i in range(0, len(paths), size)])
    # The calling thread syncs too, so that the work begins even if the pool has no free thread.
    others = [thread_pool().submit(_sync_batches, batches) for _ in range(SYNCS_AT_ONCE - 1)]
    try:
        _sync_batches(batches)
    finally:
        wait(others)
    for other in others:
        other.result()


def _sync_batches(batches: Iterator[Sequence[Path]]) -> None:
    # Threads may share a list's iterator: next() of it is atomic in CPython.
    for batch in batches:
        _sync_each(batch)


def _sync_each(paths: Sequence[Path]) -> None:
    for path in paths:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_all(out: BinaryIO, chunk: bytes) -> None:
    """Write the whole chunk, even if the system accepts only a part at a time."""
    remaining = memoryview(chunk)
    while remaining:
        remaining = remaining[out.write(remaining) :]
