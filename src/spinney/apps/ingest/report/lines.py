"""The wording of the parts of a report, for the text and the page alike; foreign text is made printable.

Names, titles and messages come from depositors and from servers. Every function returns them on one line,
without control characters and of bounded length; escaping for HTML is left to the template.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from spinney.apps.ingest.report.builder import Changes, Report, Totals
from spinney.apps.ingest.report.facts import ObjectEnd
from spinney.errors import counted
from spinney.reports.printable import printable

_LABEL_MAX = 120
_MESSAGE_MAX = 400
"""How many characters of a message a mail shows; ``failed.json`` has the whole message."""
_NAMES = 20
"""How many names are shown for one kind of change."""
_CHANGES = {
    "mended": "mended",
    "newly_failed": "newly failed",
    "added": "added",
    "new_versions": "new version",
    "gone": "no longer counted",
}


def title(report: Report) -> str:
    """Return a summary in one line: the subject of the mail. Update 1 is the second report."""
    facts, totals = report.facts, report.totals
    update = f", update {facts.number - 1}" if report.is_update else ""
    parts = {"unchanged": totals.unchanged, "cancelled": totals.cancelled}
    objects = [counted(totals.objects, "object"), *(f"{n:,} {name}" for name, n in parts.items() if n)]
    return f"{facts.bid}{update}: {verdict(report)} ({', '.join(objects)})"


def verdict(report: Report) -> str:
    """Return the result of the batch in a few words: ``completed``, ``failed``, or how many objects failed or
    are open."""
    totals = report.totals
    if report.facts.fault:
        return "failed"
    if report.state == "completed":
        return "completed"
    failed = f"{totals.failed:,} failed"
    return f"{failed}, {totals.open:,} still open" if totals.open else failed


def summary(report: Report) -> list[tuple[str, str]]:
    """Return names and values, the most important first; those that are zero or empty are left out, except
    for the main counts."""
    facts, totals = report.facts, report.totals
    warned = sum(1 for end in report.completed if end.warnings)
    lines = [
        ("batch", facts.bid),
        ("state", report.state),
        ("profile", cut(facts.profile)),
        ("collection", cut(", ".join(facts.collections))),
        ("submitter", cut(facts.submitter)),
        ("payload", cut(facts.payload)),
        ("accepted", f"{facts.accepted:%Y-%m-%d %H:%M:%S} UTC"),
        ("objects", f"{totals.objects:,}"),
        ("completed", f"{totals.completed:,}"),
        ("unchanged", f"{totals.unchanged:,}" if totals.unchanged else ""),
        ("failed", f"{totals.failed:,}"),
        ("with warnings", f"{warned:,}" if warned else ""),
        ("cancelled", f"{totals.cancelled:,}" if totals.cancelled else ""),
        ("still open", f"{totals.open:,}" if totals.open else ""),
        ("files", f"{totals.files:,}"),
        ("bytes", f"{totals.bytes:,}"),
        ("metadata beside", _beside(totals)),
        ("digests verified", f"{totals.digests_verified:,}"),
        ("time", f"{totals.seconds:,.1f} s"),
    ]
    return [(name, value) for name, value in lines if value]


def _beside(totals: Totals) -> str:
    """Return the number and size of the files that the service made."""
    if not totals.system_files:
        return ""
    return f"{counted(totals.system_files, 'file')}, {counted(totals.system_bytes, 'byte')}"


def warnings(report: Report) -> list[str]:
    """Return the first warnings about the manifest, and how many more there are."""
    all_warnings = report.facts.warnings
    more = [f"and {len(all_warnings) - _NAMES:,} more"] if len(all_warnings) > _NAMES else []
    return [*(message(warning) for warning in all_warnings[:_NAMES]), *more]


def changes(changes_: Changes) -> list[tuple[str, str]]:
    """Return the kinds of changes, with the first names of each."""
    kinds = [(word, getattr(changes_, name)) for name, word in _CHANGES.items()]
    return [(word, names(labels)) for word, labels in kinds if labels]


def names(labels: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(labels) - _NAMES:,} more" if len(labels) > _NAMES else ""
    return ", ".join(cut(label) for label in labels[:_NAMES]) + more


def where(end: ObjectEnd) -> str:
    """Return the state and the stage of an object."""
    position = f"{cut(end.state)} at {cut(end.stage)}" if end.stage else cut(end.state)
    return f"{position}, last successful stage {cut(end.passed)}" if end.passed else position


def unchanged(report: Report) -> list[ObjectEnd]:
    """Return the completed objects of which no version was made."""
    return [end for end in report.completed if end.unchanged]


def unchanged_reason(end: ObjectEnd) -> str:
    """Return the reason why no version was made."""
    return f"nothing changed: {cut(end.ark or '')} had all of this as version {end.version}"


def known_as(end: ObjectEnd) -> str:
    """Return the other names by which an object can be found: ARK and local ids, except for its label, and
    always the number of its job."""
    others = [cut(name) for name in (end.ark, *end.local_ids) if name and name != end.label]
    own = [] if end.label == end.jid else [cut(end.jid)]
    return ", ".join([*others, *own, f"job {end.job}"])


def label(end: ObjectEnd) -> str:
    """Return the name of an object for people, shortened."""
    return cut(end.label)


def message(text: str | None) -> str:
    """Return a message, shortened; all of it is in ``failed.json``."""
    return cut(text or "", _MESSAGE_MAX)


def link(url: str | None) -> str | None:
    """Return the URL if it may be the target of a link: only http and https, so that no page runs a script in it."""
    if url is None or not url.isprintable():
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.netloc else None


def cut(text: str, most: int = _LABEL_MAX) -> str:
    """Return foreign text on one line, printable, and not longer than ``most`` characters."""
    return printable(text, most)
