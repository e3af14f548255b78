"""Read the lines of a raw file, plain or gzip, in pieces of bounded size.

    p,PORT,TIMESTAMP,DFREQ,SIGNAL,NOISE     a pulse: seconds since 1970, kHz beside the receiver's frequency, dB, dB
    G,TIMESTAMP,LATITUDE,LONGITUDE,ALTITUDE a position

``p1,…`` in place of ``p,1,…`` is the same. Other lines are skipped; lines of these kinds that cannot be read, or whose
time is before 1970, after 2199 or more than a day from now, are counted as broken. (``jumps`` finds wrong times that
could be right.)"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.apps.receivers.detection.contents import CHUNK_BYTES, DAMAGES, opened
from spinney.apps.receivers.detection.source_files import AHEAD_S

LINE_BYTES = 1000
"""A longer line is broken; the rest of it is skipped."""
TIME_END_S = 7_258_118_400.0
"""2200-01-01; a clock that says more is broken, and no page or picture could show it."""
PORT_END = 10_000
"""Ports have lower numbers; four digits at most."""
_FIELDS = 5
_NUMBER = rb"-?[0-9]{1,20}(?:\.[0-9]{0,20})?"
_PULSE = re.compile(rb"^p,?([0-9]{1,4}(?:,%b){4})\r?$" % _NUMBER, re.MULTILINE)
_POSITION = re.compile(rb"^G,(%b(?:,%b){3})\r?$" % (_NUMBER, _NUMBER), re.MULTILINE)
_ANY = re.compile(rb"^(?:p|G,)", re.MULTILINE)


class Pulses(NamedTuple):
    """Pulses in the order of the file, as arrays of one length, one for each field of a line."""

    port: NDArray[np.int32]
    time: NDArray[np.float64]
    """Seconds since 1970."""
    offset: NDArray[np.float64]
    """kHz beside the frequency to which the receiver listens."""
    signal: NDArray[np.float64]
    """The strength of the pulse, in dB, as ``noise``."""
    noise: NDArray[np.float64]


class Position(NamedTuple):
    """Where the receiver was at a time, by its GPS."""

    time: float
    """Seconds since 1970."""
    latitude: float
    """The latitude in degrees, as the longitude."""
    longitude: float
    altitude: float


@dataclass(slots=True)
class ReadCounts:
    """What was in a file. ``read_pulses`` fills it in while it is read, so it is complete when that has
    ended."""

    lines: int = 0
    """All lines that were read, of whatever kind."""
    pulses: int = 0
    broken: int = 0
    """Lines of pulses and positions that cannot be read."""
    positions: list[Position] = field(default_factory=list)
    """The positions since the caller last cleared the list."""
    damage: str = ""
    """Why the file could not be read to its end; what came before counts."""


def read_pulses(path: Path, counts: ReadCounts, *, now_s: float, begin: int = 0) -> Iterator[Pulses]:
    """Yield the pulses of a file in pieces, and fill in ``counts``; the caller may take the positions out
    after each piece.

    ``now_s``: the time now, in seconds since 1970. ``begin``: so many bytes of the unpacked content are left
    out. A damaged file ends where the damage is, and ``counts.damage`` says what it is. Raises OSError where
    the file cannot be opened."""
    end_s = min(TIME_END_S, now_s + AHEAD_S)
    with opened(path) as file:
        file.seek(begin)
        rest = b""
        while True:
            try:
                data = file.read(CHUNK_BYTES)
            except DAMAGES as error:
                counts.damage, data = str(error), b""
            whole, _, rest = (rest + data).rpartition(b"\n") if data else (rest, b"", b"")
            if len(rest) > LINE_BYTES:
                rest = rest[: LINE_BYTES + 1]  # it is counted as broken when its end has come
            if whole:
                yield _parsed(whole, counts, end_s)
            if not data:
                return


def _parsed(text: bytes, counts: ReadCounts, end_s: float) -> Pulses:
    """Return the pulses of some lines; the last one has no line feed. Times from ``end_s`` on are broken."""
    pulses, positions = _PULSE.findall(text), _POSITION.findall(text)
    if len(pulses) + len(positions) == len(_ANY.findall(text)):
        # Text to numbers in C, a tenth of the time of a loop over lines. It takes only lines that the patterns match,
        # and gives up the whole piece for one line that is broken, since a piece with one is rare.
        rows = np.fromstring(b",".join(pulses), sep=",") if pulses else np.empty(0)
        places = np.fromstring(b",".join(positions), sep=",") if positions else np.empty(0)
        rows, places = rows.reshape(-1, _FIELDS), places.reshape(-1, len(Position._fields))
        if _are_times(rows[:, 1], end_s) and _are_times(places[:, 0], end_s):
            counts.lines += text.count(b"\n") + 1
            counts.pulses += len(pulses)
            counts.positions += [Position(*place) for place in places.tolist()]
            return _columns(rows)
    return _parsed_by_line(text, counts, end_s)


def _parsed_by_line(text: bytes, counts: ReadCounts, end_s: float) -> Pulses:
    """Return what ``_parsed`` does, for lines of which some cannot be read. It takes numbers in more forms
    (``1e3``), which the patterns do not match."""
    rows = []
    for line in text.split(b"\n"):
        counts.lines += 1
        if line[:1] == b"p":
            row = _numbers(line[1:].removeprefix(b","), _FIELDS, time_at=1, end_s=end_s)
            if row is not None and not 0 <= row[0] < PORT_END:
                row = None
            if row is not None:
                counts.pulses += 1
                rows.append(row)
        elif line[:2] == b"G,":
            row = _numbers(line[2:], len(Position._fields), time_at=0, end_s=end_s)
            if row is not None:
                counts.positions.append(Position(*row))
        else:
            continue
        if row is None:
            counts.broken += 1
    return _columns(np.array(rows, dtype=np.float64).reshape(-1, _FIELDS))


def _are_times(values: NDArray[np.float64], end_s: float) -> bool:
    """Return whether all values are times that can be right."""
    return bool(((values >= 0) & (values < end_s)).all())


def _numbers(text: bytes, number: int, *, time_at: int, end_s: float) -> list[float] | None:
    """Return the values of a line, if they are ``number`` finite numbers and the one at ``time_at`` is a time before
    ``end_s``; None otherwise, and for a line that is too long."""
    fields = text.strip().split(b",") if len(text) <= LINE_BYTES else []
    try:
        row = [float(field) for field in fields]
    except ValueError:
        return None
    lawful = len(row) == number and all(map(math.isfinite, row)) and 0 <= row[time_at] < end_s
    return row if lawful else None


def _columns(rows: NDArray[np.float64]) -> Pulses:
    """Return rows of five numbers as pulses."""
    port, time, offset, signal, noise = rows.T
    return Pulses(port.astype(np.int32), time, offset, signal, noise)
