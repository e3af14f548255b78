"""Write new files below one folder, without following links or overwriting files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from spinney.files.trees import OPEN_FOLDER

FILE_MODE = 0o644
FOLDER_MODE = 0o755

_CREATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SafeFolder:
    """A folder in which new files and folders can be made, and nowhere else.

    The caller must have checked the paths (``member_names``): they are relative and have no part ``..``. Each
    part is opened from the descriptor of the one above, and never through a link, so that nobody who changes
    the folder meanwhile can lead a write elsewhere. The folder of the last file is kept open, because the
    members of a container mostly stand folder by folder."""

    def __init__(self, root: Path) -> None:
        """Open the folder, which must exist and be no link. Raises OSError."""
        self._root = os.open(root, OPEN_FOLDER)
        self._current = self._root
        self._current_path = ""

    def close(self) -> None:
        """Close the folder and the one that was kept open."""
        self._return_to_root()
        os.close(self._root)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents, unless they exist. Raises NotADirectoryError where one of them is a
        file or a link."""
        self._enter(path)

    @contextmanager
    def new_file(self, path: str) -> Iterator[BinaryIO]:
        """Make a new file, and its folders where they are missing, and open it for writing, unbuffered. Its
        mode is ``FILE_MODE`` whatever the umask. Raises FileExistsError for anything of that name, also a
        link."""
        parent, _, name = path.rpartition("/")
        self._enter(parent)
        with os.fdopen(
            os.open(name, _CREATE_FILE, FILE_MODE, dir_fd=self._current), "wb", buffering=0
        ) as file:
            os.fchmod(file.fileno(), FILE_MODE)  # os.open applies the umask
            yield file

    def _enter(self, path: str) -> None:
        """Make the folder ``path`` the current one, and create it and its parents where they are missing."""
        if path == self._current_path:
            return
        self._return_to_root()
        for part in path.split("/") if path else ():
            with suppress(FileExistsError):
                os.mkdir(part, FOLDER_MODE, dir_fd=self._current)
            deeper = os.open(part, OPEN_FOLDER, dir_fd=self._current)
            self._close_unless_root()
            self._current = deeper
        self._current_path = path

    def _return_to_root(self) -> None:
        self._close_unless_root()
        self._current = self._root
        self._current_path = ""

    def _close_unless_root(self) -> None:
        if self._current != self._root:
            os.close(self._current)
