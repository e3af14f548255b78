"""The stage that enters the object and its files in the inventory."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from spinney import Job
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.deposits import unchanged_objects
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.inventory import Entry, File
from spinney.apps.ingest.objects.processing import ark_lock
from spinney.apps.ingest.objects.work import STORED, Work, load_work, read_list
from spinney.files.paths import NotAdmitted

_RECORDED = ("ark", "collection", "owner", "version", "storage", "local_ids", "who", "what", "when")
"""What is recorded as ``processing`` returned it."""


def recording(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Record the version. Idempotent: a version that is recorded already is compared, and left as it is.

    The value: ``files`` and ``bytes`` of the version. The facts are those that ``processing`` returned, not
    those of the present profile, which may have changed since the version was stored.
    """
    work = load_work(job, order)
    processed = job.results["processing"]
    job.lock(ark_lock(processed["ark"]), until="job")
    rows = list(read_list(work.folder / STORED, "processing"))
    value = {"files": len(rows), "bytes": sum(row["size"] for row in rows)}
    _note_in_batch(job, order)
    provenance = processed.get("by", order.model_dump(include={"bid", "jid", "submitter"}))
    with admission():
        if not processed["own"] and _is_recorded(work, processed["ark"], processed["version"]):
            return value
        before = _files(work, processed["ark"], processed["version"] - 1) if order.update else {}
        files = [
            File(
                path=row["path"],
                size_bytes=row["size"],
                digests=row["sums"],
                **_type_and_date(row, before.get(row["path"])),
            )
            for row in rows
        ]
        # As it was stored: the profile may have changed since.
        work.inventory.record(
            Entry(
                **{name: processed[name] for name in _RECORDED},
                submitter=provenance["submitter"],
                batch_id=provenance["bid"],
                job_id=provenance["jid"],
                created=datetime.fromisoformat(processed["created"]),
                files=files,
                verified=job.results["downloading"]["verified"],
            )
        )
    return value


def _note_in_batch(job: Job, order: ObjectOrder) -> None:
    """Note in the batch's folder whether a version was made."""
    processed, batch = job.results["processing"], job.parent
    if batch is None:
        return
    if processed["own"]:
        unchanged_objects.forget(batch.folder, order.jid)
    else:
        unchanged = unchanged_objects.UnchangedVersion(
            ark=processed["ark"], version=processed["version"], local_ids=processed["local_ids"]
        )
        unchanged_objects.keep(batch.folder, order.jid, unchanged)


def _is_recorded(work: Work, ark: str, version: int) -> bool:
    """Return whether a version that another job stored is recorded: that job may have ended before it recorded it."""
    recorded = work.inventory.object(ark)
    return recorded is not None and any(entry.version == version for entry in recorded.versions)


def _files(work: Work, ark: str, version: int) -> Mapping[str, File]:
    """Return the files of a version by path; none where it is not recorded."""
    try:
        return {file.path: file for file in work.inventory.files(ark, version)}
    except NotAdmitted:
        return {}


def _type_and_date(row: Mapping[str, Any], before: File | None) -> dict[str, Any]:
    """Return media type and date of a file. An update keeps the type of a path, and the date of an unchanged file."""
    mime_type, modified = row["mime_type"], row.get("modified")
    if before is not None:
        mime_type = mime_type or before.mime_type
        is_same = all(
            before.digests.get(algorithm, value) == value for algorithm, value in row["sums"].items()
        )
        modified = modified or (before.modified if is_same else None)
    return {"mime_type": mime_type, "modified": modified}
