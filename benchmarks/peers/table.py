"""The figures as a Markdown table, as docs/benchmarks/peers.md has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.peers.catalogue import PEERS, Peer


@dataclass(slots=True)
class Line:
    """What was measured of a peer, and why something is missing."""

    peer: Peer
    versions: Mapping[str, str] = field(default_factory=dict)
    figures: list[Mapping[str, float]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def middle(self, name: str) -> float | None:
        """The median of the rounds in which it was measured."""
        values = [figures[name] for figures in self.figures if name in figures]
        return median(values) if values else None


_COLUMNS = {
    "bulk": ("bulk, jobs/s", ",.0f"),
    "drain": ("drain, jobs/s", ",.0f"),
    "start median": ("idle start, median ms", ".2f"),
    "start p99": ("p99 ms", ".2f"),
    "alone": ("50 jobs alone, ms", ".0f"),
    "behind": ("behind 5,000, ms", ".0f"),
    "times": ("times as long", ".1f"),
}


def merged(runs: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return the lines of several runs as one table."""
    lines = {peer.name: Line(peer) for peer in PEERS}
    for line in (line for run in runs for line in run["lines"]):
        into = lines[line["peer"]["name"]]
        into.versions = into.versions or line["versions"]
        into.figures += line["figures"]
        into.failures += [failure for failure in line["failures"] if failure not in into.failures]
    measured = {line["peer"]["name"] for run in runs for line in run["lines"]}
    return [line for name, line in lines.items() if name in measured]


def markdown(circumstances: Sequence[Mapping[str, object]], lines: Sequence[Line]) -> str:
    """Figures first, then versions, settings and what is kept, one line a peer in each; then what failed."""
    parts = [f"- {', '.join(f'{name} {value}' for name, value in run.items())}" for run in circumstances]
    parts += ["", *_row(["peer", *(title for title, _ in _COLUMNS.values())])]
    parts += _row(["---", *("---:" for _ in _COLUMNS)])
    for line in lines:
        values = [(line.middle(name), form) for name, (_, form) in _COLUMNS.items()]
        parts += _row(
            [line.peer.name, *("–" if value is None else format(value, form) for value, form in values)]
        )
    parts += [
        "",
        *_row(["peer", "versions", "settings", "what it keeps of a job that passed"]),
        *_row(["---"] * 4),
    ]
    for line in lines:
        versions = (
            ", ".join(f"{name} {version}" for name, version in line.versions.items()) or "not installed"
        )
        parts += _row([line.peer.name, versions, line.peer.settings, line.peer.keeps])
    failures = [f"- {line.peer.name}: {failure}" for line in lines for failure in line.failures]
    return "\n".join([*parts, *(["", "Not measured:", "", *failures] if failures else []), ""])


def _row(cells: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"]
