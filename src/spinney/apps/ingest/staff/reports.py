"""Reports of a batch: those that were sent, and one as of now."""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney.apps.ingest import report
from spinney.apps.ingest.config import profiles
from spinney.apps.ingest.staff.batches import Batch
from spinney.apps.ingest.staff.service import Service
from spinney.errors import Refused
from spinney.jobs import Child, State, job_folder

_PAGE = 1000
READS = "processing"
"""The stage of a batch at which its payload is refused."""


def path_of(batch: Batch, name: str, number: int | None = None) -> str:
    """Return the path of a report's file (``report.txt``) in the folder of the batch, by default of the last that was
    sent. Raises Refused when that report has not been sent."""
    if number is None:
        number = batch.reports
    if not 1 <= number <= batch.reports:
        last = f"its last report is number {batch.reports}" if batch.reports else "it has not reported yet"
        raise Refused(f"{batch.bid} is {batch.state}, and {last}; --now shows how it stands")
    return f"reports/{number:04d}/{name}"


def as_of_now(service: Service, batch: Batch) -> report.Report:
    """Build the next report as it would be now, without sending or storing it. Raises Refused for a batch whose payload
    has not been read yet."""
    data = dict(service.store.get_data(batch.job.id))
    if "begun" not in data:
        raise Refused(
            f"{batch.bid} is {batch.state}, and there is nothing to report yet; 'ingest status' tells why"
        )
    profile = profiles.load(service.settings, batch.order.profile)
    data.pop(f"reported {batch.reports + 1}", None)  # the time of a report that is being made
    view = _BatchView(service=service, id=batch.job.id, data=data)
    was_refused = batch.job.state is State.FAILED and batch.job.stage == READS
    fault = batch.job.message if was_refused else None
    from spinney.apps.ingest.batches.stages import report_of  # with all stages

    return report_of(view, service.settings, profile, batch.order, number=batch.reports + 1, fault=fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchView:
    """A batch as its report needs it, read from the store: changes of its data are not stored."""

    service: Service
    id: int
    data: MutableMapping[str, Any]

    @property
    def folder(self) -> Path:
        return self.service.folders / job_folder(self.id)

    def children(self) -> Iterator[Child]:
        after = 0
        while page := self.service.look.children(self.id, after=after, limit=_PAGE):
            for job in page:
                yield Child(
                    job.id, job.type, job.state, job.stage, job.code, job.message, job.warnings, job.params
                )
            after = page[-1].id
