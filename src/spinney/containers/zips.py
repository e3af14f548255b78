"""The members of a zip, each checked before it is opened.

Only the methods "stored" and "deflated" are supported. ``zipfile`` unpacks bzip2 and LZMA without a limit on the
result of one read (some kilobytes of bzip2 can become gigabytes in memory at once).
"""

import copy
import stat
import zipfile
from collections.abc import Iterator
from datetime import datetime
from typing import IO, BinaryIO

from spinney.containers import zip_directory
from spinney.containers.members import Entry
from spinney.files.paths import NotAdmitted, shown

_NO_TIME = datetime(1980, 1, 1)  # the earliest time of the format, which writers without a clock give
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The methods of compression that are supported."""

_LOCAL_HEADER_BYTES = 30
# APPNOTE.TXT 4.4.4: encrypted, strongly encrypted, header values masked.
_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13


def entries(source: BinaryIO, *, most_members: int) -> Iterator[Entry]:
    """Yield the members in the order of the table of contents. All of them are compared before the first is
    yielded. Raises NotAdmitted for a zip that is refused as a whole, such as one with overlapping members; a
    single member that is refused says so in ``Entry.refusal``."""
    zip_directory.count_entries(source, most=most_members)
    try:
        archive = zipfile.ZipFile(source, metadata_encoding="utf-8")
    except UnicodeDecodeError as error:
        raise NotAdmitted(f"member '{shown(repr(error.object))}': its name is not UTF-8; rename it") from None
    with archive:
        infos = archive.infolist()
        _refuse_a_beginning(infos, end=archive.start_dir)
        _refuse_overlaps(infos, end=archive.start_dir)
        for info in infos:
            yield Entry(
                # Not info.filename, which ends at a NUL and would hide the rest.
                name=info.orig_filename,
                size_bytes=info.file_size,
                modified=_modified(info),
                folder=info.orig_filename.endswith("/"),
                refusal=_refusal(info),
                opened=lambda info=info: _opened(archive, info),  # type: ignore[misc]
            )


def _refuse_a_beginning(infos: list[zipfile.ZipInfo], *, end: int) -> None:
    """Refuse a file with data before the first member: another zip that it was joined to would be lost silently."""
    start = min((info.header_offset for info in infos), default=end)
    if start:
        raise NotAdmitted(
            f"its table of contents lists nothing before byte {start}, and there is data, like another zip that it was "
            f"joined to; pack both as one"
        )


def _refuse_overlaps(infos: list[zipfile.ZipInfo], *, end: int) -> None:
    """Refuse members that share bytes, so that one kernel of data cannot be unpacked many times.

    After D. Fifield, "A better zip bomb" (WOOT 2019). The extent of a member is its minimum: a local header may
    be longer than the name in it.
    """
    free_from, before = 0, ""
    for info in sorted(infos, key=lambda i: i.header_offset):
        if info.header_offset < free_from:
            raise NotAdmitted(
                f"member '{shown(info.orig_filename)}': it shares bytes with '{shown(before)}', like a bomb; "
                f"pack it again"
            )
        free_from = info.header_offset + _LOCAL_HEADER_BYTES + len(info.orig_filename) + info.compress_size
        before = info.orig_filename
    if free_from > end:
        raise NotAdmitted(f"member '{shown(before)}': it reaches into the table of contents; send it again")


def _modified(info: zipfile.ZipInfo) -> datetime | None:
    """Return the local time of a member; the earliest that a zip can represent means that it has none."""
    try:
        date = datetime(*info.date_time)
    except ValueError:
        return None
    return None if date == _NO_TIME else date


def _refusal(info: zipfile.ZipInfo) -> str | None:
    """Return why a member is refused; None: it is not."""
    if info.flag_bits & _ENCRYPTED:
        return "it is encrypted; send it without a password"
    if info.compress_type not in METHODS:
        return f"its method ({info.compress_type}) is not stored or deflated; pack it with one of these"
    if info.volume != 0:
        return "it lies on another volume; pack it as one file"
    kind = stat.S_IFMT(info.external_attr >> 16)
    folder = info.orig_filename.endswith("/")
    if kind not in (0, stat.S_IFDIR if folder else stat.S_IFREG):
        return "it is no regular file or folder (a link, a device?); leave it out, or pack the file itself"
    if folder and info.file_size:
        return "it is a folder with content of a file; pack it again"
    if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
        return "it is stored and its two sizes differ; pack it again"
    return None


def _opened(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member for one byte more than it declares. ``zipfile`` stops at the declared size, and would
    return the beginning of a bomb as the whole file if its checksum were that of the beginning."""
    longer = copy.copy(info)
    longer.file_size = info.file_size + 1
    return archive.open(longer)
