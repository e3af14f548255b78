"""``stats``: how much stands where, how fast it goes, who has the slots."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.model.jobs import Filter
from spinney.model.rights.operators import Stats
from spinney.terminal import completion, display
from spinney.terminal.arguments import JsonOption, StoreOption, length
from spinney.terminal.connection import open_queries

if TYPE_CHECKING:
    from rich.console import RenderableType

    from spinney.service.queries import Queries

WINDOW_S, WINDOW_MAX_S = 60, 840
EVERY_S = 2.0
REST = 4
"""A look that took long is followed by a pause so many times as long."""
SHOWN_SHARES = 20


def add_to(app: typer.Typer) -> None:
    app.command()(stats)


def stats(
    queue: Annotated[
        str | None,
        typer.Option(help="Only this queue.", show_default=False, autocompletion=completion.queues),
    ] = None,
    type_: Annotated[
        str | None,
        typer.Option(
            "--type", help="Only this job type.", show_default=False, autocompletion=completion.types
        ),
    ] = None,
    window: Annotated[
        float,
        typer.Option(
            metavar="TIME",
            parser=length("--window", 10, WINDOW_MAX_S),
            help="Rates are of so long back, as 60 or 5m.",
        ),
    ] = WINDOW_S,
    watch: Annotated[bool, typer.Option("--watch", help="Again and again, until Ctrl-C.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show queue depths, rates, times and slots in use."""
    with open_queries(store) as look:
        _require_known(look, queue, type_)
        found = _looks(look, window, Filter(queue=queue, type=type_), again=watch)
        if json and watch:
            display.print_json_lines(found)
        elif json:
            display.print_json(next(found))
        elif watch and display.console().is_terminal:
            _live(found)
        else:
            for each in found:
                if not _print(each):
                    break


def _require_known(look: "Queries", queue: str | None, type_: str | None) -> None:
    from spinney.service.filter_checks import require_queue

    if type_ is not None:
        look.type(type_)
    if queue is not None:
        require_queue(look.store, queue)


def _looks(look: "Queries", window_s: float, which: Filter, *, again: bool) -> Iterator[Stats]:
    while True:
        begun = time.monotonic()
        found = look.stats(window_s)
        yield found if which == Filter() else _narrowed(found, look, which)
        if not again:
            return
        time.sleep(max(EVERY_S, REST * (time.monotonic() - begun)))


def _narrowed(stats: Stats, look: "Queries", which: Filter) -> Stats:
    """What concerns this queue, or this type. A queue's stages and a type's queues are those of all."""
    from dataclasses import replace

    stats = replace(stats, states=look.counts(which))
    if which.queue is not None:
        stats = replace(
            stats,
            queues=[q for q in stats.queues if q.queue == which.queue],
            shares=[s for s in stats.shares if s.queue == which.queue],
        )
    if which.type is not None:
        stats = replace(stats, stages=[s for s in stats.stages if s.type == which.type])
    return stats


def _live(found: Iterator[Stats]) -> None:
    from rich.live import Live

    with Live(console=display.console(), auto_refresh=False) as live:
        for each in found:
            live.update(_picture(each), refresh=True)


def _print(stats: Stats) -> bool:
    """Whether somebody still reads."""
    with display.closed_pipe_ends_output():
        display.console().print(_picture(stats))
        return True
    return False


def _picture(stats: Stats) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from spinney.features.stats import tables as stats_tables

    speed = stats_tables.rate(stats.rate) or "no attempt ended"
    parts: list[RenderableType] = [
        Text(stats_tables.states(stats.states)),
        Text(f"{speed} in the last {stats.window_s:.0f} s"),
        "",
        stats_tables.queues(stats.queues),
        "",
        stats_tables.stages(stats.stages),
    ]
    if any(s.sampled for s in stats.stages):
        parts.append(Text("times are those of a sample of late attempts", style="dim"))
    if stats.shares:
        parts += ["", stats_tables.shares(stats.shares[:SHOWN_SHARES])]
        parts += _and_more(stats.shares)
    if stats.nodes:
        parts += ["", stats_tables.nodes(stats.nodes)]
    return Group(*parts)


def _and_more(shares: Sequence[object]) -> list["RenderableType"]:
    more = len(shares) - SHOWN_SHARES
    return [f"… and {more:,} more shares; --json shows all"] if more > 0 else []
