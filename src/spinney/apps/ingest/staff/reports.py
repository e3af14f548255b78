"""Reports of a batch: those that were told, and one as of now."""

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
    """Where a file (``report.txt``) of a report lies in the folder of the batch; of the last that was told unless
    another number is given. Raises Refused when that has not been told."""
    if number is None:
        number = batch.told
    if not 1 <= number <= batch.told:
        told = f"its last report is number {batch.told}" if batch.told else "it has not reported yet"
        raise Refused(f"{batch.bid} is {batch.state}, and {told}; --now shows how it stands")
    return f"reports/{number:04d}/{name}"


def as_of_now(service: Service, batch: Batch) -> report.Report:
    """The next report as it would be now, told to nobody and kept nowhere. Raises Refused for a batch whose payload has
    not been read yet."""
    data = dict(service.store.get_data(batch.job.id))
    if "begun" not in data:
        raise Refused(
            f"{batch.bid} is {batch.state}, and there is nothing to report yet; 'ingest status' tells why"
        )
    profile = profiles.load(service.settings, batch.order.profile)
    data.pop(f"reported {batch.told + 1}", None)  # of one that is being made
    seen = _Seen(service=service, id=batch.job.id, data=data)
    was_refused = batch.job.state is State.FAILED and batch.job.stage == READS
    fault = batch.job.message if was_refused else None
    from spinney.apps.ingest.batches.stages import report_of  # with all stages

    return report_of(seen, service.settings, profile, batch.order, number=batch.told + 1, fault=fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A batch as a report sees it, from outside: what is set in its data is kept here alone."""

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
