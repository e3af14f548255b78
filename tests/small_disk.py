"""A file system with little room, as a real disk that is full: a tmpfs, where one can be mounted."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

BLOCK = 1 << 12


@dataclass(frozen=True)
class SmallDisk:
    """The folder where the file system is mounted."""

    folder: Path

    def fill(self, *, but: int = 0) -> None:
        """Leave room for so many bytes, in a file of its own."""
        with (self.folder / "filler").open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(BLOCK))
            except OSError:
                file.truncate(max(0, file.tell() - but))

    def empty(self) -> None:
        """Give the room back."""
        (self.folder / "filler").unlink()


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount one here; skip the test where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    mounted = subprocess.run(words, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
