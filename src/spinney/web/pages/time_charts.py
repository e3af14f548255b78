"""Charts over time as numbers: axes, columns and lines, which the macro ``time_chart`` of the templates writes as SVG.

Horizontal values are in percent of the width, so that a chart fits any screen while its text keeps its size; vertical
ones are in pixels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

HEIGHT, TOP, FLOOR = 190, 14, 166
"""The height of a chart, and the places of its highest line and of its axis, in pixels from above."""
_Y_TICKS = 3
_END = 2.0
"""How near to an end of the horizontal axis no mark has a text, in percent."""
_SHORTEST = 2.0
"""The least height of a part that is not 0, in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark of an axis: pixels from above, or percent from the left."""

    at: float
    """Where it is: pixels from above, or percent from the left."""
    label: str
    """The text at it; empty at the ends of the horizontal axis, where it would be cut off on a phone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A part of a column: pixels from above and of height."""

    kind: str
    """The state or outcome whose colour it has."""
    y: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A slice of time: percent from the left and of width."""

    x: float
    width: float
    title: str
    """What it says when it is pointed at."""
    bars: Sequence[Bar] = ()
    """Its parts, which stand upon each other."""
    is_gap: bool = False
    """Whether nothing was recorded in it, which looks different from none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line over the columns, in a box of 100 by ``HEIGHT``; where a value is missing it is interrupted."""

    kind: str
    points: Sequence[str]
    """The stretches of the line, as ``<polyline>`` wants them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeChart:
    """A chart over time with its columns, lines and the ticks of both axes, as numbers for SVG."""

    columns: Sequence[Column]
    """A column for each slice, from the left."""
    lines: Sequence[Line]
    """A line for each kind; none in a chart of columns."""
    y_ticks: Sequence[Tick]
    """The marks of the vertical axis."""
    x_ticks: Sequence[Tick]
    """The marks of the horizontal axis."""

    @property
    def has_gap(self) -> bool:
        """Return whether nothing was recorded in some slice, for the legend."""
        return any(column.is_gap for column in self.columns)


TIME_STEPS_S = (
    30,
    60,
    120,
    300,
    600,
    1_200,
    1_800,
    3_600,
    7_200,
    14_400,
    28_800,
    86_400,
    172_800,
    432_000,
    864_000,
)
"""Distances between marks on an axis of times, in seconds: from half a minute to ten days."""
Series = Mapping[str, Sequence[float | None]]
"""Values by kind (the state whose colour they have), one for each slice."""


def stacked(
    starts_us: Sequence[int],
    width_us: int,
    series: Series,
    text: Callable[[float], str],
    names: Mapping[str, str],
) -> TimeChart:
    """Return a chart of columns of whole numbers in which the kinds stand upon each other.

    ``starts_us``: when each slice begins, in microseconds since 1970; ``width_us``: how long each is; ``text`` writes a
    number; ``names``: the words for the kinds.
    """
    totals = [sum(value or 0 for value in values) for values in zip(*series.values(), strict=True)]
    top, y_ticks = _scale(max(totals, default=0), text, least=_Y_TICKS)
    columns = []
    for column, values in _columns(starts_us, width_us, series, text, names):
        bars, y = [], float(FLOOR)
        for kind, value in values.items():
            if value:
                height = max(_SHORTEST, value / top * (FLOOR - TOP))
                y -= height
                bars.append(Bar(kind=kind, y=round(y, 1), height=round(height, 1)))
        is_gap = all(value is None for value in values.values())
        columns.append(replace(column, bars=bars, is_gap=is_gap))
    return TimeChart(columns=columns, lines=(), y_ticks=y_ticks, x_ticks=_x_ticks(starts_us, width_us))


def lines(
    starts_us: Sequence[int],
    width_us: int,
    series: Series,
    text: Callable[[float], str],
    names: Mapping[str, str],
    *,
    recorded: Sequence[bool] | None = None,
    idle: Sequence[bool] = (),
    least: float = 0,
    steps: Sequence[float] = (),
) -> TimeChart:
    """Return a chart with a line for each kind. Parameters are as in ``stacked``; ``recorded``: for each slice, whether
    anything was recorded in it (None: where a kind has a value); ``idle``: for each slice, whether it is known that no
    attempt ended in it; ``least``: the top of the chart is not below this value; ``steps``: the distances between marks
    for values that are no decimal figures, such as ``TIME_STEPS_S``."""
    if recorded is None:
        recorded = [
            any(value is not None for value in values) for values in zip(*series.values(), strict=True)
        ]
    highest = max((value or 0 for values in series.values() for value in values), default=0)
    top, y_ticks = _scale(highest, text, least=least, steps=steps)
    columns = _columns(starts_us, width_us, series, text, names, idle)
    return TimeChart(
        columns=[
            replace(column, is_gap=not is_recorded)
            for (column, _), is_recorded in zip(columns, recorded, strict=True)
        ],
        lines=[Line(kind=kind, points=_segments(values, top)) for kind, values in series.items()],
        y_ticks=y_ticks,
        x_ticks=_x_ticks(starts_us, width_us),
    )


# --- parts of a chart -------------------------------------------------------------------------


def _columns(
    starts_us: Sequence[int],
    width_us: int,
    series: Series,
    text: Callable[[float], str],
    names: Mapping[str, str],
    idle: Sequence[bool] = (),
) -> Sequence[tuple[Column, Mapping[str, float | None]]]:
    """Return the slices of a chart as columns without bars, each with its values by kind. ``idle``: as in ``lines``."""
    each = 100 / max(1, len(starts_us))
    columns = []
    for number, start_us in enumerate(starts_us):
        values = {kind: of[number] for kind, of in series.items()}
        parts = [f"{names[kind]} {text(value)}" for kind, value in values.items() if value is not None]
        until = _clock(start_us + width_us, "%H:%M")
        blank = "no attempt finished" if idle and idle[number] else "no figures"
        title = f"{_clock(start_us, '%a %d %b, %H:%M')} to {until}: {', '.join(parts) or blank}"
        column = Column(x=round(number * each, 3), width=round(each, 3), title=title)
        columns.append((column, values))
    return columns


def _segments(values: Sequence[float | None], top: float) -> list[str]:
    """Return the stretches of a line, interrupted where a value is missing. Each value is a step as wide as its
    slice."""
    each = 100 / max(1, len(values))
    segments: list[list[str]] = [[]]
    for number, value in enumerate(values):
        if value is None:
            segments.append([])
            continue
        y = FLOOR - value / top * (FLOOR - TOP)
        # A step as wide as its slice, so that a lonely value can be seen.
        segments[-1] += [f"{number * each:.2f},{y:.1f}", f"{(number + 1) * each:.2f},{y:.1f}"]
    return [" ".join(points) for points in segments if points]


def _scale(
    highest: float, text: Callable[[float], str], *, least: float, steps: Sequence[float] = ()
) -> tuple[float, list[Tick]]:
    """Return the value at the top, of which a third is a round number, and the marks up to it. The distance between
    marks is one of ``steps`` where they are neither too small nor too large for the values."""
    highest = max(highest, least)
    size = 10.0 ** (len(str(int(highest))) - 1) if highest >= 1 else 1.0
    while size > highest > 0:
        size /= 10
    top = next(size * step for step in (1.5, 3, 6, 9, 12, 15) if size * step >= highest)
    if steps and top > _Y_TICKS * steps[0]:
        top = next((_Y_TICKS * step for step in steps if _Y_TICKS * step >= highest), top)
    marks = [top * n / _Y_TICKS for n in range(1, _Y_TICKS + 1)]
    return top, [
        Tick(at=round(FLOOR - n / _Y_TICKS * (FLOOR - TOP), 1), label=text(mark))
        for n, mark in enumerate(marks, start=1)
    ]


def _x_ticks(starts_us: Sequence[int], width_us: int) -> list[Tick]:
    """Return marks at round times: every ten minutes for an hour, every four hours for a day, every day for a week."""
    if not starts_us:
        return []
    span_us = width_us * len(starts_us)
    minute = 60_000_000
    step_us = next(
        s for s in (10 * minute, 240 * minute, 1440 * minute) if span_us / s <= 8 or s == 1440 * minute
    )
    form = "%a %d" if step_us == 1440 * minute else "%H:%M"
    first = -(-starts_us[0] // step_us) * step_us
    ticks = []
    for at_us in range(first, starts_us[-1] + width_us, step_us):
        at = (at_us - starts_us[0]) / span_us * 100
        ticks.append(Tick(at=round(at, 2), label=_clock(at_us, form) if _END <= at <= 100 - _END else ""))
    return ticks


def _clock(at_us: int, form: str) -> str:
    """Return a time of UTC in this form of ``strftime``."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime(form)
