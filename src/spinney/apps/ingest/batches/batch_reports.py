"""The reports of a batch: built from its jobs and the inventory, written into its folder, and made into mails."""

from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spinney.apps.ingest import report
from spinney.apps.ingest.application import passed
from spinney.apps.ingest.batches import held_batches, outgoing_mails
from spinney.apps.ingest.config import open_resources
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits import unchanged_objects
from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder
from spinney.apps.ingest.inventory import Recorded
from spinney.apps.ingest.manifests import About
from spinney.files.paths import SYSTEM
from spinney.jobs import Child, Job, State
from spinney.reports.addresses import mailbox

_NOTIFIED = ".notified"
"""The part of the key of a mail to the addresses that the depositor named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReports:
    """Builds and writes the next report of a batch. Its number is one more than that of the last report that was sent
    (``data["sent"]``)."""

    job_id: int
    """The job of the batch, with its folder and its data."""
    folder: Path
    data: MutableMapping[str, Any]
    config: Settings
    profile: Profile
    order: BatchOrder

    def build(self, ends: Iterable[report.ObjectEnd], *, fault: str | None = None) -> report.Report:
        """Build the report, compared with the one before it. ``ends``: the results of the objects (``object_ends``).
        ``fault``: why the batch failed as a whole."""
        number = self.data.get("sent", 0) + 1
        # The time at which the report was first made is kept as the date of its mail.
        reported = self.data.setdefault(reported_key(number), datetime.now(UTC).isoformat())
        facts = report.BatchFacts(
            bid=self.order.bid,
            job=self.job_id,
            profile=self.profile.name,
            submitter=self.order.submitter,
            collections=self.profile.collections,
            payload=self.order.name,
            accepted=self.order.accepted or datetime.fromisoformat(self.data[held_batches.BEGUN]),
            reported=datetime.fromisoformat(reported),
            number=number,
            fault=fault,
            link=self.config.public_address(f"jobs/{self.job_id}"),
            warnings=tuple(self.data.get("warnings", ())),
        )
        before = report.read_previous(self.folder / report_folder(number - 1)) if number > 1 else None
        return report.build(facts, ends, before)

    def object_ends(self, objects: Iterable[Child | Job]) -> Iterator[report.ObjectEnd]:
        """Yield the result of each object, whose jobs these are: from its job, and from the inventory or the notes of
        unchanged objects."""
        entries = open_resources.inventory(self.config).batch_entries(self.order.bid, apart=SYSTEM)
        recorded = {entry.version.job_id: entry for entry in entries}
        unchanged = unchanged_objects.read(self.folder)
        for job in objects:
            order = ObjectOrder.model_validate(job.params["order"])
            is_completed = job.state is State.COMPLETED
            stage = None if is_completed else job.stage
            same = unchanged.get(order.jid) if is_completed else None
            entry = None if same else recorded.get(order.jid)
            yield report.ObjectEnd(
                jid=order.jid,
                job=job.id,
                state=str(job.state),
                unchanged=same is not None,
                title=order.about.title or order.payload.name,
                passed=passed(job.state, stage),
                stage=stage,
                message=job.message,
                warnings=job.warnings,
                link=self.config.public_address(f"jobs/{job.id}"),
                **(_stored(entry) if entry else _unchanged(same, order.about)),
            )

    def write(self, built: report.Report) -> dict[str, dict[str, Any]]:
        """Write the files of the report, and return the parameters of its mails by their keys: one to the addresses in
        the profile, and one to those that the depositor named, so that neither see the other addresses."""
        files = report.write(built, self.folder / report_folder(built.facts.number))
        if self.config.mail is None:
            return {}
        reporting = self.profile.report
        admins = self.config.mail.admins if reporting.admins is None else reporting.admins
        to, cc = reporting.batch or admins, admins if reporting.batch else ()
        others = {mailbox(address).addr_spec for address in (*to, *cc)}
        named = [address for address in self.order.notify if mailbox(address).addr_spec not in others]
        mails = {}
        for part, to_, cc_ in (("", to, cc), (_NOTIFIED, named, ())):
            mail = report.mail(
                built,
                reporting.kind,
                sender=self.config.mail.sender,
                to=to_,
                cc=cc_,
                domain=self.config.mail.domain,
                files=files,
                part=part,
            )
            if mail is not None:
                key = report.key(built, part)
                mail["attachments"] = outgoing_mails.keep(self.config, key, mail["attachments"])
                mails[key] = mail
        return mails


def reported_key(number: int) -> str:
    """Return the key, in the data of a batch's job, of the time at which a report was first made."""
    return f"reported {number}"


def report_folder(number: int) -> str:
    """Return the path of a report's folder in that of its batch, by its number with four digits, so that a listing is
    in order."""
    return f"reports/{number:04d}"


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


def _unchanged(same: unchanged_objects.UnchangedVersion | None, about: About) -> dict[str, Any]:
    """Return the same parts for an object that got no new version: those of its existing version, or else of its
    description."""
    if same is not None:
        return {"local_ids": tuple(same.local_ids), "ark": same.ark, "version": same.version}
    return {"local_ids": about.local_ids, "ark": about.primary_id}
