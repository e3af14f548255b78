"""The file of a SQLite store: where it may lie, and what an error of the driver says about it.

A store on a network file system is refused, because SQLite relies on locks of the file and on memory that all
its processes share (https://sqlite.org/wal.html, https://sqlite.org/howtocorrupt.html): two hosts would
damage it, without any error at first."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from spinney.files.disk_space import is_read_only
from spinney.model.errors import StoreReplaced, StoreUnavailable, StoreUnusable
from spinney.model.values.paths import beside
from spinney.store.sql.connection.lock_wait import locked
from spinney.store.sql.connection.schema_state import incomplete

READ_WRITE = "mode=rw"
"""The ``opening_mode`` of a store that can be written."""
INDEX_IN_MEMORY = "mode=ro&vfs=unix-none"
"""The ``opening_mode`` of a store with a log whose index is missing and cannot be written."""
_NO_ROOM_BYTES = 32 * 2**10
"""Free space below which even the index of the write-ahead log cannot be created, without which nothing can be read."""
_FILES_OF_STORE = 4
"""How many files SQLite opens for a store: the database, its write-ahead log, the log's index, and a temporary one."""
_NETWORK = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "ncpfs",
    "afs",
    "coda",
    "9p",
    "ceph",
    "lustre",
    "glusterfs",
    "beegfs",
    "orangefs",
    "davfs",
    "vboxsf",
    # Mounted in user space; the kernel gives these names where the program says what it is.
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.ceph",
    "fuse.ceph-fuse",
    "fuse.nfs",
    "fuse.smbnetfs",
    "fuse.s3fs",
    "fuse.gcsfuse",
    "fuse.rclone",
    "fuse.juicefs",
    "fuse.mount-s3",
    "fuse.davfs",
    "fuse.curlftpfs",
    "fuse.vmhgfs-fuse",
}
"""File systems over a network, by the names that the kernel gives them."""


def refuse_network(path: Path) -> None:
    """Raise StoreUnusable when the file is, or would be, on a network file system, whose locks cannot be
    trusted. The mount with the longest path that contains the file decides, of several at one place the
    last."""
    target = os.path.realpath(path) + os.sep  # a link may lead there
    best, kind = "", ""
    for place, place_kind in mounts():
        inside = target.startswith(place.rstrip(os.sep) + os.sep)
        if inside and len(place) >= len(best):
            best, kind = place, place_kind
    if kind.lower() in _NETWORK:
        raise StoreUnusable(
            f"{path} lies on a network file system ({kind} at {best}), where SQLite loses data; "
            f"put the store on a local disk"
        )


def mounts() -> list[tuple[str, str]]:
    """Return the mounted file systems in the order of their mounting: the folder, and the kernel's name of the kind."""
    lines = Path("/proc/self/mounts").read_bytes().splitlines()
    return [(_unescaped(place), kind.decode()) for _, place, kind, *_ in map(bytes.split, lines)]


def _unescaped(place: bytes) -> str:
    """Undo the kernel's ``\\040`` for a blank, and the like."""
    if b"\\" in place:
        place = re.sub(rb"\\([0-7]{3})", lambda digits: bytes([int(digits[1], 8)]), place)
    return os.fsdecode(place)


def require_same_file(path: Path, opened: os.stat_result | None) -> None:
    """Raise StoreReplaced unless the path still leads to the file that was opened: a connection continues on that file
    even when it was replaced or removed, so that no other process can find what it writes, and it reads what no other
    sees."""
    try:
        present = os.stat(path)  # noqa: PTH116 - quicker than Path.stat, in each transaction
    except FileNotFoundError:
        present = None
    if opened is None or present is None or not os.path.samestat(opened, present):
        raise StoreReplaced(
            f"the store's file {path} was replaced or removed while this process had it open; start the node, server "
            f"or program again"
        )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise the driver's errors as errors of Spinney, with a sentence that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise explanation(path, error) from error


def explanation(path: Path, error: sqlite3.Error) -> Exception:
    """Return the error that a caller gets for one of the driver: StoreUnavailable (a full disk, one that does not
    answer), StoreUnusable (no database, no right to write), StoreLocked, or the error itself when it is a fault of the
    statement."""
    text = str(error)
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_SHORT_READ:
        return StoreUnavailable(
            f"the log of the store, {path}-wal, was removed or shortened while a process has the store open; end all "
            f"nodes and servers by SIGTERM, so that they write what they still have of it into {path}, then go on"
        )
    if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return error
    if "full" in text or ("disk I/O" in text and _no_room(path)):
        return StoreUnavailable(
            f"the disk that holds {path} is full; make room, then go on: nothing was half-written"
        )
    if "not a database" in text or "malformed" in text or "encrypted" in text:
        return StoreUnusable(
            f"{path} is no database or is damaged; see in the kernel's log whether its disk has failed, and if not, "
            "restore it from a backup or name another store"
        )
    if "readonly" in text or "unable to open" in text:
        return unwritable(path)
    if is_locked(error):
        return locked(path)
    if "no such table" in text or "no such column" in text or "has no column" in text:
        return incomplete(str(path), text)
    if "disk I/O" in text:
        return StoreUnavailable(
            f"the disk that holds {path} does not answer ({text}); check the disk, its quotas and limits of file "
            f"sizes, then go on"
        )
    return error


def unwritable(path: Path) -> StoreUnusable:
    """Return the error for a file, or its folder, that this process cannot open, or not for writing: it may not, or it
    has as many files open as it may."""
    try:
        _try_descriptors(_FILES_OF_STORE)
    except OSError as error:
        return StoreUnavailable(
            f"cannot open the store {path}: {error.strerror}; raise the limit of open files (ulimit -n, or "
            f"LimitNOFILE= of systemd)"
        )
    if not os.access(path, os.R_OK):
        return StoreUnusable(f"cannot read the store {path}; check the owner and rights of it and its folder")
    if is_read_only(path.parent):
        return StoreUnusable(
            f"cannot write to the store {path}: its file system is read-only; see in the kernel's log why, and mount "
            "it again for writing"
        )
    return StoreUnusable(
        f"cannot write to the store {path}, which SQLite has to do even to read it; check the owner and rights of it "
        f"and its folder, and its disk, or read a backup of it"
    )


def opening_mode(path: Path) -> str:
    """Return the parameters of the URI by which SQLite opens a store.

    On a read-only file system SQLite cannot make the files of the log. Where there is a log, left by a process that
    died or used by one that writes elsewhere, SQLite reads it; where there is none, nothing is missing from the file,
    which is opened as one that nobody changes. Where there is a log without its index, as in a copy of file and log,
    nobody writes either. SQLite then makes the index in memory, which it does only for a connection that has the file
    locked for itself alone. A file that is opened for reading cannot be locked so; with the VFS ``unix-none`` nothing
    is locked.
    """
    if not is_read_only(path.parent):
        return READ_WRITE
    if not beside(path, "-wal").exists():
        return "mode=ro&immutable=1"
    return "mode=ro" if beside(path, "-shm").exists() else INDEX_IN_MEMORY


def _try_descriptors(number: int) -> None:
    """Raise OSError if this process cannot have so many more files open. SQLite does not tell it from a missing right,
    and has closed its files again when it fails."""
    with ExitStack() as opened:
        for _ in range(number):
            opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))


def is_locked(error: BaseException | None) -> bool:
    """Return whether an error says that another connection keeps the database locked."""
    return isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))


def _no_room(path: Path) -> bool:
    """Return whether the disk is full, which SQLite reports as an I/O error where it cannot create the index of its
    log."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _NO_ROOM_BYTES


def quoted(path: Path) -> str:
    """Return the absolute path of a database for the URI by which SQLite opens it."""
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
