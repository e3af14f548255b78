"""The folder ``rejected`` of an inbox: drops that are not taken, each with a text beside it that says why."""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from spinney.folders.dropped_files import opened
from spinney.model.settings.inboxes import Arrival

REJECTED = "rejected"
_WHY = ".why.txt"
_NAME_BYTES = 200
"""How much of a name is kept, which has to leave room for more."""


def move_to_rejected(inbox: Path, source: Path, arrival: Arrival) -> None:
    """Move a drop from ``source`` into the folder ``rejected`` of its inbox, under a name that replaces
    nothing, with a text beside it that says why.

    The text comes first, so that no drop lies there without its reason; after a crash in between, the next
    call finds the text and uses its name again. No link is followed in the place of ``rejected``. Raises
    OSError."""
    rejected, draft = inbox / REJECTED, f".{arrival.id}.txt"
    text = f"{arrival.name!r} of {arrival.owner} was rejected: {arrival.reason}\n".encode()
    with suppress(FileExistsError):
        rejected.mkdir()
    try:
        directory = os.open(rejected, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError as error:
        raise NotADirectoryError(errno.ENOTDIR, f"{rejected} is no folder; remove it") from error
    try:
        name = next(name for name in _names_in_rejected(arrival) if _is_free(name, text, directory))
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=directory)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o666, dir_fd=directory), "wb") as file:
            file.write(text)
        os.rename(draft, name + _WHY, src_dir_fd=directory, dst_dir_fd=directory)
        os.rename(source, name, dst_dir_fd=directory)
    finally:
        os.close(directory)


def _names_in_rejected(arrival: Arrival) -> Iterator[str]:
    """Yield the names that a drop may get in ``rejected``, the best first."""
    name = arrival.name.encode()[:_NAME_BYTES].decode(errors="ignore")
    yield name
    yield f"{arrival.id}-{name}"
    yield from (f"{arrival.id}-{number}-{name}" for number in count(2))


def _is_free(name: str, why: bytes, directory: int) -> bool:
    """Return whether neither a drop nor a reason has this name in ``rejected``. The same reason, without its drop, is
    of a node that died before it moved the drop."""
    if _lies_in(directory, name):
        return False
    if not _lies_in(directory, name + _WHY):
        return True
    try:
        with opened(name + _WHY, directory) as fd:
            return os.read(fd, len(why) + 1) == why
    except OSError:
        return False


def _lies_in(directory: int, name: str) -> bool:
    """Return whether the directory has an entry of this name, a link included."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
