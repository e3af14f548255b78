"""Frames of Python programs that a stage starts: ``import spinney.postmortem; spinney.postmortem.install()``.

The stage names a file in the environment of its program (``VARIABLE``); the program writes the document of
its failure there before it ends. The node takes the file as one of a stranger: the program may write anything
into it.
"""

import os
import sys
import threading
import types
from contextlib import suppress
from pathlib import Path

VARIABLE = "SPINNEY_POSTMORTEM"
"""The environment variable that names the file for the frames of a program; a stage sets it for its program."""


def install() -> None:
    """Keep the frames of an exception by which this program ends, with the job whose stage started the
    program.

    The exception is printed as without this. Where ``SPINNEY_POSTMORTEM`` is not set, as outside of stages,
    it does nothing. Exceptions of threads count, too; the last one is kept. Hooks that are set later replace
    these.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return
    print_exception, print_of_thread = sys.excepthook, threading.excepthook

    def keep(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        _write(Path(path), error)
        print_exception(kind, error, trace)

    def keep_of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            _write(Path(path), args.exc_value)
        print_of_thread(args)

    sys.excepthook, threading.excepthook = keep, keep_of_thread


def _write(path: Path, error: BaseException) -> None:
    """Write the document of an exception; nothing where it cannot be made or written."""
    from spinney.postmortem.descriptions import Bounds
    from spinney.postmortem.frames import capture

    document = capture(error, bounds=Bounds())
    if document is not None:
        with suppress(OSError):  # the failure itself must be reported, whatever the disk does
            write_document(path, document)


def write_document(path: Path, document: bytes) -> None:
    """Write a document whole or not at all, readable by its owner only, in place of one that is there.

    The directory of the document is created, but none above it. Raises OSError, also where there is none
    above it.
    """
    path.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(document)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
