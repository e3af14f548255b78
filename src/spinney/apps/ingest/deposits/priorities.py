"""The priorities of the objects of a batch: 0 is first, 99 last."""

import math

from spinney.jobs import PRIORITIES

FIRST = 1
"""The priority of short jobs that people wait for: reading a batch and reporting on it, messages, packages for readers.
All work on objects has a later one, unless somebody sets 0 by hand."""
LARGE_BYTES = 10**9
"""Above this size an object's size changes its priority."""


def of_batch(objects: int) -> int:
    """Return the priority by the number of objects, so that small deposits go first: ``int(10·ln n + 5)``, within
    0..99. The rule is Merritt's."""
    return _within(int(10 * math.log(max(objects, 1)) + 5))


def of_object(in_batch: int, size_bytes: int) -> int:
    """Return the priority of an object of known size: each factor of ten above a gigabyte adds five steps to
    that of its batch, up to the last priority."""
    if size_bytes <= LARGE_BYTES:
        return in_batch
    return _within(in_batch + int(5 * math.log10(size_bytes / LARGE_BYTES)))


def _within(priority: int) -> int:
    return min(max(priority, PRIORITIES[0]), PRIORITIES[-1])
