"""Bursts: four pulses on one port whose three gaps are those of a tag, and whose frequencies agree.

Where several pulses fit a gap, the earliest is taken. A pulse belongs to one burst: the one that is complete first, and
of those that are complete with the same pulse the one whose gaps fit best. Both rules look at nothing that comes later,
so that it does not matter where a file, or a piece of one, ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.apps.receivers.detection.jumps import sifted
from spinney.apps.receivers.detection.pulses import Pulses
from spinney.apps.receivers.detection.tags import Tag

_TRIED = 8
"""How many of the pulses that fit a gap by their time are tried for their frequency."""
_COLUMNS = 4  # of an array of pulses: time, offset, signal, noise


class Burst(NamedTuple):
    """A burst of a tag: four pulses on one port, with the tag's gaps between them."""

    tag: str
    port: int
    """The port of the receiver at which its antenna is."""
    time: float
    """The time of its first pulse, in seconds since 1970."""
    offset: float
    """The mean over its pulses in kHz; ``signal`` and ``noise`` are means, too."""
    signal: float
    noise: float
    slop: float
    """By how many milliseconds its gaps differ from those of the tag, added up."""


@dataclass(slots=True)
class _Port:
    """The pulses of one port that may still be part of a burst."""

    rows: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, _COLUMNS)))
    """Time, offset, signal, noise; by time."""
    used: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    """Whether each pulse belongs to a burst already."""
    searched: int = 0
    """How many were there when bursts were looked for last."""
    doubtful: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, _COLUMNS)))
    """Pulses of which the next one says whether they count (``jumps``)."""


class BurstFinder:
    """Finds bursts in pulses that come piece by piece. It keeps, for each port, the pulses of one longest
    burst, so that its memory does not grow with a file."""

    def __init__(self, tags: Sequence[Tag], state: Mapping[str, Any] | None = None) -> None:
        """``state``: as the property ``state`` returned it, to go on where an earlier finder ended. It is
        only right for the same tags."""
        self._tags = tuple(tags)
        self._span_s = max((tag.span_s for tag in tags), default=0.0)
        self._ports: dict[int, _Port] = {}
        self.broken = 0
        """How many pulses were left out because their times were wrong."""
        for port, (rows, used, *doubtful) in (state or {}).items():
            # Older versions wrote none that is doubtful, or one.
            self._ports[int(port)] = _Port(
                np.array(rows, dtype=np.float64).reshape(-1, _COLUMNS),
                np.array(used, dtype=np.bool_),
                len(used),
                np.array((doubtful or [None])[0] or [], dtype=np.float64).reshape(-1, _COLUMNS),
            )

    @property
    def state(self) -> dict[str, Any]:
        """Return what a later finder needs, as JSON values: the latest pulses of each port."""
        return {
            str(port): [kept.rows.tolist(), kept.used.tolist(), kept.doubtful.tolist()]
            for port, kept in self._ports.items()
        }

    def find(self, pulses: Pulses) -> list[Burst]:
        """Return the bursts that are complete with these pulses, by the time of their last pulse. Pulses of a
        port that are not later than the latest one before them are left out as repetitions."""
        bursts: list[tuple[float, Burst]] = []
        for port in np.unique(pulses.port):
            chosen = pulses.port == port
            rows = np.column_stack(
                (pulses.time[chosen], pulses.offset[chosen], pulses.signal[chosen], pulses.noise[chosen])
            )
            bursts += self._find(int(port), rows)
        return [burst for _, burst in sorted(bursts)]

    def _find(self, port: int, rows: NDArray[np.float64]) -> list[tuple[float, Burst]]:
        """Return the bursts that are complete with these pulses of one port, each with the time of its last
        pulse. Candidates are taken in order, and each takes its pulses away from those behind it."""
        kept = self._ports.setdefault(port, _Port())
        latest = float(kept.rows[-1, 0]) if len(kept.rows) else -np.inf
        rows, kept.doubtful, broken = sifted(rows, latest, kept.doubtful)
        self.broken += broken
        # What a clock that steps back repeats, or a file that came once before in part, is left out pulse by pulse. A
        # whole piece cannot be, since new pulses may stand behind the repeated ones.
        rows = rows[rows[:, 0] > np.maximum.accumulate(np.concatenate(([latest], rows[:, 0])))[:-1]]
        kept.rows = np.concatenate((kept.rows, rows))
        kept.used = np.concatenate((kept.used, np.zeros(len(rows), dtype=np.bool_)))
        candidates = []
        for number, tag in enumerate(self._tags):
            candidates += _candidates(kept.rows, tag, number, kept.searched)
        bursts = []
        for last, slop, number, indices in sorted(candidates):
            if kept.used[list(indices)].any():
                continue
            kept.used[list(indices)] = True
            pulses = kept.rows[list(indices)]
            offset, signal, noise = pulses[:, 1:].mean(axis=0).tolist()
            burst = Burst(self._tags[number].tag, port, float(pulses[0, 0]), offset, signal, noise, slop)
            bursts.append((float(kept.rows[last, 0]), burst))
        self._forget(kept)
        return bursts

    def _forget(self, kept: _Port) -> None:
        """Drop the pulses that no later burst can have."""
        if len(kept.rows):
            first = int(np.searchsorted(kept.rows[:, 0], kept.rows[-1, 0] - self._span_s))
            kept.rows, kept.used = kept.rows[first:], kept.used[first:]
        kept.searched = len(kept.rows)


_Candidate = tuple[int, float, int, tuple[int, int, int, int]]
"""A possible burst: the index of the last pulse, the slop in ms, the number of the tag, the indices of the
pulses. The order of the fields is that in which candidates are taken."""


def _candidates(rows: NDArray[np.float64], tag: Tag, number: int, searched: int) -> list[_Candidate]:
    """Return the candidates of a tag whose last pulse is at ``searched`` or later; earlier ones were found
    before. All possible first pulses are extended gap by gap at once, as arrays."""
    times, offsets = rows[:, 0], rows[:, 1]
    first = int(np.searchsorted(times, times[searched] - tag.span_s)) if searched < len(times) else len(times)
    chosen = np.arange(first, len(times))
    slop = np.zeros(len(chosen))
    indices = [chosen]
    # After each gap only those chains are left that have a next pulse; all arrays shrink together.
    for gap_s in tag.gaps_s:
        nexts, error_s = _nexts(times, offsets, indices[0], indices[-1], gap_s, tag)
        fits = nexts >= 0
        indices = [each[fits] for each in indices]
        slop = slop[fits] + error_s[fits]
        indices.append(nexts[fits])
    fresh = indices[-1] >= searched
    columns = [each[fresh].tolist() for each in indices]
    slops = np.round(slop[fresh] * 1000, 4).tolist()
    return [
        (fourth, fit, number, (one, two, three, fourth))
        for one, two, three, fourth, fit in zip(*columns, slops, strict=True)
    ]


def _nexts(
    times: NDArray[np.float64],
    offsets: NDArray[np.float64],
    firsts: NDArray[np.intp],
    before: NDArray[np.intp],
    gap_s: float,
    tag: Tag,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return for each pulse of ``before`` the earliest that follows it after the gap with the frequency of the burst's
    first (``firsts``), or -1; and by how many seconds its gap differs."""
    tolerance_s = tag.tolerance / 1000
    expected = times[before] + gap_s
    low = np.searchsorted(times, expected - tolerance_s)
    high = np.searchsorted(times, expected + tolerance_s, side="right")
    nexts = np.full(len(before), -1, dtype=np.intp)
    for step in range(_TRIED):
        index = low + step
        open_ = (nexts < 0) & (index < high)
        if not open_.any():
            break
        near = np.abs(offsets[np.where(open_, index, 0)] - offsets[firsts]) <= tag.spread
        nexts = np.where(open_ & near, index, nexts)
    error_s = np.where(nexts >= 0, np.abs(times[np.where(nexts >= 0, nexts, 0)] - expected), 0.0)
    return nexts, error_s
