"""Statistics as tables of text, which ``stats`` prints and ``top`` shows live.

A table is a mapping of titles to the text of a cell (``Columns``), so that both commands show the same
columns. Numbers that are 0 are left empty: what is not 0 is what one looks for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spinney.model.operators.stats import Percentiles
from spinney.model.states import State
from spinney.model.values import texts
from spinney.model.values.limits import as_text
from spinney.terminal.output import display

if TYPE_CHECKING:
    from rich.table import Table


def states(counts: Mapping[str, int]) -> str:
    """Return counts as text: ``1,100 jobs: 100 pending, 1,000 completed``. Deleted jobs are not counted."""
    shown = [(state, counts[state]) for state in State if counts.get(state) and state is not State.DELETED]
    total = sum(n for _, n in shown)
    parts = ", ".join(f"{n:,} {state}" for state, n in shown)
    return f"{texts.counted(total, 'job')}{': ' if parts else ''}{parts}"


def rate(per_second: float | None) -> str:
    """Return a rate as text; nothing for 0 and for an unknown rate."""
    return texts.rate(per_second) if per_second else ""


def times(percentiles: Percentiles | None) -> str:
    """Return median, 90 % and 99 % as text, each as a duration such as ``1.2 s``; nothing when they are
    not known."""
    return "" if percentiles is None else " / ".join(map(display.format_duration, percentiles))


Columns = Mapping[str, Callable[[Any], str] | None]
"""Titles, and the text of each cell. None: the attribute with the title's name; of numbers nothing for 0."""

QUEUES: Columns = {
    "QUEUE": None,
    "LIMIT": lambda queue: (
        "" if queue.limit is None else as_text(queue.limit_setting or queue.limit, queue.limit)
    ),
    **dict.fromkeys(("RUNNING", "PENDING", "SCHEDULED", "WAITING", "HELD", "FAILED")),
    "RATE": lambda queue: rate(queue.rate),
}
STAGES: Columns = {
    **dict.fromkeys(("TYPE", "STAGE", "RUNNING", "PENDING")),
    "RATE": lambda stage: rate(stage.rate),
    "FAILED": lambda stage: f"{stage.failures / stage.ended:.2%}" if stage.failures and stage.ended else "",
    "WAIT 50/90/99 %": lambda stage: times(stage.wait_s),
    "RUN 50/90/99 %": lambda stage: times(stage.run_s),
}
SHARES: Columns = {
    "SHARE": lambda share: share.share or "(all)",  # of a queue that does not share
    "QUEUE": None,
    "SLOTS": lambda share: _text(share.running),
}
NODES: Columns = {
    **dict.fromkeys(("NODE", "STATE")),
    "SLOTS": lambda node: str(node.slots),
    **dict.fromkeys(("RUNNING", "LEASES")),
    "SEEN": lambda node: display.format_time(node.seen_us),
}
_TEXTS = frozenset({"QUEUE", "TYPE", "STAGE", "SHARE", "NODE", "STATE", "SEEN"})
"""Columns that are not aligned to the right."""


def table(columns: Columns, rows: Sequence[Any]) -> "Table":
    """Return a table with a row for each of ``rows``; columns of numbers are aligned to the right. ``columns``:
    ``QUEUES``, ``STAGES``, ``SHARES`` or ``NODES``."""
    cells = [
        [_text(getattr(row, title.lower())) if text is None else text(row) for title, text in columns.items()]
        for row in rows
    ]
    built = display.build_table(tuple(columns), cells)
    for column in built.columns:
        if str(column.header) not in _TEXTS:
            column.justify = "right"
    return built


def _text(value: Any) -> str:
    return (f"{value:,}" if value else "") if isinstance(value, int) else str(value)
