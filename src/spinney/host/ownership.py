"""What root makes in a place of another user belongs to that user.

Otherwise a single command that somebody runs as root leaves directories and files that the nodes, which run as another
user, may not use."""

import contextlib
import os
from pathlib import Path


def give_to_owner(path: Path | str, like: Path, *, dir_fd: int | None = None) -> None:
    """Give what this process has just made to the owner of ``like``, if this process is root's. ``dir_fd``: the
    descriptor of the directory in which ``path`` is. A link is not followed."""
    if os.geteuid() == 0:
        status = like.stat()
        with contextlib.suppress(OSError):  # a share may refuse this even to root
            os.chown(path, status.st_uid, status.st_gid, dir_fd=dir_fd, follow_symlinks=False)


def make_directory(path: Path, like: Path) -> None:
    """Make a directory that only its owner can use, unless it exists. Its owner is that of ``like``. Raises OSError."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        give_to_owner(path, like)
