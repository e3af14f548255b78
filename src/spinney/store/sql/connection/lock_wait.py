"""The wait for a database file that another program has locked: which program it is, and how long to wait for it.

Processes of Spinney take turns (``write_queue``), and never make each other wait for long. But a ``sqlite3`` shell in
the middle of a transaction may keep the file locked for hours.

The waiting process stays outside of the write queue and tries again every 20 ms, so that it does not keep
others from trying. ``/proc/locks`` tells which process has locked the bytes that SQLite locks
(https://sqlite.org/lockingv3.html); where it cannot be read, the message says "another program".
"""

import time
from collections.abc import Callable
from pathlib import Path

from spinney.model.errors import StoreLocked
from spinney.model.values.paths import beside
from spinney.store.sql.connection.write_queue import BEATS

PATIENCE_S = 30.0
"""How long a command waits."""
TELL_AFTER_S = 1.0
"""After this time a message says what is waited for."""
_STEP_S = 0.02
_WAL_WRITE_BYTE = 120
"""The byte of the ``-shm`` file beside the database that a writer locks (https://sqlite.org/walformat.html)."""
_FIRST_LOCK_BYTE = 0x40000000
"""The first byte of the database file that a process locks which excludes readers, too."""


class LockWait:
    """One wait, in steps: each sleeps for a moment, one reports what is waited for, and the last raises StoreLocked."""

    def __init__(
        self, path: Path, patience_s: float, tell_after_s: float, tell: Callable[[str], None]
    ) -> None:
        self._path, self._patience_s, self._tell = path, patience_s, tell
        began_s = time.monotonic()
        self._end_s, self._tell_s = began_s + patience_s, began_s + tell_after_s
        self._was_reported = False

    def step(self) -> None:
        """Sleep for a moment, and report once, after ``tell_after_s``, what is waited for. Raises StoreLocked
        when the wait has been long enough; nothing was changed then."""
        now_s = time.monotonic()
        if now_s >= self._end_s:
            raise locked(self._path, f" and has been for {self._patience_s:g} s")
        if not self._was_reported and now_s >= self._tell_s:
            self._was_reported = True
            self._tell(
                f"waiting for {self._path}, which is locked by {holder(self._path)}, "
                f"for up to {self._patience_s:g} s in all; Ctrl-C gives up"
            )
        time.sleep(_STEP_S)


def locked(path: Path, since: str = "") -> StoreLocked:
    """Return the error, which names the program. ``since``: how long the file has been locked, where that is known."""
    return StoreLocked(
        f"{path} is locked by {holder(path)}{since}, and nothing was changed; end its transaction there, or close that "
        f"program, then do it again"
    )


def holder(path: Path) -> str:
    """Return the program that has the database locked, or the node whose heartbeat comes first (``write_queue``). A
    program in another container cannot be seen."""
    node = ""
    try:
        files = {
            _inode(path): range(_FIRST_LOCK_BYTE, _FIRST_LOCK_BYTE + 512),
            _inode(path.with_name(f"{path.name}-shm")): range(_WAL_WRITE_BYTE, _WAL_WRITE_BYTE + 1),
        }
        beats = _inode(beside(path, ".run") / BEATS)
        for line in Path("/proc/locks").read_text().splitlines():
            # 1: POSIX  ADVISORY  WRITE 4711 08:01:131 120 120
            _, kind, _, mode, pid, file, first, last = line.split()[:8]
            inode = file.rpartition(":")[2]
            own = files.get(inode)
            if kind == "FLOCK" and mode == "READ" and inode == beats:
                node = f"the node of {_process(pid)}, which is to beat first,"
            if kind != "POSIX" or mode != "WRITE" or own is None or int(pid) <= 0:
                continue
            if int(first) < own.stop and (last == "EOF" or int(last) >= own.start):
                return _process(pid)
    except (OSError, ValueError):
        pass  # a file is gone, or this kernel lists its locks in another format
    return node or "another program"


def _process(pid: str) -> str:
    return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})"


def _inode(path: Path) -> str:
    return str(path.stat().st_ino) if path.exists() else ""
