"""Frames of Python programs that a stage starts: ``import spinney.postmortem; spinney.postmortem.install()``.

The stage names a file in the environment of its program (``VARIABLE``); the program writes the document of
its failure there before it ends. The node takes the file as one of a stranger: the program may write anything
into it.
"""

import json
import os
import sys
import threading
import types
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

VARIABLE = "SPINNEY_POSTMORTEM"
"""The environment variable that names the file for the frames of a program; a stage sets it for its program."""
SECRETS = "SPINNEY_SECRETS"
"""The environment variable that names the file with the secrets of the job, if it has any: a JSON list of the names of
values that are hidden, and of texts that are hidden wherever they occur."""


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
    try:
        names, texts = _secrets()
    except (OSError, ValueError):
        return  # the stage has ended, or the program has changed the file: what must be hidden is not known
    print_exception, print_of_thread = sys.excepthook, threading.excepthook

    def keep(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        _write(Path(path), error, names, texts)
        print_exception(kind, error, trace)

    def keep_of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            _write(Path(path), args.exc_value, names, texts)
        print_of_thread(args)

    sys.excepthook, threading.excepthook = keep, keep_of_thread


def _secrets() -> tuple[Sequence[str], Sequence[str]]:
    """Return the names and texts of the job's secrets. Raises OSError, ValueError."""
    path = os.environ.get(SECRETS)
    if not path:
        return (), ()
    names, texts = json.loads(Path(path).read_bytes())
    return names, texts


def _write(path: Path, error: BaseException, names: Sequence[str], texts: Sequence[str]) -> None:
    """Write the document of an exception without these secrets; nothing where it cannot be made or written."""
    from spinney.postmortem.descriptions import HIDDEN, Bounds
    from spinney.postmortem.frames import capture

    def redact(text: str) -> str:
        for secret in texts:
            text = text.replace(secret, HIDDEN)
        return text

    longest = max(map(len, texts), default=0)
    document = capture(
        error, bounds=Bounds(), redact=redact, secret_names=frozenset(names), longest_secret=longest
    )
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
