"""How many tasks a node may take: pure rules over what was read from the database.

Any program may have written the documents, so each value may be of any type."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

SORTS: Mapping[str, Sequence[tuple[str, int]]] = {
    "fifo": (("_id", 1),),
    "lifo": (("_id", -1),),
    "default": (),
}
"""The orders of a queue, as the driver has them. Ids grow with the time at which a task was made."""


def threads(queue: Mapping[str, Any]) -> int:
    """Return the limit of a queue over all nodes: how many of its tasks may be claimed or run at once.
    Without one nothing runs, as in the releases."""
    return number(queue.get("threads"))


def maxthreads(node: Mapping[str, Any]) -> int | None:
    """Return the limit of a node over all queues; None: it has none."""
    value = node.get("maxthreads")
    return None if value is None else number(value)


def sort(queue: Mapping[str, Any]) -> Sequence[tuple[str, int]]:
    """Return the order in which tasks of a queue are taken; nothing where it has none, or one that is not
    known."""
    return SORTS.get(str(queue.get("sort", "default")), ())


def number(value: Any) -> int:
    """Return a limit, or a time in seconds since 1970. Text of digits is a number, as it is for the releases.
    Everything else is 0, so that a wrong limit stops work rather than starting too much."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return max(0, int(value)) if is_number else 0
