"""Verbs that delete batches with all their files. Their objects in the archive and the inventory are kept.

The batch's job and all below it are deleted in the store, then their folders, then their files in working
areas and in ``incoming``. If that is killed after the first, nodes remove the folders; ``sweep`` and the
cleanup remove the rest. So a verb that is interrupted can be repeated or forgotten, and no batch is ever
there without its files.
"""

import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import Field

from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.deposits.orders import BID, jid
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.verbs.base import BatchName, DryRun, Verb
from spinney.apps.ingest.verbs.lookup import Batch, batches, by_bid, find_batch
from spinney.apps.ingest.verbs.service import Service
from spinney.errors import Refused
from spinney.jobs import Filter, State
from spinney.operations import Bulk, DeleteJob, Order, OrderScope, Role
from spinney.operations import Verb as EngineVerb

DAY_S = 86_400
LEFTOVER_S = DAY_S
"""After this many seconds a payload in ``incoming`` without a batch counts as left by a process that died."""
_DELETABLE = (BatchState.FAILED, BatchState.HELD)


class Delete(Verb, changes=True, long=True):
    """Delete a failed or held batch with all its files; archived objects are kept."""

    batch: BatchName
    completed: bool = Field(default=False, description="Also delete completed batches.")

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the batch as it was deleted; ``jobs`` counts its own job, too. Raises Refused for a batch in another
        state, or when one of its objects runs."""
        batch = find_batch(service, self.batch)
        deletable = (*_DELETABLE, BatchState.COMPLETED) if self.completed else _DELETABLE
        if batch.state not in deletable:
            raise Refused(f"{batch.bid} is {batch.state}; {_advice(batch)}")
        return {"deleted": {"bid": batch.bid, "job": batch.job.id, "jobs": _delete(service, batch)}}


class Sweep(Verb, changes=True, long=True):
    """Delete batches that completed long ago, and payloads that never became a batch."""

    days: Annotated[int, typer.Option(metavar="N")] = Field(
        ge=0, le=36_500, description="Only batches that completed at least this many days ago."
    )
    dry_run: DryRun = False

    def run(self, service: Service) -> Mapping[str, Any]:
        """Return the batches and files that were removed, or would be: ``batches`` by name, ``leftovers`` by
        path.

        Everything is looked up before anything is removed. Raises Forbidden for all but operators without
        limits, since payloads without a batch belong to no collection.
        """
        service.control.require_everywhere(Role.OPERATOR, "sweep batches")
        before_us = service.control.clock() - self.days * DAY_S * 1_000_000
        old, leftovers = list(_old(service, before_us)), list(_leftovers(service))
        if not self.dry_run:
            for batch in old:
                _delete(service, batch)
            for place in leftovers:
                _remove(place)
        return {"batches": [batch.bid for batch in old], "leftovers": [str(place) for place in leftovers]}


def _delete(service: Service, batch: Batch) -> int:
    """Delete the jobs of a batch, then its files, and return the number of jobs."""
    if batch.state is BatchState.HELD and batch.job.state is not State.HELD:
        _cancel_open(service, batch)
    work_folders = _work_folders(service, batch)
    deleted = service.control.do(DeleteJob(job=batch.job.id)).touched
    for place in (*work_folders, service.settings.incoming / batch.bid):
        shutil.rmtree(place, ignore_errors=True)
    held_batches.unhold(service.settings, batch.bid)
    return len(deleted)


def _cancel_open(service: Service, batch: Batch) -> None:
    """Cancel the open objects of a batch that was held while in progress. Raises Refused while one of them runs."""
    OrderScope(service=service.control, order=Order(verb=EngineVerb.DELETE)).require_job(batch.job.id)
    if batch.running:
        raise Refused(
            f"{batch.bid} is held, and {batch.running} of its objects still run; delete it once their stage is over"
        )
    bulk = service.control.part(Bulk)
    bulk.run(bulk.plan(Order(verb=EngineVerb.CANCEL, tree=True, reason="to be deleted"), ids=(batch.job.id,)))


def _advice(batch: Batch) -> str:
    """Return what to do with a batch that cannot be deleted as it is."""
    if batch.state is BatchState.COMPLETED:
        return "add --completed to delete it nevertheless"
    if batch.state is BatchState.DELETED:
        return "there is nothing left of it to delete"
    return f"wait for its end, or cancel it first with 'spinney cancel {batch.job.id} --tree'"


def _work_folders(service: Service, batch: Batch) -> list[Path]:
    """Return the folders of its objects in working areas.

    Their names follow from the batch and the number of an object, so that they are found without reading each
    object's job.
    """
    objects = service.store.job_lists.count(Filter(parent_id=batch.job.id), most=10**9)
    jids = {jid(batch.bid, number) for number in range(1, objects + 1)}
    return [
        place
        for area in service.settings.areas.values()
        if area.is_dir()
        for place in area.iterdir()
        if place.name in jids
    ]


def _old(service: Service, before_us: int) -> Iterator[Batch]:
    """Yield the batches that completed at ``before_us`` or earlier."""
    for batch in batches(service, state=BatchState.COMPLETED):
        if batch.job.settled_us is not None and batch.job.settled_us <= before_us:
            yield batch


def _leftovers(service: Service) -> Iterator[Path]:
    """Yield payloads and hold files of batches that do not exist, and old marks of hosts that did not answer."""
    for folder in (service.settings.incoming, service.settings.held):
        for place in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not BID.fullmatch(place.name) or not _is_old(place):
                continue
            job = by_bid(service, place.name)
            if job is None or job.state is State.DELETED:
                yield place
    for place in sorted(service.settings.unresponsive_hosts.glob("*.json")):
        if _is_old(place):  # no job has tried that host since
            yield place


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def _is_old(place: Path) -> bool:
    """Return whether neither it nor a file in it was written lately: a copy that takes long is no leftover. Nor is what
    is gone meanwhile, as when its batch has taken it."""
    try:
        inside = place.iterdir() if place.is_dir() else ()
        changed_s = max(float(path.lstat().st_mtime) for path in (place, *inside))
    except FileNotFoundError:
        return False
    return time.time() - changed_s >= LEFTOVER_S
