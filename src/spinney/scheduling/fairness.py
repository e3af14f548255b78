"""Fair order of shares: a slot goes to the share that holds the fewest; ties go round in rotation.

What counts is what each share holds now, not what it has used in the past: a newcomer does not starve the
others, and an idle share saves nothing up.
"""

import heapq
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def deal(
    held: Mapping[K, int],
    rotation: Sequence[K],
    supply: Mapping[K, int],
    n: int,
    at_most: int | None = None,
    run: int = 1,
    turn: int = 1,
) -> list[K]:
    """Return up to ``n`` picks: each goes to the share that holds the fewest and still has supply.

    ``rotation`` lists the shares, the next to be served first; ``held`` counts what each holds now, and
    every pick counts at once. ``at_most``: the quota, which no share may exceed. ``run``: so many picks
    go to a share at once, as long as that leaves as many for each of those that hold as few; ``turn``: so
    many in any case. Takes O(n log shares).

    Work-conserving: fewer than ``n`` picks only when no share has supply and is below ``at_most``.
    """
    heap = [(held.get(k, 0), i, k, supply.get(k, 0)) for i, k in enumerate(rotation)]
    heap = [entry for entry in heap if entry[3] > 0 and (at_most is None or entry[0] < at_most)]
    heapq.heapify(heap)
    holding = Counter(entry[0] for entry in heap)
    """How many of the shares in the heap hold so many."""
    picks: list[K] = []
    while heap and len(picks) < n:
        holds, place, share, remaining = heap[0]
        # Those that hold more come later, and must not cut the run.
        even = max(1, (n - len(picks)) // holding[holds])
        holding[holds] -= 1
        most = min(remaining, n - len(picks), remaining if at_most is None else at_most - holds)
        taken = min(most, max(turn, min(run, even)))
        picks += [share] * taken
        holds, remaining = holds + taken, remaining - taken
        if remaining > 0 and (at_most is None or holds < at_most):
            holding[holds] += 1
            # Served once more it stands behind its equals: its place in the rotation moves on.
            heapq.heapreplace(heap, (holds, place + len(rotation), share, remaining))
        else:
            heapq.heappop(heap)
    return picks
