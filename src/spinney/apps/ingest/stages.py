"""The stages of one object, in the order in which they run.

Each may be cut off anywhere and run again. What one leaves for the next is in the job's folder:

    listing.json    estimating     which files, how large, their given digests, what was left out
    payload/        downloading    the working copy; gone once the bag stands in the archive
    files.json      downloading    path, size and SHA-256 of every file of the working copy
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spinney import Defer, Fail, Hold, Job
from spinney.apps.ingest import bagging, copying, inventory, outbox, paths, sources
from spinney.apps.ingest.application import objects
from spinney.apps.ingest.bagging import Stored
from spinney.apps.ingest.paths import NotAdmitted, shown
from spinney.apps.ingest.sources import Listing, Payload

DISK_LIMIT_VARIABLE = "SPINNEY_INGEST_DISK_LIMIT"
DISK_LIMIT = 0.95
"""How full the working disk may be before objects wait, as a fraction."""
FULL_DISK_DELAY_S = 30.0
PROGRESS_EVERY_S = 0.5


@objects.stage(max_attempts=3)
def estimating(
    job: Job,
    name: str,
    source: Path | None = None,
    listing: str | None = None,
    leave_out: list[str] | None = None,
) -> dict[str, Any]:
    """Find the object's files and their sizes: in the source folder, or as the batch's manifest says."""
    with admission():
        if source is not None:
            root = paths.folder(str(source), "source folder")
            found = sources.list_entry(root, name, leave_out or ())
        elif listing is not None and job.parent is not None:
            text = (job.parent.folder / paths.relative(listing)).read_text()
            found = Listing.from_json(json.loads(text))
        else:
            raise NotAdmitted("an object needs a source folder; submit a batch, or give source=")
    copying.write_durably(job.folder / "listing.json", json.dumps(found.to_json()))
    return {"files": len(found.payloads), "bytes": found.size_bytes, "skipped": len(found.skipped)}


@objects.stage
def provisioning(job: Job) -> None:
    """Wait while the working disk is too full; see that the object finds room on it."""
    limit = _disk_limit()
    needed = job.results["estimating"]["bytes"]
    disk = shutil.disk_usage(job.folder)
    room = disk.used + disk.free  # what is kept for root is no room
    if needed > limit * room:
        raise Hold(f"it needs {needed} bytes, more than the working disk has at all; give it a larger one, release")
    if disk.used > limit * room:
        full = f"the working disk is {disk.used / room:.0%} full, the limit is {limit:.0%}"
        raise Defer(FULL_DISK_DELAY_S, f"{full}; make room", lane=True)
    if disk.used + needed > limit * room:
        raise Defer(FULL_DISK_DELAY_S, f"{needed} bytes find no room on the working disk now; make room")


@objects.stage(max_attempts=3)
def downloading(job: Job) -> dict[str, Any]:
    """Copy the files into the job's folder, and verify the sizes and digests that were given."""
    listing = _read_listing(job)
    payload = job.folder / "payload"
    if payload.exists():
        shutil.rmtree(payload)
    payload.mkdir()
    shows = _shows_progress(job, listing.size_bytes)
    with admission():
        stored = [_fetch(Path(listing.root), p, payload, shows) for p in listing.payloads]
    copying.write_durably(job.folder / "files.json", json.dumps([asdict(s) for s in stored]))
    return {"verified": sum(len(p.digests) for p in listing.payloads)}


@objects.stage(max_attempts=3)
def processing(job: Job, name: str, archive: Path, deposit: str) -> dict[str, Any]:
    """Make the BagIt bag in the archive, hashing every file once more on its way."""
    files = _read_files(job)
    with admission():
        root = paths.folder(str(archive), "archive")
        target = root / paths.component(deposit) / paths.component(name)
        builder = f"{deposit}.{job.id}."
        bagging.sweep_builders(root, builder, but=f"{builder}{job.fence}")
        bagging.place_bag(
            job.folder / "payload",
            files,
            target,
            archive=root,
            builder=f"{builder}{job.fence}",
            info={"External-Identifier": name, "Bag-Group-Identifier": deposit, "Bag-Software-Agent": "Spinney"},
            between=_shows_progress(job, sum(f.size_bytes for f in files)),
        )
    shutil.rmtree(job.folder / "payload", ignore_errors=True)
    return {"bag": f"{deposit}/{name}", "verified": len(files)}


@objects.stage(max_attempts=5)
def recording(job: Job, name: str, archive: Path, deposit: str) -> None:
    """Enter the object and its files in the archive's inventory."""
    files = _read_files(job)
    done = job.results
    entry = inventory.Entry(
        deposit=deposit,
        name=name,
        job_id=job.id,
        bag=done["processing"]["bag"],
        files=len(files),
        size_bytes=sum(f.size_bytes for f in files),
        verified=done["downloading"]["verified"] + done["processing"]["verified"],
        skipped=done["estimating"]["skipped"],
    )
    inventory.record(archive / inventory.FILE_NAME, entry, files)


@objects.stage(max_attempts=5)
def notify(job: Job, name: str, deposit: str) -> None:
    """Leave a message for the submitter in the batch's outbox."""
    message = {"event": "deposited", "job": job.id, "object": name, **job.results["processing"], "deposit": deposit}
    outbox.tell_once((job.parent or job).folder / outbox.FILE_NAME, job.folder / "told", message)


@contextmanager
def admission() -> Iterator[None]:
    """What may not enter fails its job at once: another attempt would meet the same."""
    try:
        yield
    except NotAdmitted as error:
        raise Fail(str(error), retryable=False) from error


def _fetch(root: Path, wanted: Payload, payload: Path, shows: Callable[[int], None]) -> Stored:
    goal = payload / wanted.path
    goal.parent.mkdir(parents=True, exist_ok=True)
    with paths.opened_beneath(root, wanted.source) as source:
        # The engine syncs the job's folder before this stage counts as passed.
        size, sums = copying.copy_hashed(
            source, goal, {"sha256", *wanted.digests}, durable=False, between=shows
        )
    if size != wanted.size_bytes:
        raise NotAdmitted(
            f"'{shown(wanted.source)}' has {size} bytes and not {wanted.size_bytes} as was told; "
            f"mend the file, or retry this job from its stage 'estimating'"
        )
    for algorithm, digest in wanted.digests.items():
        if sums[algorithm] != digest:
            raise NotAdmitted(
                f"'{shown(wanted.source)}' has the {algorithm} {sums[algorithm]} and not {digest}; "
                f"mend the file and retry, or mend the manifest and submit again"
            )
    return Stored(path=wanted.path, size_bytes=size, sha256=sums["sha256"])


def _shows_progress(job: Job, whole_bytes: int) -> Callable[[int], None]:
    """What a copy calls between its chunks: tells people how far it is, and ends it when cancelled."""
    done, told_at = 0, time.monotonic()

    def between(copied_bytes: int) -> None:
        nonlocal done, told_at
        job.check_cancelled()
        done += copied_bytes
        now = time.monotonic()
        if now - told_at >= PROGRESS_EVERY_S:
            told_at = now
            job.progress(min(1.0, done / max(1, whole_bytes)), f"{done:,} of {whole_bytes:,} bytes")

    return between


def _read_listing(job: Job) -> Listing:
    return Listing.from_json(json.loads((job.folder / "listing.json").read_text()))


def _read_files(job: Job) -> list[Stored]:
    return [Stored(**row) for row in json.loads((job.folder / "files.json").read_text())]


def _disk_limit() -> float:
    text = os.environ.get(DISK_LIMIT_VARIABLE, str(DISK_LIMIT))
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit <= 1:
        raise Hold(f"{DISK_LIMIT_VARIABLE}={text!r} is no fraction from 0 to 1; mend it, start the node again, release")
    return limit
