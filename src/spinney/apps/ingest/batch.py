"""The stages of a batch: read what is to be deposited, wait for the objects, report.

In the batch's folder:

    manifest/DIGEST.json      the files of an object, when the batch came as a manifest
    entries.json              what of the source was left out or refused
    reports/NNNN.json         every report made; the last that was told is the base of the next
    report.json, report.txt   the newest
    outbox.jsonl              messages for the submitter
"""

import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spinney import Fail, Job, Warn
from spinney.apps.ingest import copying, inventory, outbox, paths, reporting, sources
from spinney.apps.ingest.application import batches, objects
from spinney.apps.ingest.paths import NotAdmitted, shown
from spinney.apps.ingest.reporting import ObjectEnd
from spinney.apps.ingest.stages import admission

_DIGEST_MARK = "sha256:"


@batches.stage
def reading(
    job: Job,
    archive: Path,
    source: Path | None = None,
    manifest: Path | None = None,
    within: Path | None = None,
    leave_out: list[str] | None = None,
) -> dict[str, int]:
    """Make a job for every object of a source folder or a manifest.

    ``archive`` is where the bags go. ``within``: the payloads of a manifest must lie below it (the
    manifest's own folder unless given). ``leave_out``: names of entries that are no part of it.
    """
    if (source is None) == (manifest is None):
        raise Fail("give either source= (a folder) or manifest= (a file), and submit again", retryable=False)
    job.data.setdefault("begun", time.time())
    deposit = job.data.setdefault("deposit", _deposit_name(job.id))
    common = {"archive": str(_make_archive(archive)), "deposit": deposit}
    with admission():
        if source is not None:
            names, rows = _folder_rows(job, source, archive, leave_out or [])
        else:
            assert manifest is not None
            names, rows = _manifest_rows(job, manifest, within)
    # With keys a batch that reads again (after a crash, or because an operator reruns it to take in
    # what is new) finds the objects that it has already made.
    job.spawn_many(objects, [row | common for row in rows], keys=[_key(n) for n in names])
    return {"objects": len(names)}


@batches.stage(again=True, max_attempts=3)
def report(job: Job, archive: Path) -> dict[str, Any]:
    """Sum up what became of the objects, and say what changed since the last report."""
    told = job.data.get("told", 0)
    entries = json.loads((job.folder / "entries.json").read_text())
    deposit = job.data["deposit"]
    found = reporting.build(
        batch=job.id,
        deposit=deposit,
        number=told + 1,
        archive=str(archive),
        seconds=time.time() - job.data["begun"],
        ends=list(_ends(job)),
        entries=inventory.entries(archive / inventory.FILE_NAME, deposit),
        refused=entries["refused"],
        skipped=entries["skipped"],
        before=_read_report(job, told) if told else None,
    )
    _write_report(job, found)
    summary = {"number": found["number"], "objects": found["objects"], "failures": reporting.faults(found)}
    if summary["failures"]:
        raise Warn(f"{summary['failures']} of {summary['objects']} objects failed", value=summary)
    return summary


@batches.stage(again=True, max_attempts=3)
def notify(job: Job) -> None:
    """Tell the submitter of the report; from now on it is what the next one is compared with."""
    summary = job.results["report"]
    message = {"event": "report", "job": job.id, "report": str(job.folder / "report.txt"), **summary}
    marker = job.folder / "reports" / f"{summary['number']:04d}.told"
    outbox.tell_once(job.folder / outbox.FILE_NAME, marker, message)
    job.data["told"] = summary["number"]


def _folder_rows(
    job: Job, source: Path, archive: Path, leave_out: list[str]
) -> tuple[list[str], list[dict[str, Any]]]:
    root = paths.folder(str(source), "source folder")
    paths.apart(root, archive.resolve(), "source and archive")
    paths.apart(root, job.folder.resolve(), "source and job folder")
    found = sources.read_folder(root, leave_out)
    _write_entries(job, found.refused, found.skipped)
    rows = [{"name": n, "source": str(root), "leave_out": leave_out} for n in found.names]
    return list(found.names), rows


def _manifest_rows(
    job: Job, manifest: Path, within: Path | None
) -> tuple[list[str], list[dict[str, Any]]]:
    root = paths.folder(str(within or manifest.parent), "folder of the payloads")
    if not manifest.is_file():
        raise NotAdmitted(f"there is no manifest '{shown(str(manifest))}'; mend the path and submit again")
    names: list[str] = []
    listings = job.folder / "manifest"
    listings.mkdir(exist_ok=True)
    for name, listing in sources.read_manifest(manifest, root):
        copying.write_durably(listings / _listing_name(name), json.dumps(listing.to_json()))
        names.append(name)
    _write_entries(job, (), ())
    return names, [{"name": n, "listing": f"manifest/{_listing_name(n)}"} for n in names]


def _write_entries(job: Job, refused: tuple[str, ...], skipped: tuple[str, ...]) -> None:
    told = {"refused": refused, "skipped": skipped}
    copying.write_durably(job.folder / "entries.json", json.dumps(told))


def _make_archive(archive: Path) -> Path:
    if not archive.is_absolute():
        raise Fail(f"the archive '{archive}' is not absolute; give the whole path and submit again", retryable=False)
    archive.mkdir(parents=True, exist_ok=True)
    return archive.resolve()


def _deposit_name(job_id: int) -> str:
    """Unique over batches and stores, as several may share one archive."""
    return f"{datetime.now(UTC):%Y%m%d}-{job_id:06d}-{secrets.token_hex(3)}"


def _listing_name(name: str) -> str:
    return f"{_digest(name)}.json"


def _key(name: str) -> str:
    """The object's name where it is a lawful key, else its digest."""
    plain = name.isprintable() and not name.startswith(_DIGEST_MARK)
    return name if plain else f"{_DIGEST_MARK}{_digest(name)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _ends(job: Job) -> Iterator[ObjectEnd]:
    for child in job.children():
        yield ObjectEnd(child.params["name"], child.id, str(child.state), child.stage, child.message)


def _read_report(job: Job, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((job.folder / "reports" / f"{number:04d}.json").read_text())
    return found


def _write_report(job: Job, found: dict[str, Any]) -> None:
    reports = job.folder / "reports"
    reports.mkdir(exist_ok=True)
    text = json.dumps(found, indent=2) + "\n"
    copying.write_durably(reports / f"{found['number']:04d}.json", text)
    copying.write_durably(job.folder / "report.json", text)
    copying.write_durably(job.folder / "report.txt", reporting.text(found))
