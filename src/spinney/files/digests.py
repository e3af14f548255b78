"""Digests of files: the algorithms, their notation, and the computation of several at once.

A depositor may write an algorithm in any case, with or without the dash before its number
(``SHA-256``, ``sha256``). Here it has one name, and its value is lowercase hexadecimal of full length.
adler32 and crc32 detect accidents, not forgeries; they are supported because older manifests use them.
"""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Protocol

from spinney.files.paths import NotAdmitted, shown

ALGORITHMS: Mapping[str, int] = MappingProxyType(
    {"adler32": 8, "crc32": 8, "md5": 32, "sha1": 40, "sha256": 64, "sha384": 96, "sha512": 128}
)
"""The canonical names, with the number of hexadecimal digits of a value."""

NUMERIC = frozenset({"adler32", "crc32"})
"""The algorithms whose values tools print as a number, so that leading zeros may be missing."""

_SHOWN_MAX = 140
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest in canonical form, made by `digest`, which checks it."""

    algorithm: str
    """One of `ALGORITHMS`."""
    value: str
    """Lowercase hexadecimal, all digits."""

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.value}"


def canonical(name: str) -> str:
    """Return the canonical name of an algorithm: ``'sha256'`` for ``' SHA-256'``. Raises NotAdmitted."""
    # Looked up unchanged first: nearly all of a million rows have the canonical form.
    algorithm = _NAMES.get(name) or _NAMES.get(name.strip().lower())
    if algorithm is None:
        raise NotAdmitted(
            f"'{shown(name[:_SHOWN_MAX])}' is no digest algorithm that is known here; "
            f"use one of {', '.join(ALGORITHMS)}"
        )
    return algorithm


def digest(algorithm: str, value: str) -> Digest:
    """Return a given digest in canonical form. Raises NotAdmitted for an unknown algorithm or an invalid value."""
    name = canonical(algorithm)
    plain = value.strip().lower()
    digits = ALGORITHMS[name]
    if name in NUMERIC and plain:
        plain = plain.zfill(digits)
    if len(plain) != digits or not _HEXADECIMAL.fullmatch(plain):
        raise NotAdmitted(
            f"'{shown(value[:_SHOWN_MAX])}' is no {name} value, which has {digits} hexadecimal digits; "
            f"compute it again"
        )
    return Digest(name, plain)


class Sums:
    """Several digests of one stream of bytes, none of which is kept.

    >>> sums = Sums(["md5", "crc32"])
    >>> sums.update(b"spinney")
    >>> sums.values()["crc32"]
    '770f3d55'
    """

    __slots__ = ("_sums",)

    def __init__(self, algorithms: Iterable[str]) -> None:
        """Raises NotAdmitted for an unknown algorithm."""
        self._sums: dict[str, _Sum] = {}
        for name in map(canonical, algorithms):
            self._sums.setdefault(name, _new_sum(name))

    def update(self, chunk: bytes | bytearray | memoryview) -> None:
        """Update the digests with the next bytes."""
        for sum_ in self._sums.values():
            sum_.update(chunk)

    def read(self, file: BinaryIO, between: Callable[[int], object] = lambda size_bytes: None) -> int:
        """Update the digests with a whole file, and return the number of its bytes. ``between`` gets the size of each
        chunk, and may abort by raising."""
        read_bytes = 0
        while chunk := file.read(_CHUNK_BYTES):
            self.update(chunk)
            read_bytes += len(chunk)
            between(len(chunk))
        return read_bytes

    def values(self) -> dict[str, str]:
        """Return the digests of the bytes so far, algorithm to lowercase hexadecimal."""
        return {name: sum_.hexdigest() for name, sum_ in self._sums.items()}

    def require(self, digest: Digest | None, name: str) -> None:
        """Raise NotAdmitted unless the bytes have the digest that was declared for them; None: none was. ``name``: that
        of their file, for the message."""
        if digest is not None and (value := self.values()[digest.algorithm]) != digest.value:
            raise NotAdmitted(
                f"'{shown(name)}' has the {digest.algorithm} {value}, not {digest.value} as was declared; submit the "
                f"right file"
            )


def require_digest(path: Path, digest: Digest | None, name: str) -> None:
    """Read a file, and raise NotAdmitted unless it has the digest, if there is one; the message calls the file
    ``name``. Raises OSError."""
    if digest is not None:
        sums = Sums([digest.algorithm])
        with path.open("rb") as file:
            sums.read(file)
        sums.require(digest, name)


class _Sum(Protocol):
    def update(self, data: bytes | bytearray | memoryview, /) -> None: ...
    def hexdigest(self) -> str: ...


class _Checksum:
    """A checksum of zlib's with the interface of hashlib's."""

    __slots__ = ("_step", "_value")

    def __init__(self, step: Callable[[bytes | bytearray | memoryview, int], int], start: int) -> None:
        self._step = step
        self._value = start

    def update(self, data: bytes | bytearray | memoryview, /) -> None:
        self._value = self._step(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def _new_sum(name: str) -> _Sum:
    if name == "adler32":
        return _Checksum(zlib.adler32, 1)
    if name == "crc32":
        return _Checksum(zlib.crc32, 0)
    # md5 and sha1 are only compared with values that depositors give; no security depends on them.
    return hashlib.new(name, usedforsecurity=False)


_HEXADECIMAL = re.compile(r"[0-9a-f]+")
_NAMES = {
    spelt: name for name in ALGORITHMS for spelt in (name, re.sub(r"(?<=[a-z])(?=[0-9])", "-", name, count=1))
}
