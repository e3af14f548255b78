"""Times that a garbled digit has put ahead, told from clocks that are set forward, as by GPS after a start.

Pulses that are not later than the latest one of their port count as repetitions, so that one time of the future would
hide all that follow. A pulse far ahead of its port is therefore doubtful until the next one: if that is near it, the
clock was set, and both count; if it is earlier, the doubtful one is broken; if it is far ahead again, either may be the
wrong one, and both are doubtful. If there are more than two, the earliest stood alone, and no burst can contain it."""

import numpy as np
from numpy.typing import NDArray

JUMP_S = 60.0
"""A pulse that is later than the latest of its port by more is doubtful. The gaps in a burst are at most 20 s, so that
no pulse of a burst is taken for one that stands alone."""
_MOST = 2
"""The most pulses of a port that are doubtful at once."""

Rows = NDArray[np.float64]
"""Pulses of one port; the first column is the time."""


def sifted(rows: Rows, latest: float, doubtful: Rows) -> tuple[Rows, Rows, int]:
    """Return the pulses of one port that count, those that are doubtful now, by time, and how many were
    broken.

    ``rows``: the new pulses in the order of the file. ``latest``: the latest time of the port that counts, or
    -inf. ``doubtful``: what this returned as doubtful for the pulses before. Without any jump, which is the
    rule, the rows are returned as they are."""
    before = np.maximum.accumulate(np.concatenate(([latest], rows[:, 0])))[:-1]
    if not len(doubtful) and not (rows[:, 0] > before + JUMP_S).any():
        return rows, doubtful, 0
    kept, waiting, broken = [], list(doubtful), 0
    for row in rows:
        time = row[0]
        if any(time == each[0] for each in waiting):
            continue  # a repetition of a doubtful one says nothing of it
        near = next((each for each in waiting if abs(time - each[0]) <= JUMP_S), None)
        decided = time if near is None else near[0]
        broken += len([each for each in waiting if each[0] > decided])
        if near is None:
            waiting = [each for each in waiting if each[0] < decided]
        else:
            kept.append(near)
            latest, waiting = decided, []
        if time > latest + JUMP_S:
            waiting = [*waiting, row][-_MOST:]
        else:
            kept.append(row)
            latest = max(latest, time)
    return _rows(kept, rows), _rows(waiting, rows), broken


def _rows(listed: list[Rows], like: Rows) -> Rows:
    """Return single pulses as one array with the columns of ``like``, also without any pulse."""
    return np.array(listed).reshape(-1, like.shape[1])
