"""The limits of what a container may unpack to, and the meter that enforces them."""

from dataclasses import dataclass
from pathlib import Path

from spinney.files import disk_space, paths
from spinney.files.paths import NotAdmitted

RATIO_FROM_BYTES = 10_000_000
"""Below this much output the ratio is not checked, since a small text may be compressed to almost nothing."""
ROOM_LEFT_BYTES = 16 << 20
"""The space that unpacking leaves free on the disk, for other writers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits for unpacking one container, alone or with those in it; what would exceed one of them is refused."""

    total_bytes: int
    """The maximum size of all files together."""
    ratio: float = 200.0
    """The maximum unpacked bytes per byte of the container, checked once 10 MB are unpacked."""
    members: int = 1_000_000
    """The maximum number of files and folders together."""
    depth: int = paths.DEPTH_MAX
    """The maximum depth of folders."""
    total_advice: str = "send it in parts"
    """What the message about ``total_bytes`` tells the depositor to do; each application names its own setting."""
    ratio_advice: str = "send the files unpacked"
    """The same for ``ratio``."""


class Meter:
    """Counts what is unpacked of one container, or of it and those in it, and raises NotAdmitted before it
    exceeds the limits. Unpacked bytes are those of files; inflated ones are all that a decompressor gave,
    headers and padding of a tar, too, so that a bomb of nothing but headers is noticed."""

    def __init__(self, limits: Limits, *, container_bytes: int, into: Path) -> None:
        """``container_bytes``: the size of the container, to which the ratio refers; where several share the meter, the
        size of the outermost one. ``into``: a path on the disk whose free space counts."""
        self._limits = limits
        self._into = into
        self._inflated_most = max(limits.ratio * container_bytes, RATIO_FROM_BYTES)
        self._unpacked_bytes = 0
        self._inflated_bytes = 0
        self._members = 0

    def member(self) -> None:
        """Count a new file or folder. Raises NotAdmitted when it is one too many."""
        if self._members >= self._limits.members:
            raise NotAdmitted(
                f"it makes more than {self._limits.members} files and folders; send it in parts"
            )
        self._members += 1

    def expect(self, size_bytes: int) -> None:
        """Check a member's declared size, before a byte of it is written.

        Raises NotAdmitted when the size is negative or exceeds a limit, and NoRoom when the disk has no space for it,
        after which it can be tried again.
        """
        if size_bytes < 0:
            raise NotAdmitted("it declares a negative size; pack it again")
        self._check(self._unpacked_bytes + size_bytes, self._inflated_bytes + size_bytes)
        if size_bytes > disk_space.free_bytes(self._into) - ROOM_LEFT_BYTES:
            raise disk_space.no_room(self._into, size_bytes + ROOM_LEFT_BYTES, remedy="make room")

    def unpacked(self, size_bytes: int) -> None:
        """Count the bytes of a file that was unpacked. Raises NotAdmitted when they exceed a limit."""
        self._unpacked_bytes += size_bytes
        self._check(self._unpacked_bytes, self._inflated_bytes)

    def inflated(self, size_bytes: int) -> None:
        """Count bytes from a decompressor, also those that belong to no file. Raises NotAdmitted when they
        exceed the ratio."""
        self._inflated_bytes += size_bytes
        self._check(self._unpacked_bytes, self._inflated_bytes)

    def _check(self, unpacked: int, inflated: int) -> None:
        """Raise NotAdmitted if so many bytes exceed a limit."""
        if unpacked > self._limits.total_bytes:
            raise NotAdmitted(
                f"it unpacks to more than {self._limits.total_bytes} bytes; {self._limits.total_advice}"
            )
        if inflated > self._inflated_most:
            raise NotAdmitted(
                f"it unpacks to more than {self._limits.ratio:g} bytes per byte, like a bomb; "
                f"{self._limits.ratio_advice}"
            )
