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
from collections.abc import Iterable, Iterator, MutableMapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from spinney import Fail, Hold, Job, Warn
from spinney.apps.ingest import manifests, report
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.application import batches, objects, outbox, passed
from spinney.apps.ingest.batches import held_batches, outgoing_mails, unchanged_objects
from spinney.apps.ingest.config import open_resources, profiles, settings
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits import orders, priorities, url_queries
from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder, Order, Payload
from spinney.apps.ingest.inventory import Recorded
from spinney.apps.ingest.manifests import About, PayloadKind, Row
from spinney.apps.ingest.space_waits import awaited
from spinney.errors import BadParameters
from spinney.files import copies, disk_space
from spinney.files.digests import Sums
from spinney.files.paths import SYSTEM, NotAdmitted, component, shown
from spinney.jobs import Child
from spinney.reports.addresses import mailbox

PAYLOAD = "payload"
NOTIFIED = ".notified"
"""The part of the key of a mail to the addresses that the depositor named."""
_SHOWN = 5
"""How many warnings a message names; the report has more."""
_AT_ONCE = 1000
"""How many objects are kept in memory: a batch may have any number of them."""


@batches.stage(max_attempts=3)
@awaited
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
        rows = _objects(job, order, payload)
        while page := [{"order": row} for row in islice(rows, _AT_ONCE)]:
            job.spawn_many(kind, page)
    except (NotAdmitted, BadParameters) as error:
        _report_refusal(job, config, profile, order, str(error))
        raise Fail(str(error), retryable=False) from error
    value = {"objects": count, "priority": priority}
    if warnings.count:
        raise Warn(f"manifest '{shown(order.name)}', {warnings.summary(_SHOWN)}", value=value)
    return value


@batches.stage(again=True, max_attempts=5)
@awaited
def reporting(job: Job, order: BatchOrder) -> dict[str, Any]:
    """Report the results of the objects, and the changes since the last report.

    The value: the ``number`` and ``state`` of the report, and how many ``objects`` there are and have
    ``failed``. Runs again when an object was requeued and has settled. The mails are jobs that are created
    when this stage is recorded.
    """
    with admission():
        config = settings.load()
        profile = profiles.load(config, order.profile)
    last_number = job.data.get("sent", 0)
    with admission():
        ends = object_ends(job.folder, job.children(), config, order)
        report_ = report_of(
            job.id, job.folder, job.data, config, profile, order, ends, number=last_number + 1
        )
    for key, mail in _write(job, config, profile, order, report_).items():
        outgoing_mails.set_owner(config, key, job.submit(outbox.mail, **mail))
    failed = report_.totals.failed
    total = report_.totals.objects
    summary = {"number": last_number + 1, "state": report_.state, "objects": total, "failed": failed}
    if failed:
        raise Warn(f"{failed} of {total} objects failed", value=summary)
    return summary


@batches.stage(again=True, max_attempts=5)
@awaited
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
    if order.digest is not None:
        sums = Sums([order.digest.algorithm])
        with target.open("rb") as file:
            sums.read(file)
        sums.require(order.digest, name)
    return target


def _count_objects(order: BatchOrder, payload: Path, warnings: manifests.Warnings) -> int:
    """Return the number of objects. The whole manifest is read before any job is made, so that it can be refused with
    the line of the error."""
    if not order.kind.is_manifest:
        return 1
    rows = sum(1 for _ in manifests.read(payload, order.kind, warnings).rows)
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
        for number, row in enumerate(manifests.read(payload, order.kind).rows, 1):
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
    return Payload(
        kind=kind,
        url=None if held else url,
        query=query,
        held=held,
        name=row.name,
        size_bytes=row.size_bytes,
        digest=row.digest,
        mime_type=row.mime_type,
        modified=row.modified,
    )


def _object(order: BatchOrder, number: int, payload: Payload, about: About) -> dict[str, Any]:
    """Return the parameters of an object's job, without those that have their default."""
    shared = {name: getattr(order, name) for name in Order.model_fields} | {"about": about}
    object_order = ObjectOrder(jid=orders.jid(order.bid, number), payload=payload, **shared)
    return object_order.model_dump(exclude_defaults=True)


# --- the report -------------------------------------------------------------------------------


def report_of(
    job_id: int,
    folder: Path,
    data: MutableMapping[str, Any],
    config: Settings,
    profile: Profile,
    order: BatchOrder,
    ends: Iterable[report.ObjectEnd],
    *,
    number: int,
    fault: str | None = None,
) -> report.Report:
    """Build the report with this number, compared with the one before it. ``folder`` and ``data``: those of the batch's
    job. ``ends``: the results of the objects (``object_ends``). ``fault``: why the batch failed as a whole."""
    # The time at which the report was first made is kept as the date of its mail.
    reported = data.setdefault(f"reported {number}", datetime.now(UTC).isoformat())
    facts = report.BatchFacts(
        bid=order.bid,
        job=job_id,
        profile=profile.name,
        submitter=order.submitter,
        collections=profile.collections,
        payload=order.name,
        accepted=order.accepted or datetime.fromisoformat(data[held_batches.BEGUN]),
        reported=datetime.fromisoformat(reported),
        number=number,
        fault=fault,
        link=config.public_address(f"jobs/{job_id}"),
        warnings=tuple(data.get("warnings", ())),
    )
    before = report.read_previous(_report_folder(folder, number - 1)) if number > 1 else None
    return report.build(facts, ends, before)


def _report_folder(folder: Path, number: int) -> Path:
    """Return the folder of a report in that of its batch, by its number with four digits, so that a listing is in
    order."""
    return folder / "reports" / f"{number:04d}"


def object_ends(
    folder: Path, children: Iterable[Child], config: Settings, order: BatchOrder
) -> Iterator[report.ObjectEnd]:
    """Yield the result of each object of a batch, whose folder and subjobs these are: from its job, and from the
    inventory or the notes of unchanged objects."""
    recorded = {
        e.version.job_id: e for e in open_resources.inventory(config).batch_entries(order.bid, apart=SYSTEM)
    }
    unchanged = unchanged_objects.read(folder)
    for child in children:
        child_order = ObjectOrder.model_validate(child.params["order"])
        is_completed = child.state == "completed"
        stage = None if is_completed else child.stage
        same = unchanged.get(child_order.jid) if is_completed else None
        entry = None if same else recorded.get(child_order.jid)
        about = child_order.about
        yield report.ObjectEnd(
            jid=child_order.jid,
            job=child.id,
            state=str(child.state),
            unchanged=same is not None,
            title=about.title or child_order.payload.name,
            passed=passed(child.state, stage),
            stage=stage,
            message=child.message,
            warnings=child.warnings,
            link=config.public_address(f"jobs/{child.id}"),
            **(_stored(entry) if entry else _known(same, about)),
        )


def _stored(entry: Recorded) -> dict[str, Any]:
    """Return the parts of an object's result that describe its new version."""
    version = entry.version
    return {
        "local_ids": tuple(entry.local_ids),
        "ark": entry.ark,
        "version": version.version,
        "files": version.files - entry.apart_files,
        "bytes": version.size_bytes - entry.apart_bytes,
        "system_files": entry.apart_files,
        "system_bytes": entry.apart_bytes,
        "verified": version.verified,
    }


def _known(same: unchanged_objects.UnchangedVersion | None, about: About) -> dict[str, Any]:
    """Return the same of an object without a new version: by its existing version, or by its description."""
    if same is not None:
        return {"local_ids": tuple(same.local_ids), "ark": same.ark, "version": same.version}
    return {"local_ids": about.local_ids, "ark": about.primary_id}


def _write(
    job: Job, config: Settings, profile: Profile, order: BatchOrder, report_: report.Report
) -> dict[str, dict[str, Any]]:
    """Write the files of the report, and return the parameters of its mails by their keys: one to the addresses in the
    profile, and one to those that the depositor named, so that neither see the other addresses."""
    files = report.write(report_, _report_folder(job.folder, report_.facts.number))
    if config.mail is None:
        return {}
    admins = config.mail.admins if profile.report.admins is None else profile.report.admins
    depositors = profile.report.batch
    to, cc = depositors or admins, admins if depositors else ()
    others = {mailbox(address).addr_spec for address in (*to, *cc)}
    named = [address for address in order.notify if mailbox(address).addr_spec not in others]
    mails = {}
    for part, to_, cc_ in (("", to, cc), (NOTIFIED, named, ())):
        mail = report.mail(
            report_,
            profile.report.kind,
            sender=config.mail.sender,
            to=to_,
            cc=cc_,
            domain=config.mail.domain,
            files=files,
            part=part,
        )
        if mail is not None:
            key = report.key(report_, part)
            mail["attachments"] = outgoing_mails.keep(config, key, mail["attachments"])
            mails[key] = mail
    return mails


def _report_refusal(job: Job, config: Settings, profile: Profile, order: BatchOrder, why: str) -> None:
    """Report a batch that fails before it has objects, and so never reaches its report stage. The mails are submitted
    under a key, as this attempt will not pass."""
    number = job.data.get("sent", 0) + 1
    report_ = report_of(job.id, job.folder, job.data, config, profile, order, (), number=number, fault=why)
    for key, mail in _write(job, config, profile, order, report_).items():
        outgoing_mails.set_owner(config, key, job.submit(outbox.mail.options(key=key, forever=True), **mail))
    job.data["sent"] = number
