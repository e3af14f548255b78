"""Whether a batch kept its promises: looked up afterwards in history, inventory, archive and working folders.

Nothing that made the batch is asked: what the storage holds is read again byte by byte, and what ran is taken from the
attempts and the operators' calls that the store keeps.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.apps.ingest.batches import unchanged_objects
from spinney.apps.ingest.config import storage_targets
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder
from spinney.apps.ingest.files.paths import NotAdmitted
from spinney.apps.ingest.inventory import Recorded, open_inventory
from spinney.apps.ingest.objects.work import CONTENT, MANIFEST, PAYLOAD
from spinney.apps.ingest.storage import Storage
from spinney.jobs import PASSED, Attempt, Job, Outcome, State, job_folder
from spinney.operations import AuditCall, Store

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory import Inventory

_TREE_MAX = 1_000_000
_CALLS = 1_000
_AGAIN = ("retry", "rerun")
_CLEARED = (PAYLOAD, f"{PAYLOAD}.fetching", MANIFEST, f"{MANIFEST}.fetching", CONTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was looked at, and what was wrong with it."""

    jobs: int
    attempts: int
    interrupted: int
    """Attempts that the death of their node or worker cut off."""
    objects: int
    """In the archive, of those that the batch brought."""
    files: int
    """Contents that were read again and compared."""
    bytes: int
    faults: tuple[str, ...]
    """A sentence each; empty when every promise was kept."""


def look(store: Store, batch: int, settings: Settings, folders: Path) -> Looked:
    """Look through a batch, by its job's number, and all that it left; ``folders``: the folder root of the store.

    What must hold: no stage ran again after it had been recorded as passed, unless an operator asked in between; every
    completed object is in the inventory once, and no other is; the archive holds what the inventory says, unharmed;
    working folders of completed objects are cleared, and so is the place where the payload came in.

    Raises UsageError for a storage that is not there, and what store, inventory and storage raise while they are away.
    """
    jobs = store.tree(batch, limit=_TREE_MAX)
    order = BatchOrder.model_validate(jobs[0].params["order"])
    history = {job.id: store.attempts(job.id) for job in jobs}
    asked = operators_asked(store, history.keys())
    faults = [
        f"job {job}: the stage '{stage}' ran again after it had passed, and nobody had asked for it"
        for job, attempts in history.items()
        for stage in ran_twice(attempts, asked)
    ]
    objects = {ObjectOrder.model_validate(job.params["order"]).jid: job for job in jobs[1:]}
    with open_inventory(settings.inventory) as inventory:
        inventory.init()  # where every object failed early there is none
        recorded = list(inventory.batch_entries(order.bid))
        unchanged = unchanged_objects.read(folders / job_folder(batch))
        faults += _counted(objects, recorded, unchanged)
        storages = {
            name: storage_targets.standing(settings, name)
            for name in {entry.version.storage for entry in recorded}
        }
        verified = [_verified(storages[e.version.storage], inventory, e, faults) for e in recorded]
    faults += _left_over(settings, order, objects, folders)
    ended = [attempt for attempts in history.values() for attempt in attempts]
    return Looked(
        jobs=len(jobs),
        attempts=len(ended),
        interrupted=sum(attempt.outcome in (Outcome.LOST, Outcome.DIED) for attempt in ended),
        objects=len(recorded),
        files=sum(files for files, _ in verified),
        bytes=sum(size_bytes for _, size_bytes in verified),
        faults=tuple(faults),
    )


def operators_asked(store: Store, jobs: Collection[int]) -> list[int]:
    """When operators asked for one of these jobs to run again, in microseconds since 1970 UTC, in order. What was asked
    of many by a filter counts for all."""
    calls = [call for verb in _AGAIN for call in _calls(store, verb)]
    return sorted(call.at_us for call in calls if json.loads(call.what).get("job") in {None, *jobs})


def ran_twice(history: Iterable[Attempt], asked: Sequence[int]) -> list[str]:
    """Stages with an attempt behind the one that passed, and no operator's call between the two."""
    passed_us: dict[str, int] = {}
    again: list[str] = []
    for attempt in sorted(history, key=lambda a: a.fence):
        before_us = passed_us.get(attempt.stage)
        if before_us is not None and not _any_between(asked, before_us, attempt.started_us):
            again.append(attempt.stage)
        if attempt.outcome in PASSED:
            passed_us[attempt.stage] = attempt.ended_us or attempt.started_us
    return again


def _any_between(times: Sequence[int], begin: int, end: int) -> bool:
    at = bisect_left(times, begin)
    return at < len(times) and times[at] <= end


def _calls(store: Store, verb: str) -> Iterator[AuditCall]:
    after = 0
    while page := store.audit.calls(after=after, limit=_CALLS, verb=verb):
        yield from page
        after = page[-1].first


def _counted(
    objects: dict[str, Job], recorded: Iterable[Recorded], unchanged: Collection[str]
) -> Iterator[str]:
    """Completed objects are those that the inventory has, each once, and those that had all of it before."""
    entered = Counter(entry.version.job_id for entry in recorded)
    for jid, times in entered.items():
        if times > 1:
            yield f"{jid} is in the inventory {times} times"
        if jid not in objects:
            yield f"{jid} is in the inventory, and is no object of the batch"
    for jid, job in objects.items():
        if job.state is State.COMPLETED and jid not in entered and jid not in unchanged:
            yield f"{jid} (job {job.id}) is completed, and not in the inventory"


def _verified(
    storage: Storage, inventory: "Inventory", entry: Recorded, faults: list[str]
) -> tuple[int, int]:
    """Files and bytes of an object that were read again; what is wrong goes to ``faults``."""
    try:
        found = storage.verify(entry.ark)
        faults += [f"{entry.ark}: {fault}" for fault in found.faults]
        faults += _compared(storage, inventory, entry)
    except NotAdmitted as error:
        faults.append(f"{entry.ark}: {error}")
        return 0, 0
    return found.files, found.bytes


def _compared(storage: Storage, inventory: "Inventory", entry: Recorded) -> Iterator[str]:
    """What the inventory says of a version's files is what the storage has."""
    number = entry.version.version
    stored = {file.path: (file.size_bytes, file.digest.value) for file in storage.files(entry.ark, number)}
    algorithms = {file.path: file.digest.algorithm for file in storage.files(entry.ark, number)}
    entered = {
        file.path: (file.size_bytes, file.digests.get(algorithms.get(file.path, "")))
        for file in inventory.files(entry.ark, number)
    }
    for path in sorted(stored.keys() | entered.keys()):
        if stored.get(path) != entered.get(path):
            yield f"{entry.ark}: version {number}: '{path}' is not the same in the archive and in the inventory"


def _left_over(
    settings: Settings, order: BatchOrder, objects: dict[str, Job], folders: Path
) -> Iterator[str]:
    for jid, job in objects.items():
        if job.state is not State.COMPLETED:
            continue
        places_of = [folders / job_folder(job.id) / name for name in _CLEARED]
        places_of += [area / jid for area in settings.areas.values()]
        for place in places_of:
            if place.exists():
                yield f"{jid} (job {job.id}) is completed, and left {place}"
    if (came_in := settings.incoming / order.bid).exists():
        yield f"the payload was taken into the batch's folder, and left {came_in}"
