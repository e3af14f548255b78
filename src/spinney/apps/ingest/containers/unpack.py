"""Unpacking one container, member by member."""

import os
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from spinney.apps.ingest.containers import formats, tars, zips
from spinney.apps.ingest.containers.formats import Kind
from spinney.apps.ingest.containers.limits import Limits, Meter
from spinney.apps.ingest.containers.member_names import Tree
from spinney.apps.ingest.containers.members import Entry
from spinney.apps.ingest.containers.safe_folder import Beneath
from spinney.apps.ingest.files.paths import NotAdmitted, shown

CHUNK_BYTES = 1 << 20

# What the libraries raise for damaged input. ValueError and RecursionError come from numbers and
# chains of headers that they do not expect.
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    ValueError,
    OverflowError,
    RecursionError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file that has been unpacked."""

    path: str
    """Below the folder it was unpacked into."""
    size_bytes: int
    modified: str | None = None
    """When it was last changed, by ISO 8601; without a zone from a zip, which knows none."""


def unpack(
    container: Path,
    into: Path,
    *,
    name: str,
    limits: Limits,
    between: Callable[[int], None] = lambda unpacked: None,
    near: Callable[[str, str], None] = lambda one, other: None,
) -> list[Member]:
    """Unpack a zip, tar, tar.gz, tgz or tar.bz2; returns its files in their order.

    ``into`` must not be there, or be empty. ``name`` is the depositor's name of the container, whose ending must
    agree with its content. Files get the mode 0644 and today's date, whatever the container says (``Member.modified``
    tells its own); folders are made, also empty ones, and not returned; containers within are files. ``between`` is
    called after each chunk with its size (0 for an empty file), so that a long unpacking can show progress or be
    called off. ``near`` is called in the end with the first pairs of paths that are equal but for upper and lower
    case or the encoding of accents.

    Raises NotAdmitted, with the member's name, for anything that may not enter, and for such a pair where the file
    system of ``into`` takes it for one; OSError when ``into``
    is not empty (FileExistsError), when the disk is full (ENOSPC) or the system fails. Whatever is
    raised, ``into`` has been removed, except in the first case.
    """
    _make_fresh(into)
    try:
        kind = formats.kind_of(container, name)
        with container.open("rb") as source, Beneath(into) as below:
            meter = Meter(limits, container_bytes=os.fstat(source.fileno()).st_size, into=into)
            tree = Tree(limits)
            found = list(_members(_entries(source, kind, limits, meter), below, kind, tree, meter, between))
        for one, other in tree.near:
            near(one, other)
        return found
    except BaseException as error:
        shutil.rmtree(into, ignore_errors=True)
        if isinstance(error, NotAdmitted):
            raise NotAdmitted(f"container '{shown(name)}': {error}") from None
        raise


def _make_fresh(into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    with os.scandir(into) as entries:
        if next(entries, None) is not None:
            raise FileExistsError(f"'{shown(str(into))}' is not empty; remove it, then unpack again")


def _entries(source: BinaryIO, kind: Kind, limits: Limits, meter: Meter) -> Iterator[Entry]:
    if kind is Kind.ZIP:
        return zips.entries(source, most_members=limits.members)
    return tars.entries(source, kind, meter=meter)


def _members(
    entries: Iterator[Entry],
    below: Beneath,
    kind: Kind,
    tree: Tree,
    meter: Meter,
    between: Callable[[int], None],
) -> Iterator[Member]:
    # A tar is metered where it is read, headers and all.
    inflated = meter.inflated if kind is Kind.ZIP else _nothing
    while (entry := _next(entries)) is not None:
        with _naming(entry.name):
            if entry.refusal is not None:
                raise NotAdmitted(entry.refusal)
            if entry.folder:
                below.make_folder(tree.admit_folder(entry.name))
                continue
            path = tree.admit_file(entry.name)
            meter.expect(entry.size_bytes)
            with _apart(tree, path), below.new_file(path) as out:
                for chunk in _content(entry):
                    meter.unpacked(len(chunk))
                    inflated(len(chunk))
                    _write_all(out, chunk)
                    between(len(chunk))
            modified = None if entry.modified is None else entry.modified.isoformat()
            yield Member(path=path, size_bytes=entry.size_bytes, modified=modified)


def _next(entries: Iterator[Entry]) -> Entry | None:
    with _reading():
        return next(entries, None)


def _content(entry: Entry) -> Iterator[bytes]:
    """The content of a member in pieces, at least one; NotAdmitted when its size is not as declared."""
    size = 0
    with _reading():
        file = entry.opened()
    with file:
        while True:
            with _reading():
                chunk = file.read(CHUNK_BYTES)
            size += len(chunk)
            if size > entry.size_bytes:
                raise NotAdmitted(
                    f"it is larger than the {entry.size_bytes} bytes it declares; pack it again"
                )
            if chunk or not size:
                yield chunk
            if not chunk:
                break
    if size < entry.size_bytes:
        raise NotAdmitted(f"it ends after {size} of {entry.size_bytes} bytes; send it again")


@contextmanager
def _naming(member: str) -> Iterator[None]:
    try:
        yield
    except NotAdmitted as error:
        raise NotAdmitted(f"member '{shown(member[:200])}': {error}") from None


@contextmanager
def _apart(tree: Tree, path: str) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        other = tree.near_to(path)
        told = "another" if other is None else f"'{shown(other)}'"
        raise NotAdmitted(
            f"the working disk takes it and {told} for one, since upper and "
            f"lower case or accents do not count there; rename one, or have the working folder on another file system"
        ) from None


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise NotAdmitted(f"it is damaged ({shown(str(error)[:200])}); send it again") from None
    except OSError as error:
        # bz2 and gzip report damaged data so; what the system reports bears a number.
        if error.errno is not None:
            raise
        raise NotAdmitted(f"it is damaged ({shown(str(error)[:200])}); send it again") from None


def _write_all(out: BinaryIO, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[out.write(left) :]


def _nothing(size_bytes: int) -> None:
    """Count nothing."""
