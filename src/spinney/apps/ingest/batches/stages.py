"""The stages of a batch: read the payload and make a job an object, wait for these, report.

In the batch's folder:

    payload/NAME              what was handed in
    objects/JID.json          the files of an object that a JSON batch manifest lists itself
    unchanged/JID             the version that stood where an object brought none (``unchanged_objects``)
    queries                   what URLs have behind their '?' (``url_queries``)
    reports/NNNN/             a report each (``report``); the last that was told is the base of the next

The report's number is taken from the last that was told (``job.data["told"]``), which only the stage behind the report
moves: killed anywhere, the same number is written again. The mail is a job that is born in the transaction that
records the report.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, MutableMapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from spinney import Fail, Hold, Job, Warn
from spinney.apps.ingest import manifests, report
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.application import STAGES, batches, objects, outbox
from spinney.apps.ingest.batches import held_batches, outgoing_mails, unchanged_objects
from spinney.apps.ingest.config import open_resources, profiles, settings
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits import orders, priorities, url_queries
from spinney.apps.ingest.deposits.orders import BatchOrder, Description, ObjectOrder, Payload, Sum
from spinney.apps.ingest.files import copies, disk_space
from spinney.apps.ingest.files.digests import Sums
from spinney.apps.ingest.files.paths import SYSTEM, NotAdmitted, component, shown
from spinney.apps.ingest.manifests import PayloadKind, Row
from spinney.apps.ingest.space_waits import awaited
from spinney.errors import BadParameters
from spinney.jobs import Child
from spinney.reports.addresses import mailbox

PAYLOAD = "payload"
NOTIFIED = ".notified"
"""In the key of a mail to whom the depositor named."""
_SHOWN = 5
"""Warnings that a message names; the report has more."""
_AT_ONCE = 1000
"""Objects in memory: a batch may have any number of them."""
_OF_ROWS = {
    PayloadKind.SINGLE_FILE_BATCH_MANIFEST: PayloadKind.FILE,
    PayloadKind.CONTAINER_BATCH_MANIFEST: PayloadKind.CONTAINER,
    PayloadKind.BATCH_MANIFEST: PayloadKind.OBJECT_MANIFEST,
}


@batches.stage(max_attempts=3)
@awaited
def processing(job: Job, order: BatchOrder) -> dict[str, Any]:
    """Take the payload into the batch's folder, and make a job for every object that it names."""
    with admission():
        found = settings.load()
        found.require_home()
        if (reason := held_batches.reason(found, order.bid)) is not None:
            raise Hold(f"{reason}; 'spinney ingest release --batch {order.bid}' lets it go on")
        profile = profiles.load(found, order.profile)
    job.data.setdefault("begun", datetime.now(UTC).isoformat())
    try:
        payload = _taken(found, job, order)
        noted = manifests.Warnings()
        count = _judged(order, payload, noted)
        job.data["warnings"] = [str(warning) for warning in noted.first]
        priority = priorities.of_batch(count) if profile.priority is None else profile.priority
        job.data["priority"] = priority  # what its objects' own is reckoned from
        kind = objects.options(priority=priority, collection=profile.collection, submitter=order.submitter)
        rows = _objects(job, order, payload)
        while some := [{"order": row} for row in islice(rows, _AT_ONCE)]:
            job.spawn_many(kind, some)
    except (NotAdmitted, BadParameters) as error:
        _tell_refused(job, found, profile, order, str(error))
        raise Fail(str(error), retryable=False) from error
    value = {"objects": count, "priority": priority}
    if noted.count:
        raise Warn(f"manifest '{shown(order.name)}', {noted.told(_SHOWN)}", value=value)
    return value


@batches.stage(again=True, max_attempts=5)
@awaited
def reporting(job: Job, order: BatchOrder) -> dict[str, Any]:
    """Say what became of the objects, and what has changed since the last report."""
    with admission():
        found = settings.load()
        profile = profiles.load(found, order.profile)
    told = job.data.get("told", 0)
    with admission():
        made = report_of(job, found, profile, order, number=told + 1)
    files = report.write(made, job.folder / "reports" / f"{made.facts.number:04d}")
    for part, mail in _mails(found, profile, order, made, files).items():
        outgoing_mails.belongs(found, report.key(made, part), job.submit(outbox.mail, **mail))
    failed = made.totals.failed
    summary = {
        "number": made.facts.number,
        "state": made.state,
        "objects": made.totals.objects,
        "failed": failed,
    }
    if failed:
        raise Warn(f"{failed} of {made.totals.objects} objects failed", value=summary)
    return summary


@batches.stage(again=True, max_attempts=5)
@awaited
def told(job: Job) -> None:
    """From now on that report is what the next one is compared with."""
    job.data["told"] = job.results["reporting"]["number"]


# --- the payload ------------------------------------------------------------------------------


def _taken(found: Settings, job: Job, order: BatchOrder) -> Path:
    """The payload, in the batch's own folder; moved there by one rename where both are on one disk."""
    name = component(order.name)
    target = job.folder / PAYLOAD / name
    if not target.exists():
        source = found.incoming / order.bid / name
        if source.is_symlink() or not source.is_file():
            raise NotAdmitted(f"the payload '{shown(name)}' is gone from {source.parent}; submit it again")
        target.parent.mkdir(exist_ok=True)
        beside = job.folder / f"{PAYLOAD}.new"  # no name of a depositor's can meet it, or be too long by ours
        try:
            os.link(source, beside)
        except FileExistsError:
            beside.unlink()
            return _taken(found, job, order)
        except OSError:  # another disk, or one without links
            with source.open("rb") as file, disk_space.naming_the_folder(job.folder, source.stat().st_size):
                copies.copy(file, beside)
        beside.replace(target)
        copies.sync_folder(target.parent)
        copies.sync_folder(job.folder)
    shutil.rmtree(found.incoming / order.bid, ignore_errors=True)
    if order.digest is not None:
        _require_digest(target, order.digest)
    return target


def _require_digest(path: Path, given: Sum) -> None:
    wanted = given.digest()
    sums = Sums([wanted.algorithm])
    with path.open("rb") as file:
        sums.read(file)
    if sums.values()[wanted.algorithm] != wanted.value:
        raise NotAdmitted(
            f"the payload '{shown(path.name)}' has the {wanted.algorithm} {sums.values()[wanted.algorithm]}, not "
            f"{wanted.value} as was given; submit it again"
        )


def _judged(order: BatchOrder, payload: Path, noted: manifests.Warnings) -> int:
    """How many objects there are. The whole manifest is read before anything is made of it, so that it can be refused
    with the line."""
    if not order.kind.is_manifest:
        return 1
    rows = sum(1 for _ in manifests.read(payload, order.kind, noted).rows)
    return rows if order.kind.is_batch else 1


def _objects(job: Job, order: BatchOrder, payload: Path) -> Iterator[dict[str, Any]]:
    """The parameters of each object's job."""
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
    kind = _OF_ROWS[order.kind]
    with url_queries.writing(job.folder) as put:
        for number, row in enumerate(manifests.read(payload, order.kind).rows, 1):
            yield _object(
                order, number, _of_row(job, order, kind, row, number, put), Description.of(row.about)
            )


def _of_row(
    job: Job, order: BatchOrder, kind: PayloadKind, row: Row, number: int, put: url_queries.Put
) -> Payload:
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
        digest=Sum.of(row.digest),
        mime_type=row.mime_type,
        modified=row.modified,
    )


def _object(order: BatchOrder, number: int, payload: Payload, about: Description) -> dict[str, Any]:
    return ObjectOrder(
        jid=orders.jid(order.bid, number),
        bid=order.bid,
        profile=order.profile,
        submitter=order.submitter,
        payload=payload,
        about=about,
        update=order.update,
        response=order.response,
        fail_at=order.fail_at,
    ).model_dump(exclude_defaults=True)


# --- the report -------------------------------------------------------------------------------


class Seen(Protocol):
    """What a report needs of its batch: of the job itself, or of what the store tells of it."""

    @property
    def id(self) -> int: ...
    @property
    def data(self) -> MutableMapping[str, Any]: ...
    @property
    def folder(self) -> Path: ...
    def children(self) -> Iterator[Child]: ...


def report_of(
    job: Seen, found: Settings, profile: Profile, order: BatchOrder, *, number: int, fault: str | None = None
) -> report.Report:
    """The report with this number, as of now. When it was first made is kept, for it is the date of its mail.
    ``fault``: why it failed as a whole."""
    name = f"reported {number}"
    reported = job.data.setdefault(name, datetime.now(UTC).isoformat())
    facts = _facts(job, found, profile, order, number, datetime.fromisoformat(reported), fault)
    return report.build(facts, _ends(job, found, order), _told_before(job, number))


def _told_before(job: Seen, number: int) -> report.Told | None:
    return report.read_told(job.folder / "reports" / f"{number - 1:04d}") if number > 1 else None


def _facts(
    job: Seen,
    found: Settings,
    profile: Profile,
    order: BatchOrder,
    number: int,
    reported: datetime,
    fault: str | None = None,
) -> report.BatchFacts:
    accepted = order.accepted or datetime.fromisoformat(job.data["begun"])
    return report.BatchFacts(
        bid=order.bid,
        job=job.id,
        profile=profile.name,
        submitter=order.submitter,
        collections=profile.collections,
        payload=order.name,
        accepted=accepted,
        reported=reported,
        number=number,
        fault=fault,
        link=_link(found, job.id),
        warnings=tuple(job.data.get("warnings", ())),
    )


def _link(found: Settings, job_id: int) -> str | None:
    return None if found.public_url is None else f"{found.public_url.rstrip('/')}/jobs/{job_id}"


def _ends(job: Seen, found: Settings, order: BatchOrder) -> Iterator[report.ObjectEnd]:
    recorded = {
        e.version.job_id: e for e in open_resources.inventory(found).batch_entries(order.bid, apart=SYSTEM)
    }
    unchanged = unchanged_objects.read(job.folder)
    for child in job.children():
        given = ObjectOrder.model_validate(child.params["order"])
        stands = unchanged.get(given.jid) if child.state == "completed" else None
        entry = None if stands else recorded.get(given.jid)
        yield report.ObjectEnd(
            jid=given.jid,
            job=child.id,
            state=str(child.state),
            local_ids=tuple((entry or stands or given.about).local_ids),
            ark=entry.ark if entry else stands.ark if stands else given.about.primary_id,
            version=entry.version.version if entry else stands.version if stands else None,
            unchanged=stands is not None,
            title=given.about.title or given.payload.name,
            passed=STAGES[-1] if child.state == "completed" else _before(child.stage),
            stage=None if child.state == "completed" else child.stage,
            message=child.message,
            warnings=child.warnings,
            link=_link(found, child.id),
            files=entry.version.files - entry.apart_files if entry else 0,
            bytes=entry.version.size_bytes - entry.apart_bytes if entry else 0,
            system_files=entry.apart_files if entry else 0,
            system_bytes=entry.apart_bytes if entry else 0,
            verified=entry.version.verified if entry else 0,
        )


def _before(stage: str | None) -> str | None:
    """The stage before one at which a job stands is the last that was successful."""
    if stage not in STAGES or stage == STAGES[0]:
        return None
    return STAGES[STAGES.index(stage) - 1]


def _mails(
    found: Settings,
    profile: Profile,
    order: BatchOrder,
    made: report.Report,
    files: Mapping[str, report.Written],
) -> dict[str, dict[str, Any]]:
    """The parameters of the report's mails: to whom the profile names; and to whom the depositor named, in a mail of
    their own, so that neither learn of the others."""
    if found.mail is None:
        return {}
    admins = found.mail.admins if profile.report.admins is None else profile.report.admins
    depositors = profile.report.batch
    to, cc = depositors or admins, admins if depositors else ()
    known = {mailbox(address).addr_spec for address in (*to, *cc)}
    named = [address for address in order.notify if mailbox(address).addr_spec not in known]
    mails = {
        part: report.mail(
            made,
            profile.report.kind,
            sender=found.mail.sender,
            to=to_,
            cc=cc_,
            domain=found.mail.domain,
            files=files,
            part=part,
        )
        for part, to_, cc_ in (("", to, cc), (NOTIFIED, named, ()))
    }
    return {
        part: mail | {"attachments": outgoing_mails.keep(found, report.key(made, part), mail["attachments"])}
        for part, mail in mails.items()
        if mail is not None
    }


def _tell_refused(job: Job, found: Settings, profile: Profile, order: BatchOrder, why: str) -> None:
    """A batch that fails before it has objects never comes to its report: it is told here, by a mail under a key, as
    this attempt will not pass."""
    number = job.data.get("told", 0) + 1
    reported = job.data.setdefault(f"reported {number}", datetime.now(UTC).isoformat())
    facts = _facts(job, found, profile, order, number, datetime.fromisoformat(reported), fault=why)
    made = report.build(facts, (), _told_before(job, number))
    files = report.write(made, job.folder / "reports" / f"{number:04d}")
    for part, mail in _mails(found, profile, order, made, files).items():
        key = report.key(made, part)
        outgoing_mails.belongs(found, key, job.submit(outbox.mail.options(key=key, forever=True), **mail))
    job.data["told"] = number
