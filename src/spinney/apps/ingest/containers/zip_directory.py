"""A zip's table of contents, counted before ``zipfile`` reads it into memory.

The end of the file gives position and length of the table (APPNOTE.TXT 4.3.14 to 4.3.16). ``zipfile`` trusts the
length, ignores the count and makes an object of about a kilobyte for each entry, so that a table of 100 MB could
take 2 GB. Here it is counted in constant memory first.
"""

import struct
from typing import BinaryIO

from spinney.apps.ingest.files.paths import NotAdmitted

_END = struct.Struct("<4s4H2LH")
_END_SIGN = b"PK\x05\x06"
_END_64 = struct.Struct("<4sQ2H2L4Q")
_END_64_SIGN = b"PK\x06\x06"
_LOCATOR = struct.Struct("<4sLQL")
_LOCATOR_SIGN = b"PK\x06\x07"
_ENTRY = struct.Struct("<4s4B4HL2L5H2L")
_ENTRY_SIGN = b"PK\x01\x02"
_COMMENT_MAX_BYTES = 0xFFFF

TABLE_MAX_BYTES = 1 << 30
"""The maximum size of the table, which ``zipfile`` keeps in memory while it reads it."""


def count_entries(file: BinaryIO, *, most: int) -> int:
    """Return how many entries the table of contents has.

    Raises NotAdmitted when there are more than ``most``, when the table is damaged, or when the number of
    entries is not the declared one.
    """
    start, size, declared, modulus = _locate(file)
    if size > TABLE_MAX_BYTES:
        raise NotAdmitted(f"its table of contents has {size} bytes; send it in parts")
    count = 0
    position, end = start, start + size
    file.seek(position)
    while position < end:
        head = file.read(_ENTRY.size)
        if len(head) < _ENTRY.size or not head.startswith(_ENTRY_SIGN):
            raise NotAdmitted("its table of contents is damaged; send it again")
        fields = _ENTRY.unpack(head)
        variable = sum(fields[12:15])  # the name, the extra field and the comment
        file.seek(variable, 1)
        position += _ENTRY.size + variable
        count += 1
        if count > most:
            raise NotAdmitted(f"it has more than {most} members; send it in parts")
    if count % modulus != declared:
        raise NotAdmitted(f"it says that it has {declared} members and has {count}; send it again")
    return count


def _locate(file: BinaryIO) -> tuple[int, int, int, int]:
    """Return start and size of the table, the declared count of entries, and the modulus of that count."""
    length = file.seek(0, 2)
    tail_start = max(0, length - _END.size - _COMMENT_MAX_BYTES)
    file.seek(tail_start)
    tail = file.read()
    # The same search as in zipfile: without a comment first, then from the back.
    end_offset = len(tail) - _END.size
    if end_offset < 0 or not (tail.startswith(_END_SIGN, end_offset) and tail.endswith(b"\0\0")):
        end_offset = tail.rfind(_END_SIGN)
    if end_offset < 0 or end_offset + _END.size > len(tail):
        raise NotAdmitted("it has no end; it was cut off, send it again")
    fields = _END.unpack_from(tail, end_offset)
    if end_offset + _END.size + fields[7] != len(tail):
        raise NotAdmitted("something stands behind its end; pack it again")
    end_at = tail_start + end_offset
    declared, size, modulus = fields[4], fields[5], 1 << 16
    large = _locate_64(file, end_at)
    if large is not None:
        end_at, declared, size = large
        modulus = 1 << 64
    if size > end_at:
        raise NotAdmitted("its table of contents begins before the file does; send it again")
    return end_at - size, size, declared, modulus


def _locate_64(file: BinaryIO, end_at: int) -> tuple[int, int, int] | None:
    """Return position, count and size from the end record of a large zip (ZIP64); None in a small one."""
    locator_at = end_at - _LOCATOR.size
    if locator_at < _END_64.size:
        return None
    file.seek(locator_at - _END_64.size)
    both = file.read(_END_64.size + _LOCATOR.size)
    if not both.startswith(_LOCATOR_SIGN, _END_64.size):
        return None
    if not both.startswith(_END_64_SIGN):
        raise NotAdmitted("its end is damaged; send it again")
    fields = _END_64.unpack_from(both)
    return locator_at - _END_64.size, fields[7], fields[8]
