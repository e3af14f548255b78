"""Make records of workers' rows, thousands a second, and decide how attempts have ended that sent none.

A worker's row is what user code did; the outcome in the record is what the node makes of it, which the
dispatcher decides (``Dispatcher._unusual``). Nothing here raises on what a stage has returned: it is JSON
text that nobody parses."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from spinney.model.attempts import remarks
from spinney.model.jobs import Record
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.values.named_tuples import named
from spinney.node.dispatch.lanes import Lane
from spinney.node.dispatch.slots import PoolWorker, Task
from spinney.node.workers.worker_reports import Exit, Row

BESIDE = "its worker was ended, not because of this attempt"
_OK = Outcome.OK


def success_records(tasks: Sequence[Task], rows: Sequence[Row], *, keep: bool) -> Iterator[Record]:
    """Make the records of attempts that simply passed, in the order of ``tasks``; ``rows`` has their rows in
    the same order. ``keep``: see Record.

    It uses functions on whole lists, because the creation of tuples was most of the cost of a small job in
    the event loop."""
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
    """Make the record of an attempt whose row has details; only one that has passed has a result."""
    fence, started_us, ended_us, detail = row
    return Record(
        task.lease.job_id,
        fence,
        outcome,
        started_us,
        ended_us,
        detail.get("result") if outcome in PASSED else None,
        message,
        detail.get("error"),
        detail.get("retryable", True),
        detail.get("code"),
        detail.get("delay_s"),
        detail.get("lane", False),
        detail.get("lock"),
        keep,
        _elsewhere(detail),
        _lock_request(detail),
    )


def _elsewhere(detail: Mapping[str, Any]) -> str | None:
    """Return the remark that some output is in the worker's log, because it may be that of another attempt; None: all
    output is with the attempt."""
    log_name = detail.get("log")
    return None if log_name is None else remarks.elsewhere(log_name)


def _lock_request(detail: Mapping[str, Any]) -> tuple[int, int | None] | None:
    """Return amount and capacity of the lock that an attempt did not get."""
    amount_and_capacity = detail.get("wanted")
    return None if amount_and_capacity is None else (amount_and_capacity[0], amount_and_capacity[1])


def interrupted_outcome(lane: Lane, message: str) -> tuple[Outcome, str]:
    """Return how an attempt ends that the node had to break off: ``returned`` where it may run again, which
    uses up no attempt, and ``lost`` where its type must not run twice unasked: then its job becomes
    orphaned."""
    return (Outcome.LOST if lane.orphan else Outcome.RETURNED), message


def exit_outcome(worker: PoolWorker, task: Task, how: Exit) -> tuple[Outcome, str]:
    """Return outcome and message of an attempt that ran when its worker ended. The cause is looked for in this order:
    the attempt itself was being ended (its time limit, a cancel request); the worker was being ended because of another
    attempt; several attempts ran, of which any may have killed it; this attempt alone ran, and has died."""
    ending = worker.endings.get(task.lease.fence)
    if ending is not None:
        return ending
    if how.forced:  # it ran beside the attempt that had to be ended, and is not to blame
        return interrupted_outcome(task.lane, BESIDE)
    if len(how.running) > 1:
        return interrupted_outcome(task.lane, f"{how} while {len(how.running)} attempts ran in it")
    return Outcome.DIED, str(how)


def is_within_limit(task: Task, row: Row) -> bool:
    """Return whether an attempt has not exceeded its time limit by itself: the time does not count for which others
    blocked its event loop."""
    limit_s, (_, started_us, ended_us, detail) = task.lane.stage.timeout_s, row
    if limit_s is None or "blocked" not in detail:
        return False
    blocked_s: float = detail["blocked"][0]
    return bool((ended_us - started_us) / 1e6 - blocked_s < limit_s)
