"""Marks in a worker's output, where the output of one attempt ends and that of the next begins.

A worker's stdout and stderr are pipes that its descendants write to as well, past Python if they
like. When an attempt has ended (all buffers are flushed, no descendant is left to write) and has written anything to
either pipe, the worker writes a mark into both: the output before it belongs to that attempt. An attempt that wrote
nothing costs one check and sets no mark.

*Has it written anything?* The bytes written into a pipe since its creation are those that the pump has read
(``pumped``) and those that are still in it (FIONREAD). The pump sets ``reading`` before it reads, and clears it after
it has counted. So when FIONREAD is read first, then ``reading``, then ``pumped``, the sum is never too small while
``reading`` is 0; when it is the same as at the last mark, nothing was written. In doubt a mark is set: one with nothing
before it does no harm.

*One check for both.* Most attempts write nothing, and find both pipes empty. An epoll tells that in a third of the time
of two FIONREADs, which are only needed otherwise. It watches the read ends, so the supervisor makes it and the worker
inherits it (``pipe_watch``), not the ends: a worker that had those open could never detect that the reader is gone."""

import fcntl
import os
import select
import sys
import termios
import time
from collections.abc import Iterable

from spinney.node.workers.shared_page import CELL_PUMP, SharedPage

STREAMS = ("stdout", "stderr")

_READING_OUT, _PUMPED_OUT, _READING_ERR, _PUMPED_ERR = range(CELL_PUMP, CELL_PUMP + 4)
_FENCE_BYTES = 8
_INT_BYTES = 4
_LOOKS = 50
"""How often the worker looks again while the pump reads, before bytes that it has not counted are ignored."""
_LOOK_AGAIN_S = 0.001


def boundary_prefix(token: bytes) -> bytes:
    """Return the prefix of each mark of the worker with this token."""
    return b"\0" + token


def boundary(token: bytes, fence: int) -> bytes:
    """Return the mark after the output of an attempt; fence 0: after output that belongs to none.

    It is shorter than PIPE_BUF, so that no other writer's bytes get into it.
    """
    return boundary_prefix(token) + fence.to_bytes(_FENCE_BYTES, "big")


def split(data: bytes, start: bytes) -> tuple[list[tuple[int, bytes]], bytes]:
    """Split at the marks: return (fence, output before its mark) for each, and the rest after the last."""
    parts = []
    at = 0
    while (mark := data.find(start, at)) >= 0:
        behind = mark + len(start) + _FENCE_BYTES
        if behind > len(data):
            break
        parts.append((int.from_bytes(data[mark + len(start) : behind], "big"), data[at:mark]))
        at = behind
    return parts, data[at:]


def pipe_watch(read_ends: Iterable[int]) -> select.epoll:
    """Return the epoll for a ``BoundaryWriter``, which shows whether anything is in one of the pipes. The supervisor
    closes its own when the worker has it."""
    watch = select.epoll()
    for fd in read_ends:
        watch.register(fd, select.EPOLLIN)
    return watch


class BoundaryWriter:
    """The worker's side: watches its own two pipes."""

    def __init__(self, page: SharedPage, token: bytes, pipe_watch_fd: int) -> None:
        """``pipe_watch_fd``: the descriptor of ``pipe_watch``, which it owns from now on."""
        self._cells, self._token = page.cells, token
        self._look = select.epoll.fromfd(pipe_watch_fd).poll
        # Copies, because an attempt may close or redirect 1 and 2.
        self._fds = (os.dup(1), os.dup(2))
        self._most = 0
        self._base: list[int | None] = [0, 0]
        """The bytes written into each pipe up to the last mark; None: unknown."""

    def wrote(self) -> bool:
        """Return whether anything may have been written to either pipe since the last mark."""
        cells, base = self._cells, self._base
        in_out = in_err = 0
        # This runs after every attempt, so it is written out for both.
        if self._look(0, 1):
            in_out, in_err = map(_waiting, self._fds)
        return (
            cells[_READING_OUT] != 0
            or cells[_PUMPED_OUT] + in_out != base[0]
            or cells[_READING_ERR] != 0
            or cells[_PUMPED_ERR] + in_err != base[1]
        )

    def written_bytes(self) -> int:
        """Return how many bytes were written into the pipes so far, as far as this process can see."""
        for _ in range(_LOOKS):
            written = [self._exactly(stream, fd) for stream, fd in enumerate(self._fds)]
            if None not in written:
                self._most = max(self._most, sum(filter(None, written)))
                break
            # The pump has read bytes and is about to count them; on a busy machine it may have to wait for its turn.
            time.sleep(_LOOK_AGAIN_S)
        return self._most

    def set(self, fence: int) -> None:
        """Write a mark into both pipes. It waits while a pipe is full."""
        text = boundary(self._token, fence)
        for stream, fd in enumerate(self._fds):
            _write(fd, text)
            self._base[stream] = self._exactly(stream, fd)

    def _exactly(self, stream: int, fd: int) -> int | None:
        """Return the bytes written into the pipe; None when the pump was reading meanwhile."""
        pumped = self._cells[CELL_PUMP + 2 * stream + 1]
        waiting = _waiting(fd)
        moved = self._cells[CELL_PUMP + 2 * stream] or self._cells[CELL_PUMP + 2 * stream + 1] != pumped
        return None if moved else pumped + waiting


def _waiting(fd: int) -> int:
    """Return the number of bytes in the pipe, also for its write end."""
    # A buffer of its own, because several threads may call this. Passing ``bytes`` would take twice as long.
    room = bytearray(_INT_BYTES)
    fcntl.ioctl(fd, termios.FIONREAD, room)
    return int.from_bytes(room, sys.byteorder)


def _write(fd: int, text: bytes) -> None:
    """Write a mark in one piece, although a descendant may have made the shared pipe non-blocking."""
    while True:
        try:
            os.write(fd, text)
        except BlockingIOError:
            select.select([], [fd], [])
        else:
            return
