"""How much may come out of a container, and the meter that stops it."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from spinney.apps.ingest.files import paths
from spinney.apps.ingest.files.paths import NotAdmitted

RATIO_FROM_BYTES = 10_000_000
"""Below this much output no ratio is judged: a small text may well shrink to nothing."""
ROOM_LEFT_BYTES = 16 << 20
"""What unpacking leaves free on the disk, for those who write beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one container may unpack to."""

    total_bytes: int
    """In all files together."""
    ratio: float = 200.0
    """Bytes out per byte of the container, judged once 10 MB have come out."""
    members: int = 1_000_000
    """Files, and folders that they need, together."""
    depth: int = paths.DEPTH_MAX
    """Folders within folders."""


class Meter:
    """Counts what comes out of one container and raises NotAdmitted before it is too much."""

    def __init__(self, limits: Limits, *, container_bytes: int, into: Path) -> None:
        self._limits = limits
        self._into = into
        self._inflated_most = max(limits.ratio * container_bytes, RATIO_FROM_BYTES)
        self._unpacked_bytes = 0
        self._inflated_bytes = 0

    def expect(self, size_bytes: int) -> None:
        """Judge a member by the size that it declares, before a byte of it is written.

        Raises OSError (ENOSPC) when the disk has no room for it: that may be mended, and tried again.
        """
        if size_bytes < 0:
            raise NotAdmitted("it declares a negative size; pack it again")
        self._judge(self._unpacked_bytes + size_bytes, self._inflated_bytes + size_bytes)
        disk = os.statvfs(self._into)
        free = disk.f_bavail * disk.f_frsize
        if size_bytes > free - ROOM_LEFT_BYTES:
            raise OSError(
                errno.ENOSPC,
                f"no room to unpack {size_bytes} bytes where {free} are free; make room and retry",
                str(self._into),
            )

    def unpacked(self, size_bytes: int) -> None:
        """Count bytes of a file."""
        self._unpacked_bytes += size_bytes
        self._judge(self._unpacked_bytes, self._inflated_bytes)

    def inflated(self, size_bytes: int) -> None:
        """Count bytes that came out of a decompressor, those of no file among them."""
        self._inflated_bytes += size_bytes
        self._judge(self._unpacked_bytes, self._inflated_bytes)

    def _judge(self, unpacked: int, inflated: int) -> None:
        if unpacked > self._limits.total_bytes:
            raise NotAdmitted(
                f"it unpacks to more than {self._limits.total_bytes} bytes; send it in parts, or have "
                f"working.unpacked_bytes raised"
            )
        if inflated > self._inflated_most:
            raise NotAdmitted(
                f"it unpacks to more than {self._limits.ratio:g} bytes per byte, like a bomb; send the "
                f"files unpacked, or have working.ratio raised"
            )
