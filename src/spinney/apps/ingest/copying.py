"""Copying files with their digests computed on the way, and making what was written durable."""

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 1 << 20


def copy_hashed(
    source: BinaryIO,
    target: Path,
    algorithms: Collection[str],
    *,
    durable: bool,
    between: Callable[[int], None] = lambda copied: None,
) -> tuple[int, Mapping[str, str]]:
    """Copy an open file to ``target`` (which must not be there); returns its size and digests.

    The times of the source are kept. ``durable``: the copy is on disk when this returns.
    ``between`` is called after each chunk with its size, so that a long copy can show progress or
    be called off.
    """
    sums = {a: hashlib.new(a, usedforsecurity=False) for a in algorithms}
    size = 0
    with target.open("xb", buffering=0) as out:
        while chunk := source.read(CHUNK_BYTES):
            _write_all(out, chunk)
            for s in sums.values():
                s.update(chunk)
            size += len(chunk)
            between(len(chunk))
        times = os.fstat(source.fileno())
        os.utime(out.fileno(), ns=(times.st_atime_ns, times.st_mtime_ns))
        if durable:
            os.fsync(out.fileno())
    return size, {a: s.hexdigest() for a, s in sums.items()}


def digest(path: Path, algorithm: str = "sha256") -> str:
    """The hexadecimal digest of a file."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def write_durably(path: Path, text: str) -> None:
    """Write a file that is whole or not there, whatever dies in the middle."""
    beside = path.with_name(f"{path.name}.new")
    with beside.open("w", encoding="utf-8", newline="\n") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the entries of a folder durable."""
    at = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(at)
    finally:
        os.close(at)


def sync_folders(top: Path) -> None:
    """The same for a folder and all below it."""
    for at, _, _ in os.walk(top):
        sync_folder(Path(at))


def _write_all(out: BinaryIO, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[out.write(left) :]
