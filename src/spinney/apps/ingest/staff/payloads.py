"""A payload that is handed in: opened with care, and copied durably while it is checked."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from spinney.apps.ingest import copying
from spinney.apps.ingest.digests import Digest, Sums
from spinney.apps.ingest.paths import shown
from spinney.model.errors import Refused, UsageError


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, to be read. Raises UsageError for anything else."""
    try:
        # O_NONBLOCK: a named pipe without a writer must not hold the command up before it is refused.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"cannot read {shown(str(path))}: {error.strerror}; name a file that can be read") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UsageError(f"{shown(str(path))} is no regular file; name one, or give '-' to read from stdin")
    with os.fdopen(handle, "rb", buffering=0) as file:
        yield file


def copy(source: BinaryIO, target: Path, given: Digest | None) -> int:
    """Copy all that ``source`` has to ``target``, which must not be there; returns its size in bytes. On disk when this
    returns. Raises Refused when it has not the digest that was given, or changed while it was read."""
    sums = Sums([given.algorithm] if given else [])
    size = copying.copy(source, target, sums)
    name = shown(target.name)
    found = os.fstat(source.fileno())
    if stat.S_ISREG(found.st_mode) and found.st_size != size:
        raise Refused(
            f"'{name}' has {found.st_size} bytes, and {size} were read: it changes; hand it in when it is whole"
        )
    if given is not None and sums.values()[given.algorithm] != given.value:
        raise Refused(
            f"'{name}' has the {given.algorithm} {sums.values()[given.algorithm]}, not {given.value} as was given; "
            f"hand in the file that is meant"
        )
    return size
