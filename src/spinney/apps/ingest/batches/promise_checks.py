"""Checks of a finished batch against the guarantees of the service: its history, inventory, archive and folders.

The checks do not rely on the code that processed the batch: the storage's content is read again byte by byte, and what
ran is taken from the attempts and the operators' calls that the store keeps.
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
class CheckResult:
    """The extent of a check, and the faults that it found."""

    jobs: int
    attempts: int
    interrupted: int
    """Attempts that ended with the death of their node or worker."""
    objects: int
    """Objects in the archive that the batch deposited."""
    files: int
    """Files whose content was read again and compared."""
    bytes: int
    faults: tuple[str, ...]
    """A sentence for each fault; empty when every guarantee was kept."""


def check(store: Store, batch: int, settings: Settings, folders: Path) -> CheckResult:
    """Check a batch, given by its job's number; ``folders``: the folder root of the store.

    The guarantees: no stage ran again after it had been recorded as passed, unless an operator requested it in between;
    every completed object is in the inventory once, and no other is; the archive has what the inventory lists, with
    the right digests; working folders of completed objects are cleared, and so is the folder of the incoming payload.

    Raises UsageError for a storage that is not there, and the errors of store, inventory and storage while they are
    away.
    """
    jobs = store.tree(batch, limit=_TREE_MAX)
    order = BatchOrder.model_validate(jobs[0].params["order"])
    history = {job.id: store.attempts(job.id) for job in jobs}
    requests_us = operator_requests_us(store, history.keys())
    faults = [
        f"job {job}: the stage '{stage}' ran again after it had passed, and nobody had asked for it"
        for job, attempts in history.items()
        for stage in ran_twice(attempts, requests_us)
    ]
    objects = {ObjectOrder.model_validate(job.params["order"]).jid: job for job in jobs[1:]}
    with open_inventory(settings.inventory) as inventory:
        inventory.init()  # where every object failed early there is none
        recorded = list(inventory.batch_entries(order.bid))
        unchanged = unchanged_objects.read(folders / job_folder(batch))
        faults += _inventory_faults(objects, recorded, unchanged)
        storages = {
            name: storage_targets.open_target(settings, name)
            for name in {entry.version.storage for entry in recorded}
        }
        verified = [_verify(storages[e.version.storage], inventory, e, faults) for e in recorded]
    faults += _leftovers(settings, order, objects, folders)
    attempts_ = [attempt for attempts in history.values() for attempt in attempts]
    return CheckResult(
        jobs=len(jobs),
        attempts=len(attempts_),
        interrupted=sum(attempt.outcome in (Outcome.LOST, Outcome.DIED) for attempt in attempts_),
        objects=len(recorded),
        files=sum(files for files, _ in verified),
        bytes=sum(size_bytes for _, size_bytes in verified),
        faults=tuple(faults),
    )


def operator_requests_us(store: Store, jobs: Collection[int]) -> list[int]:
    """Return when operators requested that one of these jobs run again, in microseconds since 1970 UTC, sorted. A
    request for many jobs by a filter counts for all jobs."""
    calls = [call for verb in _AGAIN for call in _calls(store, verb)]
    return sorted(call.at_us for call in calls if json.loads(call.what).get("job") in {None, *jobs})


def ran_twice(history: Iterable[Attempt], requests_us: Sequence[int]) -> list[str]:
    """Return the stages with an attempt after one that passed, and no operator's request between the two."""
    passed_us: dict[str, int] = {}
    stages: list[str] = []
    for attempt in sorted(history, key=lambda a: a.fence):
        before_us = passed_us.get(attempt.stage)
        if before_us is not None and not _any_between(requests_us, before_us, attempt.started_us):
            stages.append(attempt.stage)
        if attempt.outcome in PASSED:
            passed_us[attempt.stage] = attempt.ended_us or attempt.started_us
    return stages


def _any_between(times: Sequence[int], begin: int, end: int) -> bool:
    index = bisect_left(times, begin)
    return index < len(times) and times[index] <= end


def _calls(store: Store, verb: str) -> Iterator[AuditCall]:
    after = 0
    while page := store.audit.calls(after=after, limit=_CALLS, verb=verb):
        yield from page
        after = page[-1].first


def _inventory_faults(
    objects: dict[str, Job], recorded: Iterable[Recorded], unchanged: Collection[str]
) -> Iterator[str]:
    """Yield the differences between the completed objects and the inventory, which has each once except for the
    unchanged ones."""
    entered = Counter(entry.version.job_id for entry in recorded)
    for jid, times in entered.items():
        if times > 1:
            yield f"{jid} is in the inventory {times} times"
        if jid not in objects:
            yield f"{jid} is in the inventory, and is no object of the batch"
    for jid, job in objects.items():
        if job.state is State.COMPLETED and jid not in entered and jid not in unchanged:
            yield f"{jid} (job {job.id}) is completed, and not in the inventory"


def _verify(storage: Storage, inventory: "Inventory", entry: Recorded, faults: list[str]) -> tuple[int, int]:
    """Verify an object in its storage, and return the files and bytes that were read; adds to ``faults``."""
    try:
        result = storage.verify(entry.ark)
        faults += [f"{entry.ark}: {fault}" for fault in result.faults]
        faults += _file_differences(storage, inventory, entry)
    except NotAdmitted as error:
        faults.append(f"{entry.ark}: {error}")
        return 0, 0
    return result.files, result.bytes


def _file_differences(storage: Storage, inventory: "Inventory", entry: Recorded) -> Iterator[str]:
    """Yield the differences between inventory and storage in the files of a version."""
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


def _leftovers(
    settings: Settings, order: BatchOrder, objects: dict[str, Job], folders: Path
) -> Iterator[str]:
    for jid, job in objects.items():
        if job.state is not State.COMPLETED:
            continue
        places = [folders / job_folder(job.id) / name for name in _CLEARED]
        places += [area / jid for area in settings.areas.values()]
        for place in places:
            if place.exists():
                yield f"{jid} (job {job.id}) is completed, and left {place}"
    if (incoming := settings.incoming / order.bid).exists():
        yield f"the payload was taken into the batch's folder, and left {incoming}"
