"""Folders with more levels than Python has levels of calls, as a program of a user may leave them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEVELS = 1200
"""More than ``sys.getrecursionlimit``."""


@contextmanager
def deep_folder(top: Path, levels: int = LEVELS) -> Iterator[Path]:
    """Put that many directories, one within the other and a file in the innermost, into a directory; remove them in the
    end, which pytest cannot do."""
    directory = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("a", dir_fd=directory)
        below = os.open("a", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=directory))
    os.close(directory)
    try:
        yield top / "a"
    finally:
        subprocess.run(["rm", "-rf", top / "a"], check=True)
