"""Lists of jobs as they travel to a worker: short enough to be one message, long enough to be few."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from spinney.node.workers.child import Group

LIST_CHARS = 4 * 2**20
"""The most that the parameters of one message come to. What bears more goes in several: the wire has a limit
(``executors.wire``), and a worker reads a message whole before it begins with it."""

_PARAMS = 3
"""Their place in a row; see ``spinney.node.workers``."""


def messages(groups: Sequence[Group], size: int) -> Iterator[list[Group]]:
    """The groups in messages of up to ``size`` jobs, and of no more parameters than fit, in order."""
    message: list[Group] = []
    room, chars = size, LIST_CHARS
    for type_, stage, rows in groups:
        at = 0
        while at < len(rows):
            part, part_chars = _fitting(rows[at : at + room], chars)
            if part:
                message.append((type_, stage, part))
                at, room, chars = at + len(part), room - len(part), chars - part_chars
            if room == 0 or at < len(rows):
                yield message
                message, room, chars = [], size, LIST_CHARS
    if message:
        yield message


def _fitting(rows: Sequence[Any], chars: int) -> tuple[Sequence[Any], int]:
    """As many of the first as have no more characters than that, and how many those have; of a whole message's room
    one at least."""
    so_far = list(accumulate([len(row[_PARAMS]) for row in rows]))
    if so_far[-1] <= chars:
        return rows, so_far[-1]
    fit = max(bisect_right(so_far, chars), int(chars == LIST_CHARS))
    return rows[:fit], so_far[fit - 1] if fit else 0
