"""Writing new files below one folder; no link is followed on the way, and nothing is overwritten."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

FILE_MODE = 0o644
FOLDER_MODE = 0o755

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Beneath:
    """A folder, open for new files and folders below it.

    Paths must have been judged before (``member_names``). The folder written to last is kept open: members
    of one folder mostly follow each other.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, _FOLDER)
        self._at = self._root
        self._path = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        os.close(self._root)

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, unless they are there."""
        self._enter(path)

    @contextmanager
    def new_file(self, path: str) -> Iterator[BinaryIO]:
        """A file that was not there, open for writing, with the folders above it."""
        parent, _, name = path.rpartition("/")
        self._enter(parent)
        with os.fdopen(os.open(name, _NEW_FILE, FILE_MODE, dir_fd=self._at), "wb", buffering=0) as file:
            os.fchmod(file.fileno(), FILE_MODE)  # whatever the umask
            yield file

    def _enter(self, path: str) -> None:
        if path == self._path:
            return
        self._leave()
        for part in path.split("/") if path else ():
            with suppress(FileExistsError):
                os.mkdir(part, FOLDER_MODE, dir_fd=self._at)
            deeper = os.open(part, _FOLDER, dir_fd=self._at)
            self._close_unless_root()
            self._at = deeper
        self._path = path

    def _leave(self) -> None:
        self._close_unless_root()
        self._at = self._root
        self._path = ""

    def _close_unless_root(self) -> None:
        if self._at != self._root:
            os.close(self._at)
