"""The descriptors 0 to 2 of a process, which a shell may hand over closed (``spinney list >&-``), and whose reader may
leave (``spinney list | head``)."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class _TolerantFile(io.FileIO):
    """A standard stream to which a program may write when its reader has left: the text goes nowhere, and the program
    does the rest of its work, as if it wrote into a file."""

    def write(self, text: "Any") -> int:
        """Write ``text``, or drop it and all that follows if the pipe or the connection has no reader any more."""
        try:
            return super().write(text)
        except (BrokenPipeError, ConnectionResetError):
            drop(self.fileno())
            return memoryview(text).nbytes


def install_tolerant() -> None:
    """Let writing to stdout and stderr raise no error for a reader that has closed the pipe, and no UnicodeEncodeError
    for a character that their encoding lacks (``LC_ALL=POSIX``, ``PYTHONIOENCODING=latin-1``): it is escaped."""
    for name, mode in _STREAMS[1:]:
        old = getattr(sys, name)
        old.flush()
        file = _TolerantFile(old.fileno(), mode, closefd=False)
        new = io.TextIOWrapper(
            file if old.write_through else io.BufferedWriter(file),
            encoding=old.encoding,
            errors="backslashreplace",
            line_buffering=old.line_buffering,
            write_through=old.write_through,
        )
        setattr(sys, name, new)


_dropped = set[int]()
"""The descriptors whose readers have left."""


def drop(fd: int) -> None:
    """Redirect a standard stream to nowhere."""
    _dropped.add(fd)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, fd)
    os.close(nowhere)


def is_read() -> bool:
    """Return whether all that was written to standard output had a reader. This is cheap enough for each line of a long
    list."""
    return 1 not in _dropped


def has_reader() -> bool:
    """Return whether somebody may still read what is written to standard output; a command that does nothing else asks
    this before it goes on. Nothing need be written for that."""
    import select

    if not is_read():
        return False
    poll = select.poll()
    poll.register(1, 0)
    return not poll.poll(0)


def ensure_open() -> None:
    """Open /dev/null for each standard stream that is closed.

    Otherwise the next file that the process opens gets its number: printed text would go into that file, and a child
    process would use it as its standard input or output. Must be called before the process opens anything."""
    for fd, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is this one, because those before it are open.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, closefd=False))  # noqa: SIM115 - stays open with the process


@contextmanager
def reopened() -> Iterator[None]:
    """Reopen, at the end of the block, the standard streams that code within it has closed, for the reason that
    ``ensure_open`` gives. Streams that it has redirected stay so."""
    copies = [os.dup(fd) for fd in range(len(_STREAMS))]
    try:
        yield
    finally:
        for fd, copy in enumerate(copies):
            try:
                os.fstat(fd)
            except OSError:
                os.dup2(copy, fd)
            os.close(copy)
