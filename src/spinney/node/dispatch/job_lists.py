"""Split jobs into messages to a worker: short enough for one message, long enough to be few."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from spinney.node.workers.child import Group
from spinney.node.workers.worker_reports import Row
from spinney.tracing import traceparents

LIST_CHARS = 4 * 2**20
"""The most characters of parameters in one message. More go into several: messages have a limit (``workers.wire``), and
a worker reads a message whole before it begins with it."""

_PARAMS = 3
"""The index of the parameters in a row; see ``spinney.node.workers``."""


def messages(groups: Sequence[Group], size: int) -> Iterator[list[Group]]:
    """Yield the groups in messages of up to ``size`` jobs and no more than ``LIST_CHARS`` of parameters, in order."""
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
    """Return as many of the first rows as have no more than ``chars`` characters of parameters, and their characters;
    for an empty message at least one row."""
    lengths = list(accumulate([len(row[_PARAMS]) for row in rows]))
    if lengths[-1] <= chars:
        return rows, lengths[-1]
    fit = max(bisect_right(lengths, chars), int(chars == LIST_CHARS))
    return rows[:fit], lengths[fit - 1] if fit else 0


def with_extras(row: Row, results: str | None, trace: str | None) -> Row:
    """Return the row of an attempt with what only some have, and without unset fields at its end. An invalid trace, in
    a damaged row, is left out: it would end the worker. ``results``: the values of earlier stages as JSON text."""
    if (trace := traceparents.valid(trace)) is None:
        return row if results is None else (*row, results)
    return (*row, results, trace)
