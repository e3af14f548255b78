"""Marks in a worker's output: where one attempt's ends and the next one's begins.

A worker's stdout and stderr are pipes that its descendants write to as well, past Python if they
like. When an attempt has ended (all that was buffered is flushed, nobody below is left to write)
and has written anything to either pipe, the worker writes a mark into both: what stands before it
belongs to that attempt. An attempt that wrote nothing costs one look and sets none.

*Has it written anything?* What went into a pipe since it was made is what the pump has taken out
(``pumped``) and what is still in it (FIONREAD). The pump raises ``reading`` before it reads, and
lowers it after it has counted. So with FIONREAD looked at first, then ``reading``, then ``pumped``,
the sum is never too small while ``reading`` is 0; when it is what it was at the last mark, nothing
was written. In doubt a mark is set: one with nothing before it does no harm.

*One look at both.* Most attempts write nothing, and find both pipes empty. That an epoll tells at
once, in a third of the time of two FIONREADs, which are asked only when it says otherwise. It watches
the reading ends, so the supervisor makes it and the worker inherits it (``pipe_watch``), not the ends:
a worker that held those could never find out that nobody reads any more.
"""

import fcntl
import os
import select
import sys
import termios
from collections.abc import Callable, Iterable
from typing import Any

from spinney.node.workers.shared_page import CELL_PUMP, SharedPage

STREAMS = ("stdout", "stderr")

_READING_OUT, _PUMPED_OUT, _READING_ERR, _PUMPED_ERR = range(CELL_PUMP, CELL_PUMP + 4)
_FENCE_BYTES = 8
_INT_BYTES = 4
_YIELDS = 100
"""So often the processor is left to the pump before what it has not counted is taken for not written."""


def boundary_prefix(token: bytes) -> bytes:
    """How each mark of the worker with this token begins."""
    return b"\0" + token


def boundary(token: bytes, fence: int) -> bytes:
    """What stands behind the output of an attempt; fence 0: behind what belongs to none.

    Shorter than PIPE_BUF, so that no other writer's bytes get into it.
    """
    return boundary_prefix(token) + fence.to_bytes(_FENCE_BYTES, "big")


def split(data: bytes, start: bytes) -> tuple[list[tuple[int, bytes]], bytes]:
    """Divide at the marks: (fence, what stood before its mark) for each, and the rest behind the last."""
    parts = []
    at = 0
    while (found := data.find(start, at)) >= 0:
        behind = found + len(start) + _FENCE_BYTES
        if behind > len(data):
            break
        parts.append((int.from_bytes(data[found + len(start) : behind], "big"), data[at:found]))
        at = behind
    return parts, data[at:]


def pipe_watch(read_ends: Iterable[int]) -> select.epoll:
    """What a ``BoundaryWriter`` looks through: it shows whether anything is in one of the pipes. The
    supervisor closes its own once the worker has it."""
    made = select.epoll()
    for fd in read_ends:
        made.register(fd, select.EPOLLIN)
    return made


class BoundaryWriter:
    """The worker's side: watches its own two pipes."""

    def __init__(self, page: SharedPage, token: bytes, pipe_watch_fd: int | None = None) -> None:
        """``pipe_watch_fd``: the descriptor of ``pipe_watch``, from now on its own; without it both pipes are
        always asked."""
        self._cells, self._token = page.cells, token
        self._look: Callable[[int, int], Any] = (
            _unseen if pipe_watch_fd is None else select.epoll.fromfd(pipe_watch_fd).poll
        )
        # Own copies: an attempt may close 1 and 2 or point them elsewhere.
        self._fds = (os.dup(1), os.dup(2))
        self._most = 0
        self._base: list[int | None] = [0, 0]
        """What had gone into each pipe after the last mark; None: it could not be told."""

    def wrote(self) -> bool:
        """Whether anything may have been written to either pipe since the last mark."""
        cells, base = self._cells, self._base
        in_out = in_err = 0
        # Asked after every attempt, so written out for both.
        if self._look(0, 1):
            in_out, in_err = map(_waiting, self._fds)
        return (
            cells[_READING_OUT] != 0
            or cells[_PUMPED_OUT] + in_out != base[0]
            or cells[_READING_ERR] != 0
            or cells[_PUMPED_ERR] + in_err != base[1]
        )

    def gone(self) -> int:
        """Return how many bytes have gone into the pipes so far, as far as can be seen from here."""
        for _ in range(_YIELDS):
            if not (self._cells[_READING_OUT] or self._cells[_READING_ERR]):
                break
            os.sched_yield()  # the pump has taken bytes out and is about to count them
        seen = sum(
            self._cells[CELL_PUMP + 2 * stream + 1] + _waiting(fd) for stream, fd in enumerate(self._fds)
        )
        # Less is seen where the pump has not counted them even then: its process may stand still.
        self._most = max(self._most, seen)
        return self._most

    def set(self, fence: int) -> None:
        """Set a mark into both pipes. Waits while a pipe is full."""
        text = boundary(self._token, fence)
        for stream, fd in enumerate(self._fds):
            _write(fd, text)
            self._base[stream] = self._exactly(stream, fd)

    def _exactly(self, stream: int, fd: int) -> int | None:
        """What has gone into the pipe; None when the pump moved while it was looked at."""
        pumped = self._cells[CELL_PUMP + 2 * stream + 1]
        waiting = _waiting(fd)
        moved = self._cells[CELL_PUMP + 2 * stream] or self._cells[CELL_PUMP + 2 * stream + 1] != pumped
        return None if moved else pumped + waiting


def _waiting(fd: int) -> int:
    """Bytes in the pipe; its writing end may ask too."""
    # Room of its own: several threads may ask. Handing over ``bytes`` would take twice as long.
    room = bytearray(_INT_BYTES)
    fcntl.ioctl(fd, termios.FIONREAD, room)
    return int.from_bytes(room, sys.byteorder)


def _unseen(timeout_s: int, most: int) -> bool:
    """For a ``BoundaryWriter`` without sight: there may be something."""
    return True


def _write(fd: int, text: bytes) -> None:
    """Write it in one piece, although somebody below may have made the shared pipe non-blocking."""
    while True:
        try:
            os.write(fd, text)
        except BlockingIOError:
            select.select([], [fd], [])
        else:
            return
