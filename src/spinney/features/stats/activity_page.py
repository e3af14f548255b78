"""The page of what happened over an hour, a day or a week: throughput, depth, and times by type and stage.

It reads only what ``history_sql`` has rolled up, never the jobs, so its cost does not grow with them. The
figures are kept by lane. A lane knows its queue and type, by which the page can therefore be narrowed, but no
collection: a caller who is limited to some collections gets the page without figures.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.stats.history_sql import HOUR_S, MINUTE_S, QUARTER_S, Figures
from spinney.web.pages import time_charts
from spinney.web.pages.forms import page_or_part, read_coalesced
from spinney.web.pages.text_formats import lasting, number
from spinney.web.pages.time_charts import TIME_STEPS_S, TimeChart
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A period that can be shown."""

    label: str
    """Its name on the page."""
    width_s: int
    """How many seconds a slice lasts."""
    slices: int
    """How many slices are shown."""
    depth: str
    """What the numbers of jobs are: of minutes those of one moment, of longer slices averages, which hide peaks."""


SPANS: Mapping[str, Span] = {
    "hour": Span(label="Hour", width_s=MINUTE_S, slices=60, depth="Jobs, counted each minute"),
    "day": Span(label="Day", width_s=QUARTER_S, slices=96, depth="Jobs, average of each quarter of an hour"),
    "week": Span(label="Week", width_s=HOUR_S, slices=168, depth="Jobs, average of each hour"),
}
"""The periods by the word that the address names them with. An unknown word shows the hour."""
Name = Annotated[str, Query(max_length=200)]
"""The name of a queue in the address; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLine:
    """A stage, over the whole period."""

    type: str
    stage: str
    figures: Figures
    """The figures of all its lanes together, whatever their queues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The charts and tables of the page of activity, and the names that its filter offers. Callers with
    the same limits share one."""

    charts: Sequence[tuple[str, str, TimeChart]]
    """Id, title and chart."""
    stages: Sequence[StageLine]
    """The figures by type and stage; those that did most come first."""
    queues: Sequence[str]
    """The queues that the filter offers."""
    types: Sequence[str]
    """The job types that the filter offers."""


@router.get("/activity")
async def activity(
    request: Request,
    context: Authenticated,
    span: str = "hour",
    queue: Name = "",
    type_: Annotated[str, Query(alias="type", max_length=200)] = "",
) -> Response:
    """Show charts of an hour, a day or a week, of one queue or type or of all."""
    span = span if span in SPANS else "hour"
    within = context.principal.rights.within
    shown = None
    if within.collections is None:
        shown = await read_coalesced(
            request,
            context,
            ("activity", within, span, queue, type_),
            lambda control: read(control, SPANS[span], queue, type_, within.queues),
        )
    return page_or_part(
        request,
        context,
        "activity",
        topics=("overview",),
        spans=SPANS,
        span=span,
        queue=queue,
        type=type_,
        shown=shown,
        average=_count,
    )


def read(control: Control, span: Span, queue: str, type_: str, visible: Collection[str] | None) -> Activity:
    """Read the figures of the lanes that the caller may see.

    The newest slice shown is the current one if it has been recorded already, else the one before; the
    period always has ``span.slices`` of them. ``queue`` and ``type_`` narrow the figures, empty: to
    nothing; the names that the filter offers are those of all visible lanes. ``visible``: the queues that
    the caller may see; None: all.
    """
    history = control.store.throughput_history
    lanes = history.lanes(queues=visible)
    chosen = [lane for lane, of_queue, of_type in lanes if queue in ("", of_queue) and type_ in ("", of_type)]
    last = control.clock() // 1_000_000 // span.width_s
    by_slice = history.by_slice(span.width_s, last - span.slices, last, chosen)
    if last not in by_slice:
        last -= 1  # a slice is recorded after its first minute
    first = last - span.slices + 1
    stages = [
        StageLine(type=of_type, stage=stage, figures=figures)
        for (of_type, stage), figures in history.by_stage(span.width_s, first, last, chosen).items()
    ]
    return Activity(
        charts=_charts(span, first, by_slice),
        stages=sorted(stages, key=lambda line: (-line.figures.ended, line.type, line.stage)),
        queues=sorted({of_queue for _, of_queue, _ in lanes}),
        types=sorted({of_type for _, _, of_type in lanes}),
    )


def _charts(span: Span, first: int, by_slice: Mapping[int, Figures]) -> list[tuple[str, str, TimeChart]]:
    """Return id, title and chart of throughput, depth and times, in the order of the page.

    A slice that nobody recorded, because no leader was there, is a gap in a line; an idle one is drawn as
    zero.
    """
    width_us = span.width_s * 1_000_000
    numbers = range(first, first + span.slices)
    starts_us = [n * width_us for n in numbers]
    figures = [by_slice.get(n) for n in numbers]
    recorded = [f is not None for f in figures]
    idle = [f is not None and f.ended == 0 for f in figures]

    def values(of: Callable[[Figures], float | None]) -> list[float | None]:
        return [None if f is None else of(f) for f in figures]

    ended = {"completed": values(lambda f: f.ended - f.failed), "failed": values(lambda f: f.failed)}
    depth = {"pending": values(lambda f: f.pending), "running": values(lambda f: f.running)}
    times = {"waiting": values(lambda f: f.wait_s), "running": values(lambda f: f.run_s)}
    lines = partial(time_charts.lines, starts_us, width_us, recorded=recorded)
    passed = {"completed": "passed", "failed": "failed"}
    return [
        ("ended", "Finished attempts", time_charts.stacked(starts_us, width_us, ended, _count, passed)),
        ("depth", span.depth, lines(depth, _count, {name: name for name in depth}, least=3)),
        (
            "times",
            "Times, median of a sample",
            lines(times, lasting, {"waiting": "waited", "running": "ran"}, idle=idle, steps=TIME_STEPS_S),
        ),
    ]


def _count(value: float | None) -> str:
    """Return a number as text with at most one decimal: an average of 0.02 jobs is ``< 0.1`` and not 0;
    None is a dash."""
    if value is None:
        return "–"
    return "< 0.1" if 0 < value < 0.05 else number(int(value) if value == int(value) else round(value, 1))
