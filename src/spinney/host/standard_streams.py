"""The descriptors 0 to 2 of a process, which a shell may hand over closed (``spinney list >&-``)."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def escape_unencodable() -> None:
    """Let stdout write characters that its encoding lacks (``LC_ALL=POSIX``, ``PYTHONIOENCODING=latin-1``) as escapes,
    as stderr does, instead of raising UnicodeEncodeError in the middle of a table."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Redirect standard output to nowhere: its reader has gone, so that the flush at exit would fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


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
