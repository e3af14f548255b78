"""Whose turn it is: slots go to the share that holds fewest, ties in rotation."""

import heapq
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def deal(
    held: Mapping[K, int],
    rotation: Sequence[K],
    supply: Mapping[K, int],
    n: int,
    at_most: int | None = None,
) -> list[K]:
    """Up to ``n`` picks: each goes to the share with supply left that holds fewest.

    ``rotation`` lists the shares, the next to be served first; ``held`` counts what each holds now,
    and every pick counts at once. ``at_most``: no share may come to hold more than that (a quota).
    Work-conserving: fewer than ``n`` picks only when supply or ``at_most`` leaves nobody.
    """
    heap = [(held.get(k, 0), i, k, supply.get(k, 0)) for i, k in enumerate(rotation)]
    heap = [entry for entry in heap if entry[3] > 0 and (at_most is None or entry[0] < at_most)]
    heapq.heapify(heap)
    picks: list[K] = []
    while heap and len(picks) < n:
        holds, place, share, left = heap[0]
        picks.append(share)
        holds, left = holds + 1, left - 1
        if left > 0 and (at_most is None or holds < at_most):
            # Served once more it stands behind its equals: its place in the rotation moves on.
            heapq.heapreplace(heap, (holds, place + len(rotation), share, left))
        else:
            heapq.heappop(heap)
    return picks
