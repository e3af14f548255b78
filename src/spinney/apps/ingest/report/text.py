"""The report as plain text."""

from collections.abc import Iterator, Sequence

from spinney.apps.ingest.report import lines
from spinney.apps.ingest.report.builder import Report
from spinney.apps.ingest.report.facts import ObjectEnd

FAILURES = 20
"""How many failed objects a text shows by default."""
UNCHANGED = "Objects in which nothing changed"
EVERYTHING = 1_000
"""How many objects of one list a text shows at most: a mail is read by people."""


def text(report: Report, *, failures: int = FAILURES, all_objects: bool = False) -> str:
    """Return the text. ``all_objects``: lists completed objects too, and up to a thousand of each list."""
    limit = EVERYTHING if all_objects else failures
    parts = [
        f"{lines.title(report)}\n",
        *_summary(report),
        *_fault(report),
        *_warnings(report),
        *_changes(report),
    ]
    parts += _listed("Failed objects", report.failed, limit, detailed=True)
    parts += _unchanged(report, limit)
    if all_objects:
        parts += _listed("Objects neither completed nor failed", report.others, limit, detailed=True)
        parts += _listed("Completed objects", report.completed, limit, detailed=False)
    if link := lines.link(report.facts.link):
        parts += ["", f"All of it: {link}"]
    return "\n".join(parts) + "\n"


def _summary(report: Report) -> list[str]:
    return [f"  {name:<17} {value}" for name, value in lines.summary(report)]


def _fault(report: Report) -> list[str]:
    return ["", f"The batch failed: {lines.message(report.facts.fault)}"] if report.facts.fault else []


def _warnings(report: Report) -> list[str]:
    warnings = lines.warnings(report)
    return ["", "Warnings:", *(f"  {warning}" for warning in warnings)] if warnings else []


def _changes(report: Report) -> list[str]:
    if report.changes is None:
        return []
    changes = [f"  {word}: {names}" for word, names in lines.changes(report.changes)]
    return ["", "Since the last report:", *(changes or ["  nothing"])]


def _unchanged(report: Report, limit: int) -> Iterator[str]:
    ends = lines.unchanged(report)
    yield from _heading(UNCHANGED, ends)
    for end in ends[:limit]:
        yield f"  {lines.label(end)} ({lines.known_as(end)})"
        yield f"      {lines.unchanged_reason(end)}"
    yield from _more(ends, limit)


def _heading(title: str, ends: Sequence[ObjectEnd]) -> list[str]:
    return ["", f"{title} ({len(ends):,}):"] if ends else []


def _more(ends: Sequence[ObjectEnd], limit: int) -> list[str]:
    return [f"  … and {len(ends) - limit:,} more"] if len(ends) > limit else []


def _listed(title: str, ends: Sequence[ObjectEnd], limit: int, *, detailed: bool) -> Iterator[str]:
    yield from _heading(title, ends)
    for end in ends[:limit]:
        yield f"  {lines.label(end)} ({lines.known_as(end)})"
        if detailed:
            yield f"      {lines.where(end)}"
        if detailed and end.message:
            yield f"      {lines.message(end.message)}"
        if detailed and (link := lines.link(end.link)):
            yield f"      {link}"
    yield from _more(ends, limit)
