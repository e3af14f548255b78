"""How the parts of a report are worded, for the text and for the page alike; foreign text made printable."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.report.builder import Changes, Report, Totals
from spinney.apps.ingest.report.facts import ObjectEnd

_LABEL_MAX = 120
_MESSAGE_MAX = 400
"""Characters of one message that a mail shows; ``failed.json`` has it whole."""
_NAMES = 20
"""Names of one kind of change that are shown."""
_CHANGES = {
    "mended": "mended",
    "newly_failed": "newly failed",
    "added": "added",
    "gone": "no longer counted",
}


def title(report: Report) -> str:
    """One line that says all in short."""
    facts, totals = report.facts, report.totals
    update = f", update {facts.number - 1}" if report.is_update else ""
    unchanged = f", {totals.unchanged:,} unchanged" if totals.unchanged else ""
    return f"{facts.bid}{update}: {verdict(report)} ({counted(totals.objects, 'object')}{unchanged})"


def verdict(report: Report) -> str:
    """What became of it."""
    totals = report.totals
    if report.facts.fault:
        return "failed"
    if report.state == "completed":
        return "completed"
    there = f"{totals.failed:,} failed"
    return f"{there}, {totals.open:,} still open" if totals.open else there


def summary(report: Report) -> list[tuple[str, str]]:
    """Names and values, in the order in which people ask for them."""
    facts, totals = report.facts, report.totals
    warned = sum(1 for end in report.completed if end.warnings)
    told = [
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
    return [(name, value) for name, value in told if value]


def _beside(totals: Totals) -> str:
    """What the service made."""
    if not totals.system_files:
        return ""
    return f"{counted(totals.system_files, 'file')}, {counted(totals.system_bytes, 'byte')}"


def warnings(report: Report) -> list[str]:
    """The first of those of the manifest, and how many more are told elsewhere."""
    told = report.facts.warnings
    more = [f"and {len(told) - _NAMES:,} more"] if len(told) > _NAMES else []
    return [*(message(one) for one in told[:_NAMES]), *more]


def changes(found: Changes) -> list[tuple[str, str]]:
    """What has changed, and the first names of each kind."""
    told = [(word, getattr(found, name)) for name, word in _CHANGES.items()]
    return [(word, names(labels)) for word, labels in told if labels]


def names(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _NAMES:,} more" if len(labels) > _NAMES else ""
    return ", ".join(cut(label) for label in labels[:_NAMES]) + more


def where(end: ObjectEnd) -> str:
    """How far an object came."""
    at = f"{cut(end.state)} at {cut(end.stage)}" if end.stage else cut(end.state)
    return f"{at}, last successful stage {cut(end.passed)}" if end.passed else at


def unchanged(report: Report) -> list[ObjectEnd]:
    """Completed objects of which no version was made."""
    return [end for end in report.completed if end.unchanged]


def stands(end: ObjectEnd) -> str:
    """Why no version was made."""
    return f"nothing changed: {cut(end.ark or '')} had all of this as version {end.version}"


def known_as(end: ObjectEnd) -> str:
    """By which other names an object can be found."""
    others = [cut(name) for name in (end.ark, *end.local_ids) if name and name != end.label]
    own = [] if end.label == end.jid else [cut(end.jid)]
    return ", ".join([*others, *own, f"job {end.job}"])


def label(end: ObjectEnd) -> str:
    return cut(end.label)


def message(text: str | None) -> str:
    return cut(text or "", _MESSAGE_MAX)


def link(url: str | None) -> str | None:
    """The URL when it may stand behind a link: nothing but http and https, so that no page runs what it names."""
    if url is None or not url.isprintable():
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.netloc else None


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def cut(text: str, most: int = _LABEL_MAX) -> str:
    """Foreign text on one line, printable, and not longer than this."""
    plain = shown(text[: most + 1])
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"
