"""What lies in the folder of an inbox: what it is, whose, and its bytes.

Whoever may drop files may also swap them. No link is followed, and nothing but files and folders is opened.
"""

import errno
import fcntl
import hashlib
import os
import pwd
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from spinney.files.paths import DEPTH_MAX, shown
from spinney.model.settings.inboxes import Drop, Kind


def look_at(path: Path, name: str) -> Drop:
    """Return what lies at a path, without reading it; it is to be called ``name``. What cannot be taken has a fault.
    Raises FileNotFoundError when it is gone."""
    status = path.lstat()
    kind, fault = _kind(status.st_mode), _fault_of_name(name)
    size, identity = status.st_size, f"{status.st_size}:{status.st_mtime_ns}"
    if kind is Kind.OTHER:
        fault = fault or f"it is {_other(status.st_mode)}"
    elif kind is Kind.FOLDER:
        digest, size = hashlib.sha256(), 0
        try:
            for below, file in _files(path):
                size += file.st_size
                digest.update(f"{file.st_size}:{file.st_mtime_ns}:{below}\0".encode())
        except _Unfit as error:
            fault = fault or str(error)
        except PermissionError:
            fault = fault or "it cannot be read: its permissions do not let the node read all of it"
        identity = digest.hexdigest()
    return Drop(
        name=shown(name),
        kind=kind,
        size=size,
        identity=identity,
        owner=owner(status.st_uid),
        dropped_us=status.st_ctime_ns // 1000,
        fault=fault,
    )


@contextmanager
def opened(name: str | Path, directory: int | None = None) -> Iterator[int]:
    """Open a plain file for reading. Raises FileNotFoundError for anything else, and BlockingIOError while a process of
    this host has it open for writing, as far as the system tells."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=directory)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileNotFoundError(errno.ENOENT, f"{name} is no file any more")
        _require_no_writer(fd)
        yield fd
    finally:
        os.close(fd)


def _require_no_writer(fd: int) -> None:
    """Raise BlockingIOError while somebody has the file open for writing: then the kernel refuses a lease for reading.
    Only the file's owner and root get a lease, and not on every file system; for others the time that a file rests has
    to suffice."""
    try:
        # If somebody opens it for writing while the lease lasts, the signal is one that does nothing.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        raise
    except OSError:
        return
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def owner(uid: int) -> str:
    """Return the name of a user, as the command line names submitters; for a user without a name, the number."""
    try:
        return _user(uid)
    except KeyError:
        return f"uid {uid}"


@cache
def _user(uid: int) -> str:
    """Return the name of a user; cached, because reading the list of users takes longer than everything else that is
    done for a drop."""
    return pwd.getpwuid(uid).pw_name


def raise_error(error: OSError) -> None:
    """Raise what ``os.fwalk`` could not read, which it would pass over."""
    raise error


class _Unfit(Exception):
    """A dropped folder has something in it that is not taken."""


_OTHERS = {
    stat.S_IFLNK: "a link",
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


def _kind(mode: int) -> Kind:
    """Return the kind of entry that a mode of ``stat`` describes; links, pipes and the like are ``OTHER``."""
    return Kind.FILE if stat.S_ISREG(mode) else Kind.FOLDER if stat.S_ISDIR(mode) else Kind.OTHER


def _other(mode: int) -> str:
    """Return in words the kind of entry that a mode of ``stat`` describes, which is neither a file nor a folder."""
    return f"{_OTHERS.get(stat.S_IFMT(mode), 'no file')}, and no file or folder"


def _fault_of_name(name: str) -> str | None:
    """Return why nothing of this name is taken; None: it may be."""
    if not name.isprintable():
        return "its name has characters that cannot be printed; rename it"
    if name.startswith("-"):
        return "its name begins with '-', which programs take for an option; rename it"
    return None


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and status of the files of a dropped folder in an order that stays. Raises _Unfit, PermissionError,
    FileNotFoundError."""
    for top, folders, names, directory in os.fwalk(folder, onerror=raise_error, follow_symlinks=False):
        if os.path.relpath(top, folder).count("/") >= DEPTH_MAX:  # fwalk calls itself once a level
            raise _Unfit(f"files in it lie more than {DEPTH_MAX} folders deep; flatten it")
        folders.sort()
        for name in sorted((*folders, *names)):
            below = os.path.relpath(Path(top, name), folder)
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            kind = _kind(status.st_mode)
            if not name.isprintable():
                raise _Unfit(f"{shown(below)!r} in it has a name that cannot be printed; rename it")
            if kind is Kind.OTHER:
                raise _Unfit(f"{below!r} in it is {_other(status.st_mode)}")
            if kind is Kind.FILE:
                yield below, status
