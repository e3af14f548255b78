"""Writes new files below one folder, without following links or overwriting files."""

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

    Paths must have been checked before (``member_names``). The last folder is kept open, since members of one
    folder mostly follow each other.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, _FOLDER)
        self._folder = self._root
        self._path = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        os.close(self._root)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents, unless they exist."""
        self._enter(path)

    @contextmanager
    def new_file(self, path: str) -> Iterator[BinaryIO]:
        """Make a new file and its folders, and open it for writing."""
        parent, _, name = path.rpartition("/")
        self._enter(parent)
        with os.fdopen(os.open(name, _NEW_FILE, FILE_MODE, dir_fd=self._folder), "wb", buffering=0) as file:
            os.fchmod(file.fileno(), FILE_MODE)  # whatever the umask
            yield file

    def _enter(self, path: str) -> None:
        if path == self._path:
            return
        self._leave()
        for part in path.split("/") if path else ():
            with suppress(FileExistsError):
                os.mkdir(part, FOLDER_MODE, dir_fd=self._folder)
            deeper = os.open(part, _FOLDER, dir_fd=self._folder)
            self._close_unless_root()
            self._folder = deeper
        self._path = path

    def _leave(self) -> None:
        self._close_unless_root()
        self._folder = self._root
        self._path = ""

    def _close_unless_root(self) -> None:
        if self._folder != self._root:
            os.close(self._folder)
