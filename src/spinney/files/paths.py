"""Check names and paths of files, and open files so that no path leads out of their root folder.

A path is checked when it is read from a folder or a manifest. The kernel checks it once more when the file is
opened, component by component and without following symbolic links, so that a link that somebody creates in between
has no effect.

A name that is not UTF-8 is refused, because it cannot be written into a JSON inventory. All other characters are
allowed: blanks, line breaks, percent signs, quotes, unprintable ones.
"""

import errno
import os
import stat
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

PRODUCER, SYSTEM = "producer", "system"
"""The two folders of an object: the depositor's files, and the service's own metadata. The names are those of the
Merritt repository."""
COMPONENT_MAX_BYTES = 255
"""The maximum length of a file name on Linux."""
PATH_MAX_BYTES = 2048
"""The maximum length of a file's path, also in containers. Linux allows 4096 bytes, of which the path of the job's
folder takes some."""
DEPTH_MAX = 200
"""The maximum depth of folders: trees are removed by a recursive function, whose depth Python limits."""


class NotAdmitted(Exception):
    """A name, path or file is refused; the message names it and says what to correct."""


def shown(name: str) -> str:
    """Return ``name`` for a message: on one line, with unprintable characters escaped."""
    plain = name.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


def component(name: str) -> str:
    """Return ``name`` if it is a valid component of a path; otherwise raise NotAdmitted."""
    if name in ("", ".", ".."):
        raise NotAdmitted(f"{shown(name)!r} is no name of a file; paths go downward only, so correct it")
    if "/" in name or "\0" in name:
        raise NotAdmitted(f"'{shown(name)}' has a '/' or a NUL in it; give a plain name")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise NotAdmitted(
            f"the name '{shown(name)}' is not UTF-8 and cannot be recorded in an inventory; "
            f"rename the file and retry"
        ) from None
    if size > COMPONENT_MAX_BYTES:
        raise NotAdmitted(
            f"the name '{shown(name[:40])}…' is longer than {COMPONENT_MAX_BYTES} bytes; shorten it"
        )
    return name


@lru_cache(maxsize=1024)  # the paths of an object's files are checked by each part of the code that gets them
def relative(path: str) -> str:
    """Return ``path`` if it is relative and leads downward only; otherwise raise NotAdmitted."""
    if path.startswith("/"):
        raise NotAdmitted(f"'{shown(path)}' is absolute; give a path within the object")
    if path.count("/") > DEPTH_MAX:
        raise NotAdmitted(f"'{shown(path[:60])}…' lies more than {DEPTH_MAX} folders deep; flatten it")
    for part in path.split("/"):
        try:
            component(part)
        except NotAdmitted as error:
            raise NotAdmitted(f"path '{shown(path)}': {error}") from None
    return path


def require_apart(files: Iterable[str]) -> None:
    """Check that each of these paths of files has a place of its own. Raises NotAdmitted where one occurs twice, or is
    the folder of another."""
    seen: set[str] = set()
    for path in files:
        if path in seen:
            raise NotAdmitted(f"'{shown(path)}' is given twice; give each path once")
        seen.add(path)
    folders: set[str] = set()
    for path in seen:
        above = path.rpartition("/")[0]
        while above and above not in folders:
            if above in seen:
                raise NotAdmitted(
                    f"'{shown(above)}' is a file, and '{shown(path)}' takes it for a folder; rename one of them"
                )
            folders.add(above)
            above = above.rpartition("/")[0]


def folded(path: str) -> str:
    """Return a path in the form that is equal for paths that differ only in case or in the Unicode form of accents."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def distinguishes_names(folder: Path, first: str, other: str) -> bool:
    """Return whether the folder's file system treats these two names as different (one that ignores case does not).
    Creates temporary files in the folder to find out."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        os.close(os.open(f"{temporary}/{first}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        try:
            os.close(os.open(f"{temporary}/{other}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
    return True


_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""O_NONBLOCK: opening a named pipe does not wait for a writer; the caller refuses it afterwards."""


@contextmanager
def opened_beneath(root: Path, path: str) -> Iterator[BinaryIO]:
    """Open the regular file at ``path`` below ``root`` for reading, without following links.

    Raises NotAdmitted for a link, a special file or a missing file, and OSError for other errors of the system.
    """
    try:
        handle = open_each_part(root, path.split("/"))
    except OSError as error:
        raise _readable_error(path, error) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotAdmitted(f"'{shown(path)}' is no regular file; put a regular file there")
    with os.fdopen(handle, "rb", buffering=0) as file:
        yield file


def _readable_error(path: str, error: OSError) -> Exception:
    """Return NotAdmitted for an error that the user can correct, otherwise the error itself."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return NotAdmitted(f"'{shown(path)}' leads through a symbolic link; put the file itself there")
    if error.errno == errno.ENOENT:
        return NotAdmitted(f"'{shown(path)}' is not there (any more); put it back and retry")
    return error


def open_each_part(root: Path, parts: Iterable[str]) -> int:
    """Open each part of a path from the one above it, without following links, and return a descriptor of the last. A
    path may have more parts than a process may open files, so each is closed when the next one is open. Raises
    OSError."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # the root itself may be a link
    for part in parts:
        above = descriptor
        try:
            descriptor = os.open(part, _READ, dir_fd=above)
        finally:
            os.close(above)
    return descriptor
