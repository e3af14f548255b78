"""The stages of a batch: read the payload and make a job for each object, wait for these, report.

In the batch's folder:

    payload/NAME              the submitted file
    objects/JID.json          the files of an object that a JSON batch manifest lists itself
    unchanged/JID             the existing version of an object that needed no new one (``unchanged_objects``)
    queries                   the query strings of URLs (``url_queries``)
    reports/NNNN/             a folder for each report (``report``); the last one sent is the base of the next

The report's number follows the last one sent (``job.data["sent"]``), which only the stage after the report changes: if
a stage is killed, the same number is written again. The mail is a job that is created in the transaction that records
the report.
"""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from spinney import Fail, Hold, Job, Warn
from spinney.apps.ingest import manifests
from spinney.apps.ingest.admission import admission, space_awaited
from spinney.apps.ingest.application import batches, objects, outbox
from spinney.apps.ingest.batches import held_batches, outgoing_mails
from spinney.apps.ingest.batches.batch_reports import BatchReports
from spinney.apps.ingest.config import profiles, settings
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits import orders, priorities, url_queries
from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder, Order, Payload
from spinney.apps.ingest.manifests import About, PayloadKind, Row
from spinney.apps.ingest.manifests.model import DESCRIBED
from spinney.errors import BadParameters
from spinney.files import copies, disk_space
from spinney.files.digests import require_digest
from spinney.files.paths import NotAdmitted, component, shown

PAYLOAD = "payload"
_SHOWN = 5
"""How many warnings a message names; the report has more."""
_AT_ONCE = 1000
"""How many objects are kept in memory: a batch may have any number of them."""


@batches.stage(max_attempts=3)
@space_awaited
def processing(job: Job, order: BatchOrder) -> dict[str, Any]:
    """Take the payload into the batch's folder, and make a job for every object that it names.

    The value: the number of ``objects``, and their ``priority``. A payload that is not admitted makes no job:
    the batch reports the reason and fails. Holds the batch while its hold file exists; before anything else
    is done it is noted that the batch has ``BEGUN``, on which a release relies (``held_batches``).
    """
    with admission():
        config = settings.load()
        config.require_home()
        if (reason := held_batches.reason(config, order.bid)) is not None:
            raise Hold(f"{reason}; 'spinney ingest release --batch {order.bid}' lets it continue")
        profile = profiles.load(config, order.profile)
    job.data.setdefault(held_batches.BEGUN, datetime.now(UTC).isoformat())
    try:
        payload = _take_payload(config, job, order)
        warnings = manifests.Warnings()
        count = _count_objects(order, payload, warnings)
        job.data["warnings"] = [str(warning) for warning in warnings.first]
        priority = priorities.of_batch(count) if profile.priority is None else profile.priority
        job.data["priority"] = priority  # the base of its objects' own priorities
        kind = objects.options(priority=priority, collection=profile.collection, submitter=order.submitter)
        rows, made = _objects(job, order, payload), 0
        while page := [{"order": row} for row in islice(rows, _AT_ONCE)]:
            job.spawn_many(kind, page)
            made += len(page)
            job.progress(made / count, f"{made:,} of {count:,} objects")
    except (NotAdmitted, BadParameters) as error:
        _report_refusal(job, config, profile, order, str(error))
        raise Fail(str(error), retryable=False) from error
    value = {"objects": count, "priority": priority}
    if warnings.count:
        raise Warn(f"manifest '{shown(order.name)}', {warnings.summary(_SHOWN)}", value=value)
    return value


@batches.stage(again=True, max_attempts=5)
@space_awaited
def reporting(job: Job, order: BatchOrder) -> dict[str, Any]:
    """Report the results of the objects, and the changes since the last report.

    The value: the ``number`` and ``state`` of the report, and how many ``objects`` there are and have
    ``failed``. Runs again when an object was requeued and has settled. The mails are jobs that are created
    when this stage is recorded.
    """
    with admission():
        config = settings.load()
        reports = _reports(job, config, profiles.load(config, order.profile), order)
        current = reports.build(reports.object_ends(job.children()))
    for key, mail in reports.write(current).items():
        outgoing_mails.set_owner(config, key, job.submit(outbox.mail, **mail))
    failed, total = current.totals.failed, current.totals.objects
    summary = {"number": current.facts.number, "state": current.state, "objects": total, "failed": failed}
    if failed:
        raise Warn(f"{failed} of {total} objects failed", value=summary)
    return summary


@batches.stage(again=True, max_attempts=5)
@space_awaited
def sent(job: Job) -> None:
    """Mark the report as sent: the next one is compared with it."""
    job.data["sent"] = job.results["reporting"]["number"]


# --- the payload ------------------------------------------------------------------------------


def _take_payload(config: Settings, job: Job, order: BatchOrder) -> Path:
    """Move the payload into the batch's own folder, by a link where both are on one disk, and return its
    path.

    The file appears under its name complete and durable, then the folder below ``incoming`` is removed; an
    attempt that was killed in between finds it and continues. Raises NotAdmitted where the payload is in
    neither place, is a link, or has another digest than was declared.
    """
    name = component(order.name)
    target = job.folder / PAYLOAD / name
    if not target.exists():
        source = config.incoming / order.bid / name
        if source.is_symlink() or not source.is_file():
            raise NotAdmitted(f"the payload '{shown(name)}' is no longer in {source.parent}; submit it again")
        target.parent.mkdir(exist_ok=True)
        beside = job.folder / f"{PAYLOAD}.new"  # cannot clash with a depositor's name, or make it too long
        try:
            os.link(source, beside)
        except FileExistsError:
            beside.unlink()
            return _take_payload(config, job, order)
        except OSError:  # another disk, or one without links
            with source.open("rb") as file, disk_space.naming_the_folder(job.folder, source.stat().st_size):
                copies.copy(file, beside)
        beside.replace(target)
        copies.sync_folder(target.parent)
        copies.sync_folder(job.folder)
    shutil.rmtree(config.incoming / order.bid, ignore_errors=True)
    require_digest(target, order.digest, name)
    return target


def _count_objects(order: BatchOrder, payload: Path, warnings: manifests.Warnings) -> int:
    """Return the number of objects. The whole manifest is read before any job is made, so that it can be refused with
    the line of the error."""
    if not order.kind.is_manifest:
        return 1
    rows = sum(1 for _ in manifests.read(payload, order.kind, warnings))
    return rows if order.kind.is_batch else 1


def _objects(job: Job, order: BatchOrder, payload: Path) -> Iterator[dict[str, Any]]:
    """Yield the parameters of each object's job."""
    if not order.kind.is_batch:
        held = Payload(
            kind=order.kind,
            held=f"{PAYLOAD}/{payload.name}",
            name=payload.name,
            size_bytes=payload.stat().st_size,
            digest=order.digest,
        )
        yield _object(order, 1, held, order.about)
        return
    kind = order.kind.of_rows
    with url_queries.writing(job.folder) as put:
        for number, row in enumerate(manifests.read(payload, order.kind), 1):
            yield _object(order, number, _of_row(job, order, kind, row, number, put), row.about)


def _of_row(
    job: Job, order: BatchOrder, kind: PayloadKind, row: Row, number: int, put: url_queries.Put
) -> Payload:
    """Return the payload of a batch manifest's row. The files that the row lists itself are written into the batch's
    folder; the query of its URL is kept by ``put``."""
    held, (url, query) = None, put(row.url)
    if row.files:
        held = f"objects/{orders.jid(order.bid, number)}.json"
        (job.folder / "objects").mkdir(exist_ok=True)
        with (job.folder / held).open("wb") as out:
            manifests.write_json(
                row.files, PayloadKind.OBJECT_MANIFEST, out
            )  # synced with the folder by the engine
    described = {name: getattr(row, name) for name in DESCRIBED}
    return Payload(kind=kind, url=None if held else url, query=query, held=held, **described)


def _object(order: BatchOrder, number: int, payload: Payload, about: About) -> dict[str, Any]:
    """Return the parameters of an object's job, without those that have their default."""
    shared = {name: getattr(order, name) for name in Order.model_fields} | {"about": about}
    object_order = ObjectOrder(jid=orders.jid(order.bid, number), payload=payload, **shared)
    return object_order.model_dump(exclude_defaults=True)


# --- the report -------------------------------------------------------------------------------


def _reports(job: Job, config: Settings, profile: Profile, order: BatchOrder) -> BatchReports:
    """Return the reports of a batch, by its job."""
    return BatchReports(
        job_id=job.id, folder=job.folder, data=job.data, config=config, profile=profile, order=order
    )


def _report_refusal(job: Job, config: Settings, profile: Profile, order: BatchOrder, why: str) -> None:
    """Report a batch that fails before it has objects, and so never reaches its report stage. The mails are submitted
    under a key, as this attempt will not pass."""
    reports = _reports(job, config, profile, order)
    refusal = reports.build((), fault=why)
    for key, mail in reports.write(refusal).items():
        outgoing_mails.set_owner(config, key, job.submit(outbox.mail.options(key=key, forever=True), **mail))
    job.data["sent"] = refusal.facts.number
