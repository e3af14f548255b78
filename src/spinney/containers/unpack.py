"""Unpacks one container, member by member."""

import os
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from spinney.containers import converted, formats, tars, zips
from spinney.containers.formats import Kind
from spinney.containers.limits import Limits, Meter
from spinney.containers.member_names import Tree
from spinney.containers.members import Entry
from spinney.containers.safe_folder import SafeFolder
from spinney.files import copies
from spinney.files.paths import NotAdmitted, shown

CHUNK_BYTES = 1 << 20

# The errors of the libraries for damaged input. ValueError and RecursionError come from unexpected
# numbers and chains of headers.
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
    OSError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file that has been unpacked."""

    path: str
    """The path below the folder that it was unpacked into."""
    size_bytes: int
    modified: str | None = None
    """When it was last changed, in ISO 8601; without a zone from a zip, which has none."""


def unpack(
    container: Path,
    into: Path,
    *,
    name: str,
    limits: Limits,
    meter: Meter | None = None,
    between: Callable[[int], None] = lambda unpacked: None,
    near: Callable[[str, str], None] = lambda first, other: None,
) -> list[Member]:
    """Unpack a zip, tar, tar.gz, tgz or tar.bz2, and return its files in their order; a 7z or rar, too, where there is
    the program ``bsdtar``.

    ``into`` must not exist, or be empty. ``name`` is the depositor's name of the container, whose ending must
    agree with its content. Files get the mode 0644 and today's date, whatever the container says (its own date is
    ``Member.modified``); folders are made, also empty ones, and not returned; containers within are files. ``meter``
    counts a container together with the one that it was in; without it, it has the limits for itself. ``between`` is
    called after each chunk with its size (0 for an empty file), so that a long unpacking can show progress or be
    aborted. ``near`` is called in the end with the first pairs of paths that differ only in case or the encoding of
    accents.

    Raises NotAdmitted, with the member's name, for a member that is refused, and for such a pair where the file
    system of ``into`` treats it as one; OSError when ``into`` is not empty (FileExistsError), when the disk is full
    (``disk_space.is_full``) or the system fails. After any error ``into`` has been removed, except in the first case.
    """
    _make_fresh(into)
    try:
        kind = formats.kind_of(container, name)
        with container.open("rb") as source, closing(SafeFolder(into)) as below:
            meter = meter or Meter(limits, container_bytes=os.fstat(source.fileno()).st_size, into=into)
            tree = Tree(meter, depth=limits.depth)
            with _entries(source, kind, limits, meter) as entries:
                members = list(_members(entries, below, kind, tree, meter, between))
        for first, other in tree.near:
            near(first, other)
        return members
    except BaseException as error:
        shutil.rmtree(into, ignore_errors=True)
        if isinstance(error, NotAdmitted):
            raise NotAdmitted(f"container '{shown(name)}': {error}") from None
        raise


@contextmanager
def _entries(source: BinaryIO, kind: Kind, limits: Limits, meter: Meter) -> Iterator[Iterator[Entry]]:
    """Yield the members of a container of this kind, while its reader is open."""
    if kind is Kind.ZIP:
        yield zips.entries(source, most_members=limits.members)
    elif kind in (Kind.SEVEN_ZIP, Kind.RAR):
        with converted.as_tar(source) as stream:
            yield tars.entries(stream, Kind.TAR, meter=meter)
    else:
        yield tars.entries(source, kind, meter=meter)


def _make_fresh(into: Path) -> None:
    """Make the folder, unless it exists and is empty. Raises FileExistsError for one with content."""
    into.mkdir(parents=True, exist_ok=True)
    with os.scandir(into) as entries:
        if next(entries, None) is not None:
            raise FileExistsError(f"'{shown(str(into))}' is not empty; remove it, then unpack again")


def _members(
    entries: Iterator[Entry],
    below: SafeFolder,
    kind: Kind,
    tree: Tree,
    meter: Meter,
    between: Callable[[int], None],
) -> Iterator[Member]:
    """Write the members one after the other, and yield each when its file is complete."""
    # A tar is metered where it is read, headers and all.
    is_zip = kind is Kind.ZIP
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
                    if is_zip:
                        meter.inflated(len(chunk))
                    copies.write_all(out, chunk)
                    between(len(chunk))
            modified = None if entry.modified is None else entry.modified.isoformat()
            yield Member(path=path, size_bytes=entry.size_bytes, modified=modified)


def _next(entries: Iterator[Entry]) -> Entry | None:
    """Return the next member; None at the end. Raises NotAdmitted for a damage."""
    with _reading():
        return next(entries, None)


def _content(entry: Entry) -> Iterator[bytes]:
    """Yield the content of a member in pieces, at least one. Raises NotAdmitted when its size is not as declared."""
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
    """Put the name of the member before the message of a refusal."""
    try:
        yield
    except NotAdmitted as error:
        raise NotAdmitted(f"member '{shown(member[:200])}': {error}") from None


@contextmanager
def _apart(tree: Tree, path: str) -> Iterator[None]:
    """Refuse a member that the file system takes for the same file as an earlier one."""
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        other = tree.near_to(path)
        other_name = "another" if other is None else f"'{shown(other)}'"
        raise NotAdmitted(
            f"the working disk takes it and {other_name} for one, since upper and "
            f"lower case or accents do not count there; rename one, or have the working folder on another file system"
        ) from None


@contextmanager
def _reading() -> Iterator[None]:
    """Turn the libraries' errors for damaged data into a refusal."""
    try:
        yield
    except _DAMAGE as error:
        # bz2 and gzip report damaged data by an OSError without a number; errors of the system have one.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise NotAdmitted(f"it is damaged ({shown(str(error)[:200])}); send it again") from None
