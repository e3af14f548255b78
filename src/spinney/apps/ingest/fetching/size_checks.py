"""Whether what comes is what was announced, told as early as can be."""

from collections.abc import Mapping
from dataclasses import dataclass

from spinney.apps.ingest.fetching.errors import Differs, Trouble
from spinney.apps.ingest.files.digests import Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Size and digest that a file must have; None where none was given."""

    size_bytes: int | None
    digest: Digest | None
    largest_bytes: int | None
    if_larger: str
    """What to do about a file that is larger."""

    def total(self, told_bytes: int | None) -> None:
        """Judge the size that a server tells beforehand. Raises Trouble."""
        if told_bytes is None:
            return
        self._within(told_bytes)
        if self.size_bytes not in (None, told_bytes):
            raise Differs("size", f"{self.size_bytes:,} bytes", f"{told_bytes:,} bytes")

    def so_far(self, came_bytes: int) -> None:
        """Judge what has come, so that an endless file ends. Raises Trouble."""
        self._within(came_bytes)
        if self.size_bytes is not None and came_bytes > self.size_bytes:
            raise Differs("size", f"{self.size_bytes:,} bytes", f"at least {came_bytes:,} bytes")

    def whole(self, came_bytes: int, sums: Mapping[str, str]) -> None:
        """Judge all of it. Raises Differs with both values."""
        if self.size_bytes not in (None, came_bytes):
            raise Differs("size", f"{self.size_bytes:,} bytes", f"{came_bytes:,} bytes")
        if self.digest is not None and sums[self.digest.algorithm] != self.digest.value:
            raise Differs(f"{self.digest.algorithm} digest", self.digest.value, sums[self.digest.algorithm])

    def _within(self, came_bytes: int) -> None:
        if self.largest_bytes is not None and came_bytes > self.largest_bytes:
            raise Trouble(
                f"it is larger than the {self.largest_bytes:,} bytes that are allowed; {self.if_larger}",
                retryable=False,
            )
