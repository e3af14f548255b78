"""A zip's table of contents, counted before ``zipfile`` reads it into memory.

The file says at its end where the table is and how long (APPNOTE.TXT 4.3.14 to 4.3.16). ``zipfile``
believes the length, ignores the count and makes an object of about a kilobyte for each entry, so that
a table of 100 MB could take 2 GB. Here it is walked in constant memory first.
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
"""Of the whole table: ``zipfile`` holds it in memory while it reads it."""


def count_entries(file: BinaryIO, *, most: int) -> int:
    """How many entries the table of contents has.

    Raises NotAdmitted when there are more than ``most``, when the table is damaged, or when it does
    not have as many entries as it says.
    """
    start, size, said, modulus = _locate(file)
    if size > TABLE_MAX_BYTES:
        raise NotAdmitted(f"its table of contents has {size} bytes; send it in parts")
    count = 0
    at, end = start, start + size
    file.seek(at)
    while at < end:
        head = file.read(_ENTRY.size)
        if len(head) < _ENTRY.size or not head.startswith(_ENTRY_SIGN):
            raise NotAdmitted("its table of contents is damaged; send it again")
        fields = _ENTRY.unpack(head)
        variable = sum(fields[12:15])  # the name, the extra field and the comment
        file.seek(variable, 1)
        at += _ENTRY.size + variable
        count += 1
        if count > most:
            raise NotAdmitted(f"it has more than {most} members; send it in parts")
    if count % modulus != said:
        raise NotAdmitted(f"it says that it has {said} members and has {count}; send it again")
    return count


def _locate(file: BinaryIO) -> tuple[int, int, int, int]:
    """Start and size of the table, the count that the zip gives, and modulo what it gives it."""
    length = file.seek(0, 2)
    tail_start = max(0, length - _END.size - _COMMENT_MAX_BYTES)
    file.seek(tail_start)
    tail = file.read()
    # As zipfile searches: without a comment first, then from the back.
    at = len(tail) - _END.size
    if at < 0 or not (tail.startswith(_END_SIGN, at) and tail.endswith(b"\0\0")):
        at = tail.rfind(_END_SIGN)
    if at < 0 or at + _END.size > len(tail):
        raise NotAdmitted("it has no end; it was cut off, send it again")
    fields = _END.unpack_from(tail, at)
    if at + _END.size + fields[7] != len(tail):
        raise NotAdmitted("something stands behind its end; pack it again")
    end_at = tail_start + at
    said, size, modulus = fields[4], fields[5], 1 << 16
    wide = _locate_64(file, end_at)
    if wide is not None:
        end_at, said, size = wide
        modulus = 1 << 64
    if size > end_at:
        raise NotAdmitted("its table of contents begins before the file does; send it again")
    return end_at - size, size, said, modulus


def _locate_64(file: BinaryIO, end_at: int) -> tuple[int, int, int] | None:
    """Where the end record of a large zip stands, with its count and size; None in a small one."""
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
