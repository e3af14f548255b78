"""The board of ``top`` as lines that fill a terminal: nothing wider, nothing higher.

From above: two lines of figures, the tables of queues, jobs and failures, and at the foot a message and the
prompt. Lines are cut and never wrapped, so that the height of everything is known before it is drawn. On a
terminal that is too small the tables give way first and the prompt last.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from spinney.features.stats import tables as stats_tables
from spinney.features.stats.top_board import ALLOWED_VERBS, VERBS, Action, Board, Item, Kind, Mode, Snapshot
from spinney.model.attempts.failure_groups import Failure
from spinney.model.jobs import Job
from spinney.model.operators.bulk_orders import Verb
from spinney.terminal.output import display

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

T = TypeVar("T")
FOOT = 2
"""Lines of message and prompt."""
LEAST = 2
"""How many rows a part that is crowded keeps at least."""

HELP = """\
↑ ↓ k j        select a line; Page Up, Page Down, Home, End go further
Tab            list other jobs: running, pending, waiting, scheduled, held, failed
e              explain why the selected job is not running
h              hold the selected queue or job: running jobs finish their stage, no others start
u              release the holds on the selected queue, or the selected held job
r              retry the selected job, or all failed jobs with the selected failure
c              cancel the selected job, or it and all its subjobs
q, Ctrl-C      quit; running jobs and holds are not affected

Every change asks for confirmation and takes a reason, which is recorded in the audit log.
Rates are of the last minute, in steps of ten seconds.

Any key goes back."""


def picture(board: Board, size: tuple[int, int], now_us: int) -> "RenderableType":
    """Return what ``top`` draws of the board on a terminal of this size (columns, lines). ``now_us``: the
    time of the figures."""
    from rich.console import Group
    from rich.text import Text

    if board.mode is Mode.HELP:
        return Text(HELP, no_wrap=True, overflow="crop")
    look = board.look
    if look is None:
        return Text("looking at the store …")
    head = _head(look, now_us)
    rooms = _rooms([len(look.queues), len(look.jobs), len(look.failures)], size[1] - len(head) - FOOT)
    tables = [
        _part(Kind.QUEUE, board, look.queues, rooms[0], partial(stats_tables.table, stats_tables.QUEUES)),
        _part(Kind.JOB, board, look.jobs, rooms[1], lambda jobs: _jobs(jobs, board, now_us)),
        _part(Kind.FAILURE, board, look.failures, rooms[2], _failures),
    ]
    # The question is visible on the smallest terminal: nobody should answer what they cannot read.
    foot = _foot(board)[-max(1, size[1]) :]
    body = _fitting([*head, *_between(tables)], size[1] - len(foot))
    space = [Text("")] * (size[1] - len(foot) - sum(map(_lines, body)))
    return Group(*body, *space, *foot)


def _fitting(parts: Sequence["RenderableType"], height: int) -> list["RenderableType"]:
    """Return as many of the first parts as there is room for."""
    fitting: list[RenderableType] = []
    for part in parts:
        height -= _lines(part)
        if height < 0:
            break
        fitting.append(part)
    return fitting


def _lines(part: "RenderableType") -> int:
    """Return how many lines a part takes; nothing is wrapped."""
    return 1 + getattr(part, "row_count", 0)


def _between(tables: Sequence["Table"]) -> list["RenderableType"]:
    """Return the tables with an empty line between them."""
    parts: list[RenderableType] = []
    for table in tables:
        parts += ["", table] if parts else [table]
    return parts


def _head(look: Snapshot, now_us: int) -> list["RenderableType"]:
    """Return the lines above the tables: time and states, then rate and nodes with their occupied and all
    slots."""
    from rich.text import Text

    nodes = ", ".join(
        f"{display.safe(n.node)} {'' if n.state == 'active' else f'{n.state} '}{n.running}/{n.slots}"
        for n in look.stats.nodes
    )
    first, *others = [
        f"spinney  {display.format_time(now_us)}  {stats_tables.states(look.stats.states)}",
        f"{stats_tables.rate(look.stats.rate) or '0/s'}  {f'slots: {nodes}' if nodes else 'no node is running'}",
        "",
    ]
    return [
        Text(first, no_wrap=True, overflow="ellipsis", style="bold"),
        *(Text(line, no_wrap=True, overflow="ellipsis") for line in others),
    ]


# --- the parts ---------------------------------------------------------------------------------


def _rooms(rows: Sequence[int], height: int) -> list[int]:
    """Return how many rows each of three parts gets.

    The first and the last get a quarter each, the middle the rest, and what one does not need goes to the
    others. ``rows``: how many rows they have. ``height``: the lines for all, with headings and the empty
    lines between them.
    """
    first, middle, last = rows
    free = max(0, height - 2 * len(rows) + 1)  # a heading each, an empty line between them
    quarter = max(LEAST, free // 4)
    rooms = [min(first, quarter, free), 0, 0]
    rooms[2] = min(last, quarter, free - sum(rooms))
    rooms[1] = min(middle, free - sum(rooms))
    rooms[2] += min(last - rooms[2], free - sum(rooms))
    rooms[0] += min(first - rooms[0], free - sum(rooms))
    return rooms


def _line(kind: Kind, board: Board) -> int | None:
    """Return the row of the selected item within a part; None: it is in another."""
    if board.look is None or board.selected is None or board.selected.kind is not kind:
        return None
    return [item for item in board.look.items if item.kind is kind].index(board.selected)


def _part(
    kind: Kind, board: Board, items: Sequence[T], room: int, build: "Callable[[Sequence[T]], Table]"
) -> "Table":
    """Return the table of as many items as it has room for, with the selected one among them, whose row is marked.
    Cells that are too wide are cut."""
    line = _line(kind, board)
    start = 0 if line is None else max(0, line - room + 1)
    table = build(items[start : start + room])
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    if line is not None and table.rows:
        table.rows[line - start].style = "reverse"
    return table


def _jobs(jobs: Sequence[Job], board: Board, now_us: int) -> "Table":
    """Return the table of the listed jobs. The time of an open job runs until the time of the figures."""
    return display.build_table(
        (f"{board.listed.upper()} JOB", "TYPE", "STAGE", "STATE", "QUEUE", "NODE", "SINCE START", "MESSAGE"),
        (
            (
                job.id,
                job.type,
                job.stage,
                display.state_text(job),
                job.queue,
                job.node,
                display.format_elapsed(job.started_us, job.settled_us or now_us),
                display.state_message(job),
            )
            for job in jobs
        ),
    )


def _failures(failures: Sequence[Failure]) -> "Table":
    return display.build_table(
        ("FAILURE", "JOBS", "TYPE", "STAGE", "EXCEPTION", "MESSAGE"),
        ((f.fingerprint[:8], f"{f.jobs:,}", f.type, f.stage, f.exception, f.message) for f in failures),
    )


# --- prompts and messages -----------------------------------------------------------------------


def _foot(board: Board) -> list["RenderableType"]:
    """Return the last two lines: the message about the last action, and the prompt."""
    from rich.text import Text

    style = "bold" if board.pending_action else "dim"
    return [
        Text(display.safe(board.message), style="yellow", no_wrap=True, overflow="ellipsis"),
        Text(_prompt(board), style=style, no_wrap=True, overflow="ellipsis"),
    ]


def _prompt(board: Board) -> str:
    """Return the last line: the keys that can be pressed, or the question about the action that is being
    confirmed."""
    if board.pending_action is None:
        return f"{_offered(board.selected)}Tab other jobs  ? help  q quit"
    if board.mode is Mode.CONFIRM:
        tree = "t: with all below, " if board.with_tree else ""
        return f"{_action_text(board.pending_action)}?  y: yes, {tree}any other key: no"
    optional = "" if board.pending_action.verb is Verb.HOLD else " (may be empty)"
    return (
        f"{_action_text(board.pending_action)}; reason{optional}: "
        f"{display.safe(board.pending_action.reason)}▏ Enter: do it, Esc: do not"
    )


def _offered(item: Item | None) -> str:
    """Return the keys that do something to the selected item."""
    if item is None:
        return ""
    keys = "".join(f"{key} {verb}  " for key, verb in VERBS.items() if verb in ALLOWED_VERBS[item.kind])
    return keys + ("e explain  " if item.kind is Kind.JOB else "")


def _action_text(action: Action) -> str:
    return f"{action.verb} {display.safe(str(action.item))}{' with all below' if action.tree else ''}"
