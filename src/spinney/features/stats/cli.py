"""The command ``stats``: queue depths, throughput, run times and slots in use.

It prints once, or again and again with ``--watch``: live on a terminal, one table below the other in a pipe,
one JSON object a line with ``--json``. What runs in all three cases is one generator of statistics
(``_looks``), which ends only after the first without ``--watch``.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.commands import Performs
from spinney.commands.job_queries import CountJobs, ListJobs
from spinney.features.stats.commands import WINDOW_MAX_S, ShowStats
from spinney.model.operators.stats import Stats
from spinney.service.queries import STATS_WINDOW_S
from spinney.terminal import completion
from spinney.terminal.commands import steps
from spinney.terminal.options.arguments import JsonOption, length, option
from spinney.terminal.output import display
from spinney.terminal.patience import PatientPerformer

if TYPE_CHECKING:
    from rich.console import RenderableType

EVERY_S = 2.0
"""The interval of ``--watch`` in seconds."""
REST = 4
"""A query that took long is followed by a pause this many times as long: the store is there for the work."""
SHOWN_SHARES = 20
"""How many shares are listed, those with the most slots; every root of a tree may be one."""


app = typer.Typer()


@steps(
    app,
    ShowStats,
    "stats",
    window_s=option(
        "--window",
        metavar="TIME",
        default=f"{STATS_WINDOW_S:g}",
        parser=length("--window", 10, WINDOW_MAX_S),
        help_="The period for rates, for example 60 or 5m.",
    ),
)
def stats(
    query: ShowStats,
    opened: Performs,
    *,
    queue: Annotated[str | None, option(help_="Only this queue.", complete=completion.queues)] = None,
    type: Annotated[  # noqa: A002 - as in filters
        str | None, option(help_="Only this job type.", complete=completion.types)
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until Ctrl-C.")] = False,
    json: JsonOption = False,
) -> None:
    """Show queue depths, throughput, run times and slots in use."""
    narrowed: dict[str, Any] = {
        name: value for name, value in (("queue", queue), ("type", type)) if value is not None
    }
    performer = PatientPerformer(opened)
    if narrowed:
        # Only for its check: a queue or type that does not exist is refused, instead of shown as empty.
        performer.do(ListJobs(existing=True, limit=1, **narrowed))
    looks = _looks(performer, query, narrowed, again=watch)
    if json and watch:
        display.print_json_lines(looks)
    elif json:
        display.print_json(next(looks))
    elif watch and display.console().is_terminal:
        _live(looks)
    else:
        for statistics in display.while_read(looks):
            display.console().print(_picture(statistics), crop=False)


def _looks(
    performer: Performs, query: ShowStats, narrowed: Mapping[str, Any], *, again: bool
) -> Iterator[Stats]:
    """Yield the statistics once, or again and again, with a pause between them.

    ``narrowed``: the queue and type that are chosen. The numbers of jobs by state are then counted for
    these alone, in a second query and therefore not in the same snapshot.
    """
    while True:
        begun = time.monotonic()
        stats = performer.do(query)
        if narrowed:
            stats = replace(_narrowed(stats, **narrowed), states=performer.do(CountJobs(**narrowed)))
        yield stats
        if not again:
            return
        time.sleep(max(EVERY_S, REST * (time.monotonic() - begun)))


def _narrowed(stats: Stats, queue: str | None = None, type: str | None = None) -> Stats:  # noqa: A002 - as in filters
    """Leave out other queues and their shares, or the stages of other types.

    A queue's figures are over all its types, and a stage's over all queues, because the store groups them
    so: choosing both a queue and a type shows the whole queue beside the whole type.
    """
    if queue is not None:
        stats = replace(
            stats,
            queues=[q for q in stats.queues if q.queue == queue],
            shares=[s for s in stats.shares if s.queue == queue],
        )
    if type is not None:
        stats = replace(stats, stages=[s for s in stats.stages if s.type == type])
    return stats


def _live(looks: Iterator[Stats]) -> None:
    from rich.live import Live

    with Live(console=display.console(), auto_refresh=False) as live:
        for statistics in looks:
            live.update(_picture(statistics), refresh=True)


def _picture(stats: Stats) -> "RenderableType":
    """Return what is printed of one snapshot: states, rate, and the tables that have rows."""
    from rich.console import Group
    from rich.text import Text

    from spinney.features.stats import tables as stats_tables
    from spinney.terminal.output.table_layout import Fitted

    speed = stats_tables.rate(stats.rate) or "no attempt finished"
    parts: list[RenderableType] = [
        Text(stats_tables.states(stats.states)),
        Text(f"{speed} in the last {stats.window_s:.0f} s"),
        "",
        Fitted(stats_tables.table(stats_tables.QUEUES, stats.queues)),
        "",
        Fitted(stats_tables.table(stats_tables.STAGES, stats.stages)),
    ]
    if any(s.sampled for s in stats.stages):
        parts.append(Text("times are those of a sample of recent attempts", style="dim"))
    if stats.shares:
        parts += ["", Fitted(stats_tables.table(stats_tables.SHARES, stats.shares[:SHOWN_SHARES]))]
    if (more := len(stats.shares) - SHOWN_SHARES) > 0:
        parts.append(f"… and {more:,} more shares; --json shows all")
    if stats.nodes:
        parts += ["", Fitted(stats_tables.table(stats_tables.NODES, stats.nodes))]
    return Group(*parts)
