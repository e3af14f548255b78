"""The report of a batch: what was deposited, what failed, and what changed since the last report.

Pure: values in, values and text out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from spinney.apps.ingest.inventory import Entry
from spinney.apps.ingest.paths import shown

LISTED = 20
"""Names of one kind that the text shows; the JSON has all."""


class ObjectEnd(NamedTuple):
    """What became of one object's job."""

    name: str
    job_id: int
    state: str
    stage: str | None
    message: str | None


def build(
    *,
    batch: int,
    deposit: str,
    number: int,
    archive: str,
    seconds: float,
    ends: Sequence[ObjectEnd],
    entries: Iterable[Entry],
    refused: Sequence[str],
    skipped: Sequence[str],
    before: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The report as JSON values; ``before`` is the last one that was told, when there is one."""
    completed = {e.job_id for e in ends if e.state == "completed"}
    kept = [e for e in entries if e.job_id in completed]
    report = {
        "batch": batch,
        "deposit": deposit,
        "number": number,
        "archive": archive,
        "objects": len(ends) + len(refused),
        "completed": sorted(e.name for e in ends if e.job_id in completed),
        "failures": [e._asdict() for e in ends if e.job_id not in completed],
        "refused": list(refused),
        "skipped": list(skipped),
        "skipped_entries": len(skipped) + sum(e.skipped for e in kept),
        "files": sum(e.files for e in kept),
        "bytes": sum(e.size_bytes for e in kept),
        "digests_verified": sum(e.verified for e in kept),
        "seconds": round(seconds, 1),
    }
    if before is not None:
        report["changes"] = changes(before, report)
    return report


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, list[str]]:
    """What is otherwise than in the report before, by name of object."""
    old_good, good = set(before["completed"]), set(now["completed"])
    old_bad, bad = _failed(before), _failed(now)
    return {
        "mended": sorted(good & old_bad),
        "failed": sorted(bad - old_bad),
        "added": sorted(good - old_good - old_bad),
        "gone": sorted((old_good | old_bad) - good - bad),
    }


def _failed(report: Mapping[str, Any]) -> set[str]:
    return {failure["name"] for failure in report["failures"]}


def faults(report: Mapping[str, Any]) -> int:
    """How many objects did not make it."""
    return len(report["failures"]) + len(report["refused"])


def text(report: Mapping[str, Any]) -> str:
    """The report as people read it."""
    update = f", update {report['number'] - 1}" if report["number"] > 1 else ""
    lines = [
        f"Batch {report['batch']}{update}: {_verdict(report)}",
        "",
        f"  objects           {report['objects']:>15,}",
        f"  completed         {len(report['completed']):>15,}",
        f"  failures          {faults(report):>15,}",
        f"  files             {report['files']:>15,}",
        f"  bytes             {report['bytes']:>15,}",
        f"  digests verified  {report['digests_verified']:>15,}",
        f"  entries left out  {report['skipped_entries']:>15,}",
        f"  time              {report['seconds']:>13,.1f} s",
        f"  archive           {shown(report['archive'])}/{report['deposit']}",
    ]
    if "changes" in report:
        lines += ["", "Since the last report:", *_changes(report["changes"])]
    lines += _listed("Failures:", [_failure(f) for f in report["failures"]])
    lines += _listed("Refused:", report["refused"])
    lines += _listed("Left out:", report["skipped"])
    return "\n".join(lines) + "\n"


def _verdict(report: Mapping[str, Any]) -> str:
    count = faults(report)
    return "complete" if not count else f"{count} of {report['objects']} objects failed"


def _changes(found: Mapping[str, Sequence[str]]) -> list[str]:
    told = [f"  {what}: {_names(names)}" for what, names in found.items() if names]
    return told or ["  nothing"]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(shown(n) for n in names[:LISTED]) + more


def _failure(failure: Mapping[str, Any]) -> str:
    place = f"{failure['state']} at {failure['stage']}" if failure["stage"] else failure["state"]
    said = f": {shown(failure['message'])}" if failure["message"] else ""
    return f"{shown(failure['name'])} (job {failure['job_id']}) {place}{said}"


def _listed(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    more = [f"  … and {len(rows) - LISTED} more; see report.json"] if len(rows) > LISTED else []
    return ["", title, *(f"  {row}" for row in rows[:LISTED]), *more]
