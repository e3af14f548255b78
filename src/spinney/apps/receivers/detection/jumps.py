"""Times that a garbled digit has put ahead, told from clocks that are set forward, as by GPS after a start.

Pulses that are not later than the latest one of their port count as repetitions, so that one time of the future would
hide all that follow. A pulse far ahead of its port is therefore doubtful until the next one: if that is near it, the
clock was set, and both count; if it is earlier, the doubtful one is broken; if it is far ahead again, the doubtful one
stood alone, and no burst can have it."""

import numpy as np
from numpy.typing import NDArray

JUMP_S = 60.0
"""A pulse that is later than the latest of its port by more is doubtful. The gaps in a burst are at most 20 s, so that
no pulse of a burst is taken for one that stands alone."""

Rows = NDArray[np.float64]
"""Pulses of one port; the first column is the time."""


def sifted(rows: Rows, latest: float, doubtful: Rows | None) -> tuple[Rows, Rows | None, int]:
    """Return the pulses that count, the one that is doubtful now, and how many were broken.

    ``latest``: the latest time of the port that counts, or -inf; ``doubtful``: what was so behind the pulses before."""
    before = np.maximum.accumulate(np.concatenate(([latest], rows[:, 0])))[:-1]
    if doubtful is None and not (rows[:, 0] > before + JUMP_S).any():
        return rows, None, 0
    kept, broken = [], 0
    for row in rows:
        time = row[0]
        if doubtful is not None:
            if time <= latest or time == doubtful[0]:
                continue  # a repetition: it says nothing of the doubtful one
            if abs(time - doubtful[0]) <= JUMP_S:
                kept.append(doubtful)
                latest = doubtful[0]
            elif time < doubtful[0]:
                broken += 1
            doubtful = None
        if time > latest + JUMP_S:
            doubtful = row
        else:
            kept.append(row)
            latest = max(latest, time)
    return np.array(kept).reshape(-1, rows.shape[1]), doubtful, broken
