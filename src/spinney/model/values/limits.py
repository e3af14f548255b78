"""Limits of queues: a number of slots, or a part of all slots."""

import re

from spinney.model.errors import UsageError

Limit = int | str
"""Slots over the whole cluster (0: nothing starts), or a part as in ``"50%"``: of the slots of those nodes that may
serve the queue and take new jobs, rounded up, so at least one."""
LIMIT_MAX = 2**31 - 1
PART = r"^(100|[1-9][0-9]?)%$"


def check(where: str, limit: object) -> None:
    """Raise UsageError for an invalid limit."""
    if isinstance(limit, str) and re.fullmatch(PART, limit, re.ASCII):
        return
    if type(limit) is not int or not 0 <= limit <= LIMIT_MAX:
        raise UsageError(
            f"{where}: limit must be 0 or more, a whole number up to {LIMIT_MAX}, or a part from '1%' to '100%', not "
            f"{limit!r:.80}"
        )


def slots(limit: Limit, total: int) -> int:
    """Return the number of slots that the limit means when the nodes have ``total`` slots."""
    return limit if isinstance(limit, int) else max(1, -(-total * int(limit[:-1]) // 100))


def as_text(limit: Limit | None, comes_to: int | None) -> str:
    """Return the limit as text for people: ``none``, ``4``, or ``50% (2)``. ``comes_to``: how many slots a percentage
    means now; None leaves that out."""
    if limit is None:
        return "none"
    if isinstance(limit, int):
        return f"{limit:,}"
    return limit if comes_to is None else f"{limit} ({comes_to:,})"
