"""The path of a job in its tree: ids from the root down, each padded to 12 digits.

Text order of lineages is depth-first order of the tree, and every subtree is one index range, so
that an order of work and a sweep over a subtree need no recursion.
"""

from collections.abc import Collection
from itertools import pairwise

# Digits of an id: ten million jobs a day would last for centuries, and every lineage sorts as its numbers do.
WIDTH = 12
MAX_DEPTH = 32
"""A deeper tree is an endless recursion by mistake, and its lineage would be too long for an index entry."""


def lineage(job_id: int, parent: str | None = None) -> str:
    """Return the lineage of a job below the one whose lineage is ``parent`` (None: a root)."""
    own = f"{job_id:0{WIDTH}d}"
    return own if parent is None else f"{parent}.{own}"


def subtree(path: str) -> tuple[str, str]:
    """Return the half-open range of the lineages strictly below ``path``: they begin with ``path.``, and
    ``/`` is the character behind the dot. The bounds themselves are no lineages, so both may be compared
    strictly."""
    return f"{path}.", f"{path}/"


def top_of(path: str) -> int:
    """Return the id of the root of the job of this lineage."""
    return int(path.partition(".")[0])


def ancestors(path: str) -> list[int]:
    """Return the ids above the job of this lineage, from the root down to its parent."""
    return [int(part) for part in path.split(".")[:-1]]


def superseded_by(path: str, superseded: Collection[int]) -> int | None:
    """Return the job that was set to run again without the job of this lineage, or without one above it: the highest
    such job. None: the job counts. ``superseded``: which of the job and its ancestors are superseded."""
    line = pairwise(map(int, path.split(".")))
    return next((above for above, job in line if job in superseded), None)


def depth(path: str) -> int:
    """Return the depth of the job of this lineage; 0 for a root."""
    return path.count(".")
