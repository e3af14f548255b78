"""Read the lines of a raw file, plain or gzip, in pieces of bounded size.

    p,PORT,TIMESTAMP,DFREQ,SIGNAL,NOISE     a pulse: seconds since 1970, kHz beside the receiver's frequency, dB, dB
    G,TIMESTAMP,LATITUDE,LONGITUDE,ALTITUDE a position

``p1,…`` in place of ``p,1,…`` is the same. Other lines are skipped; lines of these kinds that cannot be read are
counted."""

import gzip
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

CHUNK_BYTES = 1 << 20
LINE_BYTES = 1000
"""A longer line is broken; the rest of it is skipped."""
_FIELDS = 5


class Pulses(NamedTuple):
    """Pulses in the order of the file; the arrays have one length."""

    port: NDArray[np.int32]
    time: NDArray[np.float64]
    """Seconds since 1970."""
    offset: NDArray[np.float64]
    """kHz beside the frequency to which the receiver listens."""
    signal: NDArray[np.float64]
    """dB, as ``noise``."""
    noise: NDArray[np.float64]


class Position(NamedTuple):
    """Where the receiver was."""

    time: float
    latitude: float
    longitude: float
    altitude: float


@dataclass(slots=True)
class ReadCounts:
    """What was in a file, after it was read."""

    lines: int = 0
    pulses: int = 0
    broken: int = 0
    """Lines of pulses and positions that cannot be read."""
    first_broken: int = 0
    """The number of the first of them, from 1; 0: there is none."""
    positions: list[Position] = field(default_factory=list)
    damage: str = ""
    """Why the file could not be read to its end; what came before counts."""

    def add_broken(self, number: int) -> None:
        """Count the broken line of this number."""
        self.broken += 1
        self.first_broken = min(number, self.first_broken or number)


def read_pulses(path: Path, counts: ReadCounts) -> Iterator[Pulses]:
    """Yield the pulses of a file in pieces, and fill in ``counts``. Raises OSError where it cannot be opened."""
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
        rest = b""
        while True:
            try:
                data = file.read(CHUNK_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                counts.damage, data = str(error), b""
            lines = (rest + data).split(b"\n")
            rest = lines.pop() if data else b""
            if len(rest) > LINE_BYTES:
                rest = rest[: LINE_BYTES + 1]  # it is counted as broken when its end has come
            pulses = _parsed(lines, counts)
            if len(pulses.time):
                yield pulses
            if not data:
                return


def _parsed(lines: Sequence[bytes], counts: ReadCounts) -> Pulses:
    texts, numbers = [], []
    for line in lines:
        counts.lines += 1
        if line[:1] == b"p":
            texts.append(_fields(line))
            numbers.append(counts.lines)
        elif line[:2] == b"G,":
            _add_position(line, counts)
    rows = _rows(texts, numbers, counts)
    counts.pulses += len(rows)
    port, time, offset, signal, noise = rows.T
    return Pulses(port.astype(np.int32), time, offset, signal, noise)


def _fields(line: bytes) -> bytes:
    """Return the fields behind the first: ``p1,…`` and ``p,1,…`` have the same."""
    fields = line[1:].lstrip(b",").strip()
    return fields if len(line) <= LINE_BYTES else b""


def _rows(texts: Sequence[bytes], numbers: Sequence[int], counts: ReadCounts) -> NDArray[np.float64]:
    """Return a row of five finite numbers for each text that has them; the others are broken."""
    if not texts:
        return np.empty((0, _FIELDS))
    try:
        values = np.array(b",".join(texts).split(b","), dtype=np.float64)
        if len(values) == _FIELDS * len(texts) and all(text.count(b",") == _FIELDS - 1 for text in texts):
            rows = values.reshape(-1, _FIELDS)
            if np.isfinite(rows).all():
                return rows
    except ValueError:
        pass  # one of them is no number: each is looked at by itself
    good = []
    for text, number in zip(texts, numbers, strict=True):
        row = _numbers(text)
        if row is None:
            counts.add_broken(number)
        else:
            good.append(row)
    return np.array(good, dtype=np.float64).reshape(-1, _FIELDS)


def _numbers(text: bytes) -> list[float] | None:
    fields = text.split(b",")
    try:
        row = [float(field) for field in fields]
    except ValueError:
        return None
    return row if len(row) == _FIELDS and all(map(math.isfinite, row)) else None


def _add_position(line: bytes, counts: ReadCounts) -> None:
    fields = line.strip().split(b",")[1:]
    try:
        values = [float(value) for value in fields[:4]]
    except ValueError:
        values = []
    if len(values) == len(Position._fields) and all(map(math.isfinite, values)):
        counts.positions.append(Position(*values))
    else:
        counts.add_broken(counts.lines)
