"""The rules for names and paths, and opening files without leaving their root.

A path is checked when it is read, from a folder or a manifest. It is checked once more by the kernel when
the file is opened, component by component and without following symbolic links, so that a link that is set
in between has no effect.

A name that cannot be written into a JSON inventory (one that is not UTF-8) is refused by name. All other
characters are allowed: blanks, line breaks, percent signs, quotes, unprintable ones.
"""

import errno
import os
import stat
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PRODUCER, SYSTEM = "producer", "system"
"""The folders of an object: the depositor's files, and the service's own metadata. The names are Merritt's."""
COMPONENT_MAX_BYTES = 255
DEPTH_MAX = 200
"""The maximum depth of folders, since trees are removed by recursion."""


class NotAdmitted(Exception):
    """A name, path or file is refused; the message names it and says what to correct."""


def shown(name: str) -> str:
    """Return ``name`` on one line for people: unprintable characters are escaped."""
    plain = name.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


def component(name: str) -> str:
    """Return ``name`` if it is a valid component of a path; otherwise raise NotAdmitted."""
    if name in ("", ".", ".."):
        raise NotAdmitted(f"{shown(name)!r} is no name of a file; paths go downward only, so mend it")
    if "/" in name or "\0" in name:
        raise NotAdmitted(f"'{shown(name)}' has a '/' or a NUL in it; give a plain name")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise NotAdmitted(
            f"the name '{shown(name)}' is not UTF-8, and no inventory could tell it; "
            f"rename the file and retry"
        ) from None
    if size > COMPONENT_MAX_BYTES:
        raise NotAdmitted(
            f"the name '{shown(name[:40])}…' is longer than {COMPONENT_MAX_BYTES} bytes; shorten it"
        )
    return name


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


def folded(path: str) -> str:
    """Return a path in the form in which case and the encoding of accents do not count."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def kept_apart(folder: Path, first: str, other: str) -> bool:
    """Whether the file system of a folder treats these two names as different; tested with temporary files in it."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        os.close(os.open(f"{place}/{first}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        try:
            os.close(os.open(f"{place}/{other}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
    return True


@contextmanager
def opened_beneath(root: Path, path: str) -> Iterator[BinaryIO]:
    """Open the regular file at ``path`` below ``root`` for reading, without following links.

    Raises NotAdmitted for a link, a special file or a missing one; OSError when the system fails.
    """
    try:
        handle = _descend(root, path.split("/"))
    except OSError as error:
        raise _admission(path, error) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotAdmitted(f"'{shown(path)}' is no regular file; put a regular file there")
    with os.fdopen(handle, "rb", buffering=0) as file:
        yield file


def _admission(path: str, error: OSError) -> Exception:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return NotAdmitted(f"'{shown(path)}' leads through a symbolic link; put the file itself there")
    if error.errno == errno.ENOENT:
        return NotAdmitted(f"'{shown(path)}' is not there (any more); put it back and retry")
    return error


def _descend(root: Path, parts: list[str]) -> int:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            deeper = os.open(
                part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor
            )
            os.close(descriptor)
            descriptor = deeper
        # O_NONBLOCK: a named pipe without a writer must not hold the stage up before it is refused.
        return os.open(
            parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor
        )
    finally:
        os.close(descriptor)
