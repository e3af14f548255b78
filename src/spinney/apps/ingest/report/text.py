"""The report of a batch as plain text, for mails and terminals. Its lines are not wrapped, so that URLs stay
whole."""

from collections.abc import Callable, Iterator, Sequence

from spinney.apps.ingest.report import lines
from spinney.apps.ingest.report.builder import Report
from spinney.apps.ingest.report.facts import ObjectEnd

FAILURES = 20
"""How many objects of one list a text shows by default."""
UNCHANGED = "Objects in which nothing changed"
"""The title of the list of objects of which no version was made."""
EVERYTHING = 1_000
"""How many objects of one list a text shows at most: a mail is read by people."""


def text(report: Report, *, all_objects: bool = False) -> str:
    """Return the text, which ends with a line break.

    ``all_objects``: it lists completed objects too, and up to ``EVERYTHING`` of each list, not ``FAILURES``. Texts of
    depositors are shortened (``lines``).
    """
    limit = EVERYTHING if all_objects else FAILURES
    parts = [f"{lines.title(report)}\n", *(f"  {name:<17} {value}" for name, value in lines.summary(report))]
    if report.facts.fault:
        parts += ["", f"The batch failed: {lines.message(report.facts.fault)}"]
    if warnings := lines.warnings(report):
        parts += ["", "Warnings:", *(f"  {warning}" for warning in warnings)]
    if report.changes is not None:
        changes = [f"  {word}: {names}" for word, names in lines.changes(report.changes)]
        parts += ["", "Since the last report:", *(changes or ["  nothing"])]
    parts += _listed("Failed objects", report.failed, limit, _details)
    parts += _listed(UNCHANGED, lines.unchanged(report), limit, lambda end: [lines.unchanged_reason(end)])
    if all_objects:
        parts += _listed("Objects neither completed nor failed", report.others, limit, _details)
        parts += _listed("Completed objects", report.completed, limit, lambda end: [])
    if link := lines.link(report.facts.link):
        parts += ["", f"More about this batch: {link}"]
    return "\n".join(parts) + "\n"


def _listed(
    title: str, ends: Sequence[ObjectEnd], limit: int, details: Callable[[ObjectEnd], list[str]]
) -> Iterator[str]:
    """Yield the lines of a list of objects under its title; ``details`` has further lines for each object."""
    if not ends:
        return
    yield from ("", f"{title} ({len(ends):,}):")
    for end in ends[:limit]:
        yield f"  {lines.label(end)} ({lines.known_as(end)})"
        yield from (f"      {detail}" for detail in details(end))
    if len(ends) > limit:
        yield f"  … and {len(ends) - limit:,} more"


def _details(end: ObjectEnd) -> list[str]:
    """Return the lines about an object below its name: state and stage, message, link."""
    message = [lines.message(end.message)] if end.message else []
    link = lines.link(end.link)
    return [lines.where(end), *message, *([link] if link else [])]
