"""Records of what workers tell, thousands a second."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from spinney.model.attempts import remarks
from spinney.model.jobs import Record
from spinney.model.outcomes import Outcome
from spinney.model.values.named_tuples import named
from spinney.node.dispatch.slots import Task

Row = Sequence[Any]
"""What a worker tells of an attempt; see ``spinney.node.workers``."""

_OK = Outcome.OK


def success_records(tasks: Sequence[Task], rows: Sequence[Row], *, keep: bool) -> Iterator[Record]:
    """Of attempts of which there is nothing to say but that they passed. ``keep``: see Record. Made by tools that take
    whole lists, because the making of tuples was most of what a small job cost in the event loop."""
    none = repeat(None)
    fields = zip(
        [task[0][0] for task in tasks],
        [row[0] for row in rows],
        repeat(_OK),
        [row[1] for row in rows],
        [row[2] for row in rows],
        none,
        none,
        none,
        repeat(True),
        none,
        none,
        repeat(False),
        none,
        repeat(keep),
        none,
        none,
    )
    return named(Record, fields)


def detailed_record(task: Task, row: Row, outcome: Outcome, message: str | None, *, keep: bool) -> Record:
    """Of an attempt of which there is more to say."""
    fence, started_us, ended_us, said = row
    return Record(
        task.lease.job_id,
        fence,
        outcome,
        started_us,
        ended_us,
        said.get("result"),
        message,
        said.get("error"),
        said.get("retryable", True),
        said.get("code"),
        said.get("delay_s"),
        said.get("lane", False),
        said.get("lock"),
        keep,
        _elsewhere(said),
        _wanted(said),
    )


def _elsewhere(said: Mapping[str, Any]) -> str | None:
    """That something of what it wrote past Python could not be told from what others wrote."""
    log_name = said.get("log")
    return None if log_name is None else remarks.elsewhere(log_name)


def _wanted(said: Mapping[str, Any]) -> tuple[int, int | None] | None:
    """How much of a lock an attempt wanted that did not get it."""
    found = said.get("wanted")
    return None if found is None else (found[0], found[1])
