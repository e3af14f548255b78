"""Count the members of a zip in constant memory, before ``zipfile`` reads its central directory (table of contents).

``zipfile`` makes an object of about a kilobyte for each entry of the central directory, and ignores the count that the
zip declares, so that a directory of 100 MB could take 2 GB of memory. The records at the end of the file, which say
where the directory is, are defined in APPNOTE.TXT of PKWARE, 4.3.12 to 4.3.16.
"""

import struct
from typing import BinaryIO

from spinney.files.paths import NotAdmitted

# The layouts of the records. Numbers in brackets are the indexes of the unpacked fields that are used here.
_END = struct.Struct("<4s4H2LH")  # end of central directory: count [4], size [5], length of the comment [7]
_END_SIGNATURE = b"PK\x05\x06"
_END_64 = struct.Struct("<4sQ2H2L4Q")  # the same of ZIP64: count [7], size [8]
_END_64_SIGNATURE = b"PK\x06\x06"
_LOCATOR = struct.Struct("<4sLQL")  # stands between the two
_LOCATOR_SIGNATURE = b"PK\x06\x07"
_ENTRY = struct.Struct("<4s4B4HL2L5H2L")  # one member: lengths of name, extra field and comment [12 to 14]
_ENTRY_SIGNATURE = b"PK\x01\x02"
_COMMENT_MAX_BYTES = 0xFFFF

DIRECTORY_MAX_BYTES = 1 << 30
"""The maximum size of the central directory, which ``zipfile`` reads into memory as a whole."""


def count_entries(file: BinaryIO, *, most: int) -> int:
    """Return the number of members, by walking through the central directory.

    Raises NotAdmitted when there are more than ``most``, when the directory is damaged, or when the number of its
    entries is not the one that the zip declares.
    """
    start, size, declared, count_modulus = _locate(file)
    if size > DIRECTORY_MAX_BYTES:
        raise NotAdmitted(f"its table of contents has {size} bytes; send it in parts")
    count = 0
    position, end = start, start + size
    file.seek(position)
    while position < end:
        head = file.read(_ENTRY.size)
        if len(head) < _ENTRY.size or not head.startswith(_ENTRY_SIGNATURE):
            raise NotAdmitted("its table of contents is damaged; send it again")
        fields = _ENTRY.unpack(head)
        variable_bytes = sum(fields[12:15])
        file.seek(variable_bytes, 1)
        position += _ENTRY.size + variable_bytes
        count += 1
        if count > most:
            raise NotAdmitted(f"it has more than {most} members; send it in parts")
    if count % count_modulus != declared:
        raise NotAdmitted(f"it declares {declared} members and has {count}; send it again")
    return count


def _locate(file: BinaryIO) -> tuple[int, int, int, int]:
    """Return start and size of the central directory, the declared count of entries, and the number from
    which that count begins at 0 again (it has 16 bits, with ZIP64 64). Raises NotAdmitted where the records
    at the end are missing or contradict the size of the file."""
    length = file.seek(0, 2)
    tail_start = max(0, length - _END.size - _COMMENT_MAX_BYTES)
    file.seek(tail_start)
    tail = file.read()
    # zipfile searches in the same way, so that both find the same record: at the very end, as in a zip without a
    # comment; otherwise the last one.
    end_offset = len(tail) - _END.size
    if end_offset < 0 or not (tail.startswith(_END_SIGNATURE, end_offset) and tail.endswith(b"\0\0")):
        end_offset = tail.rfind(_END_SIGNATURE)
    if end_offset < 0 or end_offset + _END.size > len(tail):
        raise NotAdmitted("its end record is missing, so it was probably cut off; send it again")
    fields = _END.unpack_from(tail, end_offset)
    if end_offset + _END.size + fields[7] != len(tail):
        raise NotAdmitted("it has bytes behind its end; pack it again")
    end_at = tail_start + end_offset
    declared, size, count_modulus = fields[4], fields[5], 1 << 16
    end_64 = _locate_64(file, end_at)
    if end_64 is not None:
        end_at, declared, size = end_64
        count_modulus = 1 << 64
    if size > end_at:
        raise NotAdmitted("its table of contents begins before the file does; send it again")
    return end_at - size, size, declared, count_modulus


def _locate_64(file: BinaryIO, end_at: int) -> tuple[int, int, int] | None:
    """Return the position of the end record of ZIP64, and its count and size; None in a zip without one."""
    locator_at = end_at - _LOCATOR.size
    if locator_at < _END_64.size:
        return None
    file.seek(locator_at - _END_64.size)
    both = file.read(_END_64.size + _LOCATOR.size)
    if not both.startswith(_LOCATOR_SIGNATURE, _END_64.size):
        return None
    if not both.startswith(_END_64_SIGNATURE):
        raise NotAdmitted("its ZIP64 end record is damaged; send it again")
    fields = _END_64.unpack_from(both)
    return locator_at - _END_64.size, fields[7], fields[8]
