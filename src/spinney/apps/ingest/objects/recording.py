"""The object and its files, entered in the inventory."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spinney import Job
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.batches import unchanged_objects
from spinney.apps.ingest.config import open_resources
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.files.paths import NotAdmitted
from spinney.apps.ingest.inventory import Entry, File
from spinney.apps.ingest.objects.processing import ark_lock
from spinney.apps.ingest.objects.work import STORED, read_list, work

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory import Inventory


def recording(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Idempotent: what is recorded already is compared, and left as it is."""
    at = work(job, order)
    done = job.results["processing"]
    job.lock(ark_lock(done["ark"]), until="job")
    rows = list(read_list(at.folder / STORED, "processing"))
    value = {"files": len(rows), "bytes": sum(row["size"] for row in rows)}
    _note(job, order)
    by = done.get("by", order.model_dump(include={"bid", "jid", "submitter"}))
    with admission():
        inventory = open_resources.inventory(at.settings)
        if not done["own"] and _is_recorded(inventory, done["ark"], done["version"]):
            return value
        before = _files(inventory, done["ark"], done["version"] - 1) if order.update else {}
        files = [
            File(
                path=row["path"],
                size_bytes=row["size"],
                digests=row["sums"],
                **_said(row, before.get(row["path"])),
            )
            for row in rows
        ]
        # As it was stored: the profile may say otherwise by now.
        inventory.record(
            Entry(
                ark=done["ark"],
                collection=done["collection"],
                owner=done["owner"],
                submitter=by["submitter"],
                batch_id=by["bid"],
                job_id=by["jid"],
                version=done["version"],
                created=datetime.fromisoformat(done["created"]),
                storage=done["storage"],
                files=files,
                local_ids=done["local_ids"],
                who=done["who"],
                what=done["what"],
                when=done["when"],
                verified=job.results["downloading"]["verified"],
            )
        )
    return value


def _note(job: Job, order: ObjectOrder) -> None:
    """Let the batch know whether a version was made."""
    done, batch = job.results["processing"], job.parent
    if batch is None:
        return
    if done["own"]:
        unchanged_objects.forget(batch.folder, order.jid)
    else:
        found = unchanged_objects.Standing(
            ark=done["ark"], version=done["version"], local_ids=done["local_ids"]
        )
        unchanged_objects.keep(batch.folder, order.jid, found)


def _is_recorded(inventory: "Inventory", ark: str, version: int) -> bool:
    """Whether the version that stands is: who brought it may have ended before it came to that."""
    known = inventory.object(ark)
    return known is not None and any(each.version == version for each in known.versions)


def _files(inventory: "Inventory", ark: str, version: int) -> Mapping[str, File]:
    """Those of the version before; none where that is not recorded."""
    try:
        return {file.path: file for file in inventory.files(ark, version)}
    except NotAdmitted:
        return {}


def _said(row: Mapping[str, Any], before: File | None) -> dict[str, Any]:
    """Media type and date. An update carries on the type of a path, and the date of a file that is the same."""
    mime_type, modified = row["mime_type"], row.get("modified")
    if before is not None:
        mime_type = mime_type or before.mime_type
        is_same = all(
            before.digests.get(algorithm, value) == value for algorithm, value in row["sums"].items()
        )
        modified = modified or (before.modified if is_same else None)
    return {"mime_type": mime_type, "modified": modified}
