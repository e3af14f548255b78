"""Deleting batches with all that belongs to them. What the archive and the inventory have of them stays."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spinney.apps.ingest.batches import held_batches
from spinney.apps.ingest.deposits.orders import jid
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.staff.batches import BID, Batch, Listed, batches, by_bid
from spinney.apps.ingest.staff.service import Service
from spinney.errors import Refused
from spinney.jobs import Filter, State
from spinney.operations import Order, OrderScope, Role, Verb, folders

DAY_S = 86_400
LEFT_S = DAY_S
"""What lies in ``incoming`` so long without a batch was left behind by somebody who died."""
_LAWFUL = (BatchState.FAILED, BatchState.HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A batch that is gone."""

    bid: str
    job: int
    jobs: int
    """It and all below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What was removed, or would be."""

    batches: tuple[str, ...]
    leftovers: tuple[Path, ...]


def delete(service: Service, batch: Batch, *, completed: bool = False) -> Deleted:
    """Delete a failed or held batch (``completed``: a completed one, too). Raises Refused when it stands otherwise, or
    anything below it is open."""
    lawful = (*_LAWFUL, BatchState.COMPLETED) if completed else _LAWFUL
    if batch.state not in lawful:
        raise Refused(f"{batch.bid} is {batch.state}; {_instead(batch)}")
    if batch.state is BatchState.HELD and batch.job.state is not State.HELD:
        _end(service, batch)
    works = _working(service, batch)
    gone = service.control.delete(batch.job.id, lambda job: folders.remove(service.folders, job))
    for place in (*works, service.settings.incoming / batch.bid):
        shutil.rmtree(place, ignore_errors=True)
    held_batches.unhold(service.settings, batch.bid)
    return Deleted(bid=batch.bid, job=batch.job.id, jobs=len(gone))


def sweep(service: Service, *, days: float, dry_run: bool = False) -> Swept:
    """Delete what completed so many days ago or earlier, and what was handed in and never became a batch. Raises
    Forbidden for all but operators without limits: what never became a batch belongs to no collection."""
    service.control.require_everywhere(Role.OPERATOR, "sweep batches")
    before_us = service.control.clock() - round(days * DAY_S * 1e6)
    old = list(_old(service, before_us))
    left = list(_left(service))
    if not dry_run:
        for batch in old:
            delete(service, batch, completed=True)
        for place in left:
            _remove(place)
    return Swept(batches=tuple(batch.bid for batch in old), leftovers=tuple(left))


def _end(service: Service, batch: Batch) -> None:
    """Cancel what is open of a batch that is held in its middle. Raises Refused while something of it runs."""
    OrderScope(service=service.control, order=Order(verb=Verb.DELETE)).require_job(batch.job.id)
    if batch.running:
        raise Refused(
            f"{batch.bid} is held, and {batch.running} of its objects still run; delete it once their stage is over"
        )
    bulk = service.control.bulk
    bulk.run(bulk.plan(Order(verb=Verb.CANCEL, tree=True, reason="to be deleted"), ids=(batch.job.id,)))


def _instead(batch: Batch) -> str:
    if batch.state is BatchState.COMPLETED:
        return "add --completed to delete it nevertheless"
    if batch.state is BatchState.DELETED:
        return "there is nothing left of it to delete"
    return f"wait for its end, or cancel it first with 'spinney cancel {batch.job.id} --tree'"


def _working(service: Service, batch: Batch) -> list[Path]:
    """What its objects have in working areas of their own."""
    objects = service.store.bulk.count(Filter(parent_id=batch.job.id), most=10**9)
    mine = {jid(batch.bid, number) for number in range(1, objects + 1)}
    return [
        place
        for area in service.settings.areas.values()
        if area.is_dir()
        for place in area.iterdir()
        if place.name in mine
    ]


def _old(service: Service, before_us: int) -> Iterator[Batch]:
    for batch in batches(service, Listed(state=BatchState.COMPLETED)):
        if batch.job.settled_us is not None and batch.job.settled_us <= before_us:
            yield batch


def _left(service: Service) -> Iterator[Path]:
    """Payloads, and reasons to hold, of batches that are not there; marks of hosts that nobody asks any more."""
    for folder in (service.settings.incoming, service.settings.held):
        for place in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not BID.fullmatch(place.name) or time.time() - _changed_s(place) < LEFT_S:
                continue
            job = by_bid(service, place.name)
            if job is None or job.state is State.DELETED:
                yield place
    for place in sorted(service.settings.silent.glob("*.json")):
        if time.time() - _changed_s(place) >= LEFT_S:  # nobody has asked that host since
            yield place


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def _changed_s(place: Path) -> float:
    """When it, or a file in it, was written last: a copy that takes long is no leftover."""
    inside = place.iterdir() if place.is_dir() else ()
    return max(float(found.lstat().st_mtime) for found in (place, *inside))
