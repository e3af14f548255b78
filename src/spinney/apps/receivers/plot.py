"""Hits over time as a picture (SVG): a row for each tag, a mark for each hour in which it was heard."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from spinney.apps.receivers.detection.source_files import CLOCK_SET_S
from spinney.errors import counted

_WIDTH, _LEFT, _TOP, _ROW = 900, 140, 40, 22
_TAGS_MAX = 200  # rows of the picture
HOUR_S = 3600


def svg(title: str, counts: Sequence[tuple[str, int, int]]) -> str:
    """Return the picture of how many hits of each tag there are in each hour. ``counts``: tag, hours since
    1970 UTC, and number, in any order. At most 200 tags are drawn, the most often heard ones, by name; the
    heading counts all."""
    numbers: dict[str, int] = {}
    for tag, _, number in counts:
        numbers[tag] = numbers.get(tag, 0) + number
    tags = sorted(sorted(numbers, key=lambda tag: -numbers[tag])[:_TAGS_MAX])
    row_of = {tag: row for row, tag in enumerate(tags)}
    every_hour = {(tag, hour): number for tag, hour, number in counts if tag in row_of}
    hours = {at: number for at, number in every_hour.items() if at[1] * HOUR_S >= CLOCK_SET_S} or every_hour
    undrawn = sum(every_hour.values()) - sum(hours.values())
    first = min((hour for _, hour in hours), default=0)
    last = max((hour for _, hour in hours), default=0) + 1
    scale = (_WIDTH - _LEFT - 10) / (last - first)
    height = _TOP + _ROW * len(tags) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="10" y="20" font-size="14">{escape(title)}: '
        f"{counted(sum(numbers.values()), 'hit')} of {counted(len(numbers), 'tag')}"
        f"{f', {undrawn:,} of them before the clock was set, and not drawn' if undrawn else ''}</text>"
    ]
    for tag, row in row_of.items():
        y = _TOP + _ROW * row
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(tag)}</text>')
    for (tag, hour), number in sorted(hours.items()):
        x, y = _LEFT + (hour - first) * scale, _TOP + _ROW * row_of[tag] + 2
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{max(2.0, scale):.1f}" height="{_ROW - 6}" fill="#26547c">'
            f"<title>{escape(tag)}, {_moment(hour)}: {counted(number, 'hit')}</title></rect>"
        )
    if hours:
        parts.append(
            f'<text x="{_LEFT}" y="{height - 8}">{_moment(first)}</text>'
            f'<text x="{_WIDTH - 10}" y="{height - 8}" text-anchor="end">{_moment(last)}</text>'
        )
    return "".join([*parts, "</svg>\n"])


def _moment(hour: int) -> str:
    """Return the beginning of an hour since 1970 as text."""
    return f"{datetime.fromtimestamp(hour * HOUR_S, UTC):%Y-%m-%d %H:%M} UTC"
