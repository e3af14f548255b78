"""A version of an object as a bag (RFC 8493); each file is compared with its digests while it is added.

    NAME/data/…                   the files of the version, by their paths
    NAME/bagit.txt, bag-info.txt  what it is
    NAME/manifest-sha512.txt      the digests of the files; sha256 where the storage uses that
    NAME/tagmanifest-sha512.txt   the digests of the three above

Manifests come last, since they are verified only then. ``data/`` separates the names of files from those of the bag,
and its paths lead downward only, on Windows too.
"""

import hashlib
import io
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import BinaryIO

from spinney.apps.ingest.access.tickets import AccessOrder
from spinney.apps.ingest.storage import Damaged, Storage, StoredFile
from spinney.containers.pack import Archive
from spinney.files.digests import Sums
from spinney.files.paths import NotAdmitted, relative, shown

_DECLARATION = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
_SPOOLED_BYTES = 4 << 20
_NAME_MAX = 100


_NONE: Mapping[str, datetime] = MappingProxyType({})


def name_of(ark: str, version: int) -> str:
    """Return the name of the bag: letters, digits and underscores."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", ark).strip("_")
    return f"{name[:_NAME_MAX]}_v{version}"


def bag(
    archive: Archive,
    storage: Storage,
    order: AccessOrder,
    between: Callable[[int], None] = lambda read: None,
    modified: Mapping[str, datetime] = _NONE,
) -> tuple[int, int]:
    """Write the requested version into the archive, and return the number of its files and of their bytes. ``between``
    is called with each number of bytes read. ``modified``: when files were last changed, by path; others get the time
    of the version.

    Raises Damaged or NoSuchObject for content that is missing or does not match its digests, OSError when the storage
    or the archive fails; the archive must then be discarded.
    """
    files = size = 0
    top, names = name_of(order.ark, order.version), _Names()
    with tempfile.SpooledTemporaryFile(_SPOOLED_BYTES) as manifest:
        algorithm = None
        for file in storage.files(order.ark, order.version):
            name = f"data/{names.of(relative(file.path))}"
            with _intact(order.ark, file), storage.opened(order.ark, file) as content:
                checked = Checked(content, file, between)
                archive.add(f"{top}/{name}", file.size_bytes, checked, modified.get(file.path))
                checked.finish()
            manifest.write(f"{file.digest.value}  {_escaped(name)}\n".encode())
            algorithm = file.digest.algorithm
            files, size = files + 1, size + file.size_bytes
        if algorithm is None:
            raise Damaged(
                f"version {order.version} of {shown(order.ark)} has no file; restore it from a copy"
            )
        tag_files = {"bagit.txt": _DECLARATION, "bag-info.txt": _info(order, files, size)}
        tags = []
        for name, raw in tag_files.items():
            archive.add(f"{top}/{name}", len(raw), io.BytesIO(raw))
            tags.append(f"{hashlib.new(algorithm, raw).hexdigest()}  {name}")
        tags.append(_add_manifest(archive, top, algorithm, manifest))
    raw = "".join(f"{line}\n" for line in tags).encode()
    archive.add(f"{top}/tagmanifest-{algorithm}.txt", len(raw), io.BytesIO(raw))
    return files, size


class _Names:
    """The names of files in an archive, without backslashes, which separate folders on Windows.

    Their replacement has no percent sign, which manifests escape and not all readers of manifests unescape.

    A file whose own name contains the replacement keeps that name: in the order of paths it comes before those that
    would get the same name.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, path: str) -> str:
        """Return the name of a file in the archive."""
        name = path.replace("\\", "=5C")
        if "=5C" not in name:
            return name
        while name in self._used:
            name += "_"
        self._used.add(name)
        return name


class Checked:
    """Content of a file whose digests are computed and compared while it is read.

    Read it to its end, then call ``finish``: only then is it known to be right. ``between`` is called with
    the size of each piece.
    """

    def __init__(
        self, content: BinaryIO, file: StoredFile, between: Callable[[int], None] = lambda read: None
    ) -> None:
        self._content, self._file, self._between = content, file, between
        self._sums, self._remaining_bytes = Sums(file.sums), file.size_bytes

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes. Raises Damaged where the content ends too early."""
        chunk = self._content.read(min(size, self._remaining_bytes) if size >= 0 else self._remaining_bytes)
        if not chunk and self._remaining_bytes and size:
            raise _differs(self._file, f"ends {self._remaining_bytes} bytes too early")
        self._sums.update(chunk)
        self._remaining_bytes -= len(chunk)
        self._between(len(chunk))
        return chunk

    def finish(self) -> None:
        """Raise Damaged unless all content matched its digests."""
        if self._content.read(1):
            raise _differs(self._file, f"is longer than {self._file.size_bytes} bytes")
        for algorithm, value in self._sums.values().items():
            if value != self._file.sums[algorithm]:
                raise _differs(
                    self._file, f"has the {algorithm} {value} instead of {self._file.sums[algorithm]}"
                )


@contextmanager
def _intact(ark: str, file: StoredFile) -> Iterator[None]:
    """Raise Damaged where a file of the version cannot be read as it was stored."""
    try:
        yield
    except Damaged:
        raise
    except NotAdmitted as error:  # gone, or a link in its place
        raise Damaged(f"'{shown(file.path)}' of {shown(ark)} cannot be read: {error}") from None


def _add_manifest(
    archive: Archive, top: str, algorithm: str, manifest: "tempfile.SpooledTemporaryFile[bytes]"
) -> str:
    """Add the manifest, and return its line of the tag manifest."""
    name = f"manifest-{algorithm}.txt"
    size = manifest.tell()
    manifest.seek(0)
    digest = hashlib.file_digest(manifest, algorithm).hexdigest()
    manifest.seek(0)
    archive.add(f"{top}/{name}", size, manifest)
    return f"{digest}  {name}"


def _info(order: AccessOrder, files: int, size_bytes: int) -> bytes:
    """Return bag-info.txt, with the version's date, so that the same version is always the same bag."""
    return (
        f"Bagging-Date: {order.created.date().isoformat()}\n"
        f"External-Identifier: {order.ark}\n"
        f"Internal-Sender-Identifier: version {order.version}\n"
        f"Payload-Oxum: {size_bytes}.{files}\n"
    ).encode()


def _escaped(path: str) -> str:
    """Escape a path for a manifest (RFC 8493 section 2.1.3)."""
    return path.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _differs(file: StoredFile, how: str) -> Damaged:
    return Damaged(f"{file.content_path} ('{shown(file.path)}') {how}; restore it from a copy")
