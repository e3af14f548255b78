"""Small pictures as numbers: what the templates write into SVG attributes.

Functions of plain numbers, so that they are tested without a browser. ``time_charts`` has the large charts
with axes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 160, 36
"""The size of a sparkline, in the units of its viewBox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """A line over time, with the area below it."""

    line: str
    """The points of the line, as ``<polyline>`` wants them."""
    area: str
    """The points of the area below it, as ``<polygon>`` wants them."""
    last: float
    """The newest value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a horizontal bar, with its place and width as numbers for SVG."""

    name: str
    count: int
    x: float
    """Where it begins, in the units of the bar's ``width``."""
    width: float
    """How wide it is, in the units of the bar."""


def spark(values: Sequence[tuple[int, float]], *, from_us: int, until_us: int) -> Spark | None:
    """Return the chart of values over time: pairs of microseconds since 1970 and a value, the oldest first, of which
    only those of the period are drawn. None if there are fewer than two."""
    inside = [(at_us, value) for at_us, value in values if from_us <= at_us <= until_us]
    if len(inside) < 2 or until_us <= from_us:
        return None
    highest = max(value for _, value in inside)
    scale = (HEIGHT - 3) / highest if highest > 0 else 0.0
    points = [
        ((at_us - from_us) / (until_us - from_us) * WIDTH, HEIGHT - 1 - value * scale)
        for at_us, value in inside
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"{points[0][0]:.1f},{HEIGHT} {line} {points[-1][0]:.1f},{HEIGHT}"
    return Spark(line=line, area=area, last=inside[-1][1])


def bar(
    counts: Mapping[str, int], order: Iterable[str], *, width: float = 100.0, least: float = 1.0
) -> list[Part]:
    """Return the parts of a bar of the given ``width``, in this order; none if all counts are 0. A count
    above 0 is at least about ``least`` wide, so that one failed job among a million can be seen; the others
    are narrower for it."""
    present = [(str(name), counts.get(name, 0)) for name in order if counts.get(name, 0) > 0]
    total = sum(count for _, count in present)
    if not total:
        return []
    widths = [max(least, count / total * width) for _, count in present]
    fit = width / sum(widths)
    parts: list[Part] = []
    x = 0.0
    for (name, count), wide in zip(present, widths, strict=True):
        parts.append(Part(name=name, count=count, x=round(x, 2), width=round(wide * fit, 2)))
        x += wide * fit
    return parts
