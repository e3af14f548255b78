"""A file to fetch, as its tries need it, which checks size and digest against the given ones as early as possible."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from spinney.apps.ingest.fetch.errors import Differs, Halt, TryFailed
from spinney.apps.ingest.fetch.rules import Fetched, RemoteFile, Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFile:
    """A file to fetch, with its limits and the place of its bytes until it is complete."""

    file: RemoteFile
    source: str
    """A hash of the URL, which the mark of a part must name so that the part is used."""
    target: Path
    """Its final path, in a folder that exists."""
    path: Path
    """The path of its part."""
    algorithms: Collection[str]
    rules: Rules
    halt: Halt
    is_new: bool
    """Whether there is no part and no mark of an earlier try."""
    count_bytes: Callable[[int], None]
    """Called with the size of each piece that is received, without those of an earlier try."""

    @property
    def mark(self) -> Path:
        """Return the path of the mark, beside the part."""
        return self.path.with_suffix(".json")

    def fetched(self, size_bytes: int, sums: Mapping[str, str]) -> Fetched:
        """Return the result, for a file of this size and these digests."""
        return Fetched(name=self.file.name, source=self.source, size_bytes=size_bytes, sums=dict(sums))

    @property
    def compares(self) -> bool:
        """Return whether a size or a digest was given, by which an incomplete file is noticed."""
        return self.file.size_bytes is not None or self.file.digest is not None

    def check_announced(self, announced_bytes: int | None) -> None:
        """Check the size that a server announces; None: it announces none. Raises Differs, or TryFailed above
        the limit."""
        if announced_bytes is None:
            return
        self._within(announced_bytes)
        if self.file.size_bytes not in (None, announced_bytes):
            raise Differs("size", f"{self.file.size_bytes:,} bytes", f"{announced_bytes:,} bytes")

    def check_received(self, received_bytes: int) -> None:
        """Check the number of bytes received so far, so that an endless file ends. Raises Differs, or
        TryFailed above the limit."""
        self._within(received_bytes)
        if self.file.size_bytes is not None and received_bytes > self.file.size_bytes:
            raise Differs("size", f"{self.file.size_bytes:,} bytes", f"at least {received_bytes:,} bytes")

    def check_whole(self, received_bytes: int, sums: Mapping[str, str]) -> None:
        """Check the whole file. ``sums`` has the digests by algorithm, that of the given digest among them.
        Raises Differs, which names both values."""
        if self.file.size_bytes not in (None, received_bytes):
            raise Differs("size", f"{self.file.size_bytes:,} bytes", f"{received_bytes:,} bytes")
        digest = self.file.digest
        if digest is not None and sums[digest.algorithm] != digest.value:
            raise Differs(f"{digest.algorithm} digest", digest.value, sums[digest.algorithm])

    def _within(self, received_bytes: int) -> None:
        largest_bytes = self.rules.largest_bytes
        if largest_bytes is not None and received_bytes > largest_bytes:
            raise TryFailed(
                f"it is larger than the {largest_bytes:,} bytes that are allowed; {self.rules.too_large_advice}",
                retryable=False,
            )
