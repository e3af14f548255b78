"""Copying files with their digests computed on the way, and making what was written durable."""

import os
from pathlib import Path
from typing import BinaryIO

from spinney.apps.ingest.digests import Sums

CHUNK_BYTES = 1 << 20


def copy(source: BinaryIO, target: Path, sums: Sums | None = None) -> int:
    """Copy all that ``source`` has to ``target``, which must not be there, and take it into ``sums``; returns its size
    in bytes. On disk when this returns; its entry in the folder is the caller's to sync."""
    size = 0
    with target.open("xb", buffering=0) as out:
        while chunk := source.read(CHUNK_BYTES):
            if sums is not None:
                sums.update(chunk)
            size += len(chunk)
            write_all(out, chunk)
        os.fsync(out.fileno())
    return size


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


def write_all(out: BinaryIO, chunk: bytes) -> None:
    """Write all of it, however little the system takes at a time."""
    left = memoryview(chunk)
    while left:
        left = left[out.write(left) :]
