"""Reading the files to be stored: once, hashed while they are read, and compared with the given size and digests."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from os import fstat
from typing import BinaryIO

from spinney.apps.ingest.storage.model import Incoming
from spinney.files.digests import Sums
from spinney.files.paths import NotAdmitted, opened_beneath, shown


@contextmanager
def opened(file: Incoming) -> Iterator[BinaryIO]:
    """Open the source of a file. Raises NotAdmitted when it does not have the given size."""
    if isinstance(file.source, bytes):
        compare_size(file, len(file.source))
        yield BytesIO(file.source)
        return
    with opened_beneath(file.source.parent, file.source.name) as handle:
        compare_size(file, fstat(handle.fileno()).st_size)
        yield handle


def sums_for(file: Incoming, algorithm: str) -> Sums:
    """Return the sums to compute: by the storage's own algorithm, and by those of the given digests."""
    return Sums([algorithm, *file.sums])


def hashed(file: Incoming, algorithm: str) -> dict[str, str]:
    """Return the sums of a source, compared with the given ones. Raises NotAdmitted."""
    sums = sums_for(file, algorithm)
    with opened(file) as handle:
        size = sums.read(handle)
    return compare(file, size, sums.values())


def compare(file: Incoming, size: int, sums: dict[str, str]) -> dict[str, str]:
    """Return the sums if they and the size match the given ones; otherwise raise NotAdmitted."""
    compare_size(file, size)
    compare_sums(file, sums)
    return sums


def compare_size(file: Incoming, size: int) -> None:
    """Raise NotAdmitted when a source does not have the given size."""
    if size != file.size_bytes:
        raise NotAdmitted(
            f"'{shown(file.path)}' should have {file.size_bytes} bytes and has {size}; fetch it again, then retry"
        )


def compare_sums(file: Incoming, sums: Mapping[str, str]) -> None:
    """Raise NotAdmitted when one of the sums differs from the given one of the same algorithm."""
    for algorithm, promised in file.sums.items():
        if sums.get(algorithm, promised) != promised:
            raise NotAdmitted(
                f"the {algorithm} of '{shown(file.path)}' should be {promised} and is {sums[algorithm]}; "
                f"fetch it again, then retry"
            )
