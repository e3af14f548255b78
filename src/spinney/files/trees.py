"""Remove folders that programs of other people have filled, with any number of levels."""

import os
import stat
from contextlib import suppress
from pathlib import Path

_LEVELS = 50
"""How many levels of a tree are open at once. What lies deeper is moved to the top of the tree first, because both the
levels of calls and the open files of a process are limited; a user may make any number of levels."""
_ROUNDS = 100_000
"""How often the top of a tree is listed at most, so that a program that still runs and makes new entries there does
not keep the removal for ever."""
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder is opened that may have been replaced by a link, which is refused."""
_OWNER_MODE = 0o700


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it, whatever its depth.

    Each entry is reached by the descriptor of its directory, and no link is followed, even where one is put in the
    place of a directory meanwhile. Directories without permissions are given them first, where this process may do
    so. Two processes may remove the same folder at once: what is gone already is no error, and only in a deep tree one
    may come to a directory that is not empty, because the other works on it. All is removed that can be; then the
    first OSError is raised, if there was one (``shutil.rmtree`` raises RecursionError for a deep tree,
    even with ``ignore_errors``).
    """
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    removal = _Removal()
    try:
        removal.entry(parent, path.name, 0)
    finally:
        os.close(parent)
    if removal.failure is not None:
        raise removal.failure


def remove_all_but(folder: Path, *names: str) -> None:
    """Remove everything from a folder except for these names."""
    for entry in list(folder.iterdir()):
        if entry.name not in names:
            remove(entry)


class _Removal:
    """The removal of one tree. ``failure``: the first error; the others are removed nevertheless."""

    def __init__(self) -> None:
        self.failure: OSError | None = None
        self._top = -1
        """The descriptor of the top of the tree."""

    def entry(self, parent: int, name: str, level: int) -> None:
        """Remove one entry of the directory that ``parent`` is open on."""
        try:
            mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
            if not stat.S_ISDIR(mode):
                os.unlink(name, dir_fd=parent)
                return
            if mode & _OWNER_MODE != _OWNER_MODE:
                _make_writable(parent, name)
            if level > _LEVELS:
                os.rename(name, os.urandom(16).hex(), src_dir_fd=parent, dst_dir_fd=self._top)
                return
            self._folder(parent, name, level)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.failure = self.failure or error

    def _folder(self, parent: int, name: str, level: int) -> None:
        """Remove a directory with all its entries."""
        directory = os.open(name, OPEN_FOLDER, dir_fd=parent)
        try:
            if level == 0:
                self._top = directory
            listed: list[str] | None = None
            # The top is listed until nothing but what stays is left: deep directories are moved there meanwhile.
            for _ in range(1 if level else _ROUNDS):
                names = os.listdir(directory)  # noqa: PTH208 - of a descriptor
                if not names or names == listed:
                    break
                for below in names:
                    self.entry(directory, below, level + 1)
                listed = names
        finally:
            os.close(directory)
        os.rmdir(name, dir_fd=parent)


def _make_writable(parent: int, name: str) -> None:
    """Give a directory the permissions of its owner, where this process may; never the target of a link."""
    with suppress(OSError):
        directory = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{directory}", _OWNER_MODE)  # noqa: PTH101
        finally:
            os.close(directory)
