"""Bounded files for output: one for each stream of an attempt, and one log for each worker.

Nothing in this module raises on a full disk or because another program has changed the folder: output is dropped with a
note. If the node stopped reading it, every worker that prints would stop."""

import contextlib
import logging
import os
import stat
from collections import deque
from pathlib import Path
from typing import NamedTuple

from spinney.define.job.data import make_below_root

log = logging.getLogger(__name__)

_MODE = 0o600


class Loss(NamedTuple):
    """Output that could not be written."""

    size_bytes: int
    why: str


class Capture:
    """The output of one attempt on one stream. The file is created at the first byte.

    Its first ``head_bytes`` are written at once; the last ``tail_bytes`` of the rest are kept and written by ``close``,
    behind a note of how much was cut."""

    def __init__(self, path: Path, *, head_bytes: int, tail_bytes: int) -> None:
        self._path = path
        self._head_room = head_bytes
        """How many bytes may still be written at once."""
        self._tail_bytes = tail_bytes
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._cut = 0
        """How many bytes between head and tail were dropped."""
        self._lost = 0
        """How many bytes could not be written; ``_loss_reason``: why the last of them."""
        self._loss_reason = ""

    def write(self, data: bytes) -> None:
        """Write what fits into the first ``head_bytes``, and keep of the rest the last ``tail_bytes``. Never raises."""
        head, rest = data[: self._head_room], data[self._head_room :]
        if head:
            self._head_room -= len(head)
            self._append(head)
        if rest:
            self._keep(rest)

    def close(self) -> Loss | None:
        """Write the kept tail behind a note of how much was cut; return what was lost, None when nothing was.
        The loss is also noted in the file if that can be written now. The object is not used after this."""
        if self._cut:
            self._append(f"\n[spinney: {self._cut} bytes of output were cut here]\n".encode())
        if self._tail:
            self._append(b"".join(self._tail))
            self._tail.clear()
        if not self._lost:
            return None
        lost, self._lost = Loss(self._lost, self._loss_reason), 0
        self._append(f"\n[spinney: {lost.size_bytes} bytes of output were lost: {lost.why}]\n".encode())
        # The attempt has a remark on it; on a full disk each attempt would be a line here.
        log.debug("%d bytes of output for %s were lost: %s", lost.size_bytes, self._path, lost.why)
        return lost

    def _keep(self, data: bytes) -> None:
        """Keep data that is beyond the head, and drop from the oldest what exceeds ``tail_bytes``."""
        self._tail.append(data)
        self._tail_size += len(data)
        while (over := self._tail_size - self._tail_bytes) > 0:
            oldest = self._tail.popleft()
            if len(oldest) > over:
                self._tail.appendleft(oldest[over:])
            dropped = min(over, len(oldest))
            self._tail_size -= dropped
            self._cut += dropped

    def _append(self, data: bytes) -> None:
        """Append to the file, and count what could not be written as lost, with the last reason."""
        try:
            written = append(self._path, data)
        except OSError as error:
            written, self._loss_reason = 0, error.strerror or str(error)
        else:
            if written < len(data):
                self._loss_reason = "the disk is full"
        self._lost += len(data) - written


class WorkerLog:
    """The output of a worker outside attempts. It is bounded: at its limit it is renamed to ``….1`` and starts anew."""

    def __init__(self, path: Path, *, limit_bytes: int) -> None:
        self._path, self._limit = path, limit_bytes
        self._lost = 0
        """How many bytes could not be written since the last that were."""

    def write(self, data: bytes) -> None:
        """Append output, or drop it. The node's own log says when that begins, and when it is over. Never raises."""
        data, written, why = data[-self._limit :], 0, "the disk is full"
        try:
            if self._path.exists() and self._path.stat().st_size + len(data) > self._limit:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            written = append(self._path, data)
        except OSError as error:
            why = error.strerror or str(error)
        if written < len(data):
            if not self._lost:
                log.warning("cannot write the worker's log %s: %s; what comes is lost", self._path, why)
            self._lost += len(data) - written
        elif self._lost:
            log.warning("the worker's log %s can be written again; %d bytes are lost", self._path, self._lost)
            self._lost = 0


def append(path: Path, data: bytes) -> int:
    """Append to a file, which is created with its folder when missing; return how many bytes were written.

    It is opened each time, because thousands of attempts may run at once in a ``--concurrent`` worker. Raises OSError;
    it never follows a link in the place of the file or its folder."""
    try:
        fd = _open(path)
    except FileNotFoundError:
        make_below_root(path.parent, 0o700)
        fd = _open(path)
    try:
        written = os.write(fd, data)
        with contextlib.suppress(OSError):  # the returned number says how much was written
            while written < len(data):
                written += os.write(fd, data[written:])
        return written
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    """Open the file to append to it, without following a link. O_NONBLOCK: where somebody has put a pipe in
    its place, this fails instead of waiting for a reader. Raises OSError."""
    if not stat.S_ISDIR(path.parent.lstat().st_mode):
        raise NotADirectoryError(20, f"{path.parent} is no directory")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    return os.open(path, flags, _MODE)
