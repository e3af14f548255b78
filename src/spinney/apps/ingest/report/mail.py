"""The report as a mail: the parameters of a ``reports.mail`` job."""

from collections.abc import Mapping, Sequence
from typing import Any

from spinney.apps.ingest.report import lines
from spinney.apps.ingest.report.builder import Report
from spinney.apps.ingest.report.facts import Kind
from spinney.apps.ingest.report.files import Written
from spinney.apps.ingest.report.page import html
from spinney.apps.ingest.report.text import FAILURES, text

ATTACHED = ("completed.json", "failed.json")
ATTACHED_MAX_BYTES = 7_000_000
"""The maximum size of a list; a longer one stays in the batch's folder, and the mail says so."""
_TEXT_MAX = 150_000
"""The maximum characters of a text: parameters of a job, the page among them, have at most a megabyte."""


def key(report: Report, part: str = "") -> str:
    """Return the key under which the report's mail is submitted once. ``part`` distinguishes a mail of the same report
    to other addresses."""
    return f"{report.facts.bid}.report-{report.facts.number}{part}"


def mail(
    report: Report,
    kind: Kind,
    *,
    sender: str,
    to: Sequence[str],
    cc: Sequence[str] = (),
    domain: str,
    files: Mapping[str, Written] | None = None,
    part: str = "",
) -> dict[str, Any] | None:
    """Return the parameters of ``reports.mail``; None when the profile has no mail sent, or names nobody.

    ``domain``: the right side of Message-IDs, always the same for one service. ``files``: from
    ``files.write``, for the kind ``attached``; a list that is too large is not attached, which the text says.
    ``part`` as for ``key``.

    The Message-ID is made of batch and number, so that a number that is sent twice is one message; an update
    replies to the first report, so that mail programs show them together (RFC 5322 section 3.6.4).
    """
    if kind is Kind.SUPPRESSED or not to:
        return None
    chosen = [files[name] for name in ATTACHED if name in files] if files and kind is Kind.ATTACHED else []
    fitting = [file for file in chosen if file.size_bytes <= ATTACHED_MAX_BYTES]
    body = text(report, all_objects=kind is Kind.VERBOSE)
    if len(body) > _TEXT_MAX:
        body = f"{body[:_TEXT_MAX]}\n… (cut here)\n"
    for file in chosen:
        if file not in fitting:
            size = f"{file.size_bytes:,} bytes"
            body += f"\n{file.path.name} is too long for a mail ({size}); it is kept with the batch.\n"
    return {
        "sender": sender,
        "to": list(to),
        "cc": list(cc),
        "subject": lines.title(report),
        "text": body,
        "html": html(report, limit=FAILURES),
        "attachments": [
            {
                "path": str(file.path),
                "sha256": file.sha256,
                "media_type": "application/json",
                "name": file.path.name,
            }
            for file in fitting
        ],
        "message_id": f"<{key(report, part)}@{domain}>",
        "in_reply_to": f"<{report.facts.bid}.report-1{part}@{domain}>" if report.is_update else None,
        "date": report.facts.reported.isoformat(),
    }
