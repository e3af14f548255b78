"""Figures of a store as people see them: what ``stats`` prints and ``top`` shows live."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spinney.model.rights.operators import NodeStats, Percentiles, QueueStats, ShareStats, StageStats
from spinney.model.states import State
from spinney.model.values.limits import as_text
from spinney.terminal import display

if TYPE_CHECKING:
    from rich.table import Table


def states(counts: Mapping[str, int]) -> str:
    """``1,100 jobs: 100 pending, 1,000 completed``; what is deleted is not counted among them."""
    told = [(state, counts[state]) for state in State if counts.get(state) and state is not State.DELETED]
    total = sum(n for _, n in told)
    each = ", ".join(f"{n:,} {state}" for state, n in told)
    return f"{total:,} {'job' if total == 1 else 'jobs'}{': ' if each else ''}{each}"


def rate(per_second: float | None) -> str:
    """So many a second; where that is less than one, a minute; nothing for none, and for what is not known."""
    if not per_second:
        return ""
    if per_second < 1:
        return f"{per_second * 60:.2g}/min"
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"


def times(of: Percentiles | None) -> str:
    """Median, 90 % and 99 %."""
    return "" if of is None else " / ".join(map(display.format_duration, of))


def queues(found: Sequence[QueueStats]) -> "Table":
    return _table(
        ("QUEUE", "LIMIT", "RUNNING", "PENDING", "SCHEDULED", "WAITING", "HELD", "FAILED", "RATE"),
        (
            (
                q.queue,
                _limit(q),
                *map(_number, (q.running, q.pending, q.scheduled, q.waiting, q.held, q.failed)),
                rate(q.rate),
            )
            for q in found
        ),
    )


def stages(found: Sequence[StageStats]) -> "Table":
    return _table(
        ("TYPE", "STAGE", "RUNNING", "PENDING", "RATE", "FAILED", "WAIT 50/90/99 %", "RUN 50/90/99 %"),
        (
            (
                s.type,
                s.stage,
                _number(s.running),
                _number(s.pending),
                rate(s.rate),
                f"{s.failures / s.ended:.2%}" if s.failures and s.ended else "",
                times(s.wait_s),
                times(s.run_s),
            )
            for s in found
        ),
    )


def shares(found: Sequence[ShareStats]) -> "Table":
    return _table(
        ("SHARE", "QUEUE", "SLOTS"), ((s.share or "(all)", s.queue, _number(s.running)) for s in found)
    )


def nodes(found: Sequence[NodeStats]) -> "Table":
    return _table(
        ("NODE", "STATE", "SLOTS", "RUNNING", "LEASES", "SEEN"),
        (
            (
                n.node,
                n.state,
                str(n.slots),
                _number(n.running),
                _number(n.leases),
                display.format_time(n.seen_us),
            )
            for n in found
        ),
    )


def _number(n: int) -> str:
    return f"{n:,}" if n else ""


def _limit(queue: QueueStats) -> str:
    return "" if queue.limit is None else as_text(queue.said or queue.limit, queue.limit)


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
    made = display.build_table(columns, rows)
    for column in made.columns:
        if str(column.header) in _FIGURES:
            column.justify = "right"
    return made


_FIGURES = {
    "LIMIT",
    "RUNNING",
    "PENDING",
    "SCHEDULED",
    "WAITING",
    "HELD",
    "FAILED",
    "RATE",
    "SLOTS",
    "LEASES",
    "WAIT 50/90/99 %",
    "RUN 50/90/99 %",
}
