"""How urgent the objects of a batch are: 0 is first, 99 last."""

import math

from spinney.jobs import PRIORITIES

FIRST = 1
"""Of what is short and waited for: reading a batch and reporting on it, messages, packages for readers. All work on
objects comes behind it, unless somebody sets 0 by hand."""
LARGE_BYTES = 10**9
"""From here on an object's size counts."""


def of_batch(objects: int) -> int:
    """By the number of objects alone, so that small deposits go first: ``int(10·ln n + 5)``, within 0..99. The rule is
    Merritt's."""
    return _within(int(10 * math.log(max(objects, 1)) + 5))


def of_object(in_batch: int, size_bytes: int) -> int:
    """When the size of one is known: each tenfold above a gigabyte is worth five steps."""
    if size_bytes <= LARGE_BYTES:
        return in_batch
    return _within(in_batch + int(5 * math.log10(size_bytes / LARGE_BYTES)))


def _within(priority: int) -> int:
    return min(max(priority, PRIORITIES[0]), PRIORITIES[-1])
