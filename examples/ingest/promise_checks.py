"""Check that a finished batch keeps the promises of the service, for tests and the demo.

The checks do not rely on the code that processed the batch. The stored files are read again byte by byte. Which stages
ran, and when, is known from the attempts in the store, and what operators requested from its audit trail.

A ``bid`` is the name of a batch, a ``jid`` that of one of its objects. The first job of the batch's tree is the batch,
and each of the others is an object.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.apps.ingest.config import open_resources
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits import unchanged_objects
from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder
from spinney.apps.ingest.inventory import Recorded, open_inventory
from spinney.apps.ingest.objects import recorded_files
from spinney.apps.ingest.objects.work import CONTENT, MANIFEST, PAYLOAD
from spinney.apps.ingest.storage import Storage
from spinney.files.paths import NotAdmitted
from spinney.jobs import PASSED, Attempt, Job, Outcome, State, job_folder
from spinney.operations import AuditCall, Store

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory

_JOBS_MAX = 1_000_000
_CALLS_PER_PAGE = 1_000
_RERUN_VERBS = ("retry", "rerun")
"""The operators' verbs, as in the audit trail, after which a stage that passed may run again."""
_CLEARED_NAMES = (PAYLOAD, f"{PAYLOAD}.fetching", MANIFEST, f"{MANIFEST}.fetching", CONTENT)
"""What an object's job must have removed from its folder when it is completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check has looked at, in numbers, and the faults that it found."""

    jobs: int
    attempts: int
    interrupted: int
    """Attempts that ended with the death of their node or worker."""
    objects: int
    """Objects of which the batch stored a version."""
    files: int
    """Files whose content was read again and compared."""
    bytes: int
    faults: tuple[str, ...]
    """A sentence for each fault; empty when every guarantee was kept."""


def check(store: Store, batch: int, settings: Settings, folders: Path) -> CheckResult:
    """Check a batch, and return what was examined, with a sentence for each broken promise.

    ``batch``: the id of its job; ``folders``: the folder root of the store, below which each job has its
    folder. Nothing is changed. Files are read again in full, so that this takes as long as a fixity check of
    all objects.

    The promises: no stage runs again after it was recorded as passed, unless an operator requests it in
    between; every completed object is in the inventory once, unless its content was stored already, and
    nothing else is; the archive has what the inventory lists, with the right digests; the working folders of
    completed objects are removed, and so is the payload in the folder ``incoming``.

    Raises UsageError if a storage is not in the settings, and the errors of store, inventory and storage if
    they are unavailable.
    """
    jobs = store.tree(batch, limit=_JOBS_MAX)
    order = BatchOrder.model_validate(jobs[0].params["order"])
    history = {job.id: store.attempts(job.id) for job in jobs}
    requests_us = operator_requests_us(store, history.keys())
    faults = [
        f"job {job}: the stage '{stage}' ran again after it had passed, and no operator had requested it"
        for job, attempts in history.items()
        for stage in ran_twice(attempts, requests_us)
    ]
    objects = {ObjectOrder.model_validate(job.params["order"]).jid: job for job in jobs[1:]}
    with open_inventory(settings.inventory) as inventory:
        inventory.init()  # if every object failed early, the database does not exist yet
        recorded = list(inventory.batch_entries(order.bid))
        unchanged = unchanged_objects.read(folders / job_folder(batch))
        faults += _inventory_faults(objects, recorded, unchanged)
        storages = {
            name: open_resources.storage(settings, name)
            for name in {entry.version.storage for entry in recorded}
        }
        verified = [_verify(storages[e.version.storage], inventory, e, faults) for e in recorded]
    faults += _leftover_faults(settings, order, objects, folders)
    all_attempts = [attempt for attempts in history.values() for attempt in attempts]
    return CheckResult(
        jobs=len(jobs),
        attempts=len(all_attempts),
        interrupted=sum(attempt.outcome in (Outcome.LOST, Outcome.DIED) for attempt in all_attempts),
        objects=len(recorded),
        files=sum(files for files, _ in verified),
        bytes=sum(size_bytes for _, size_bytes in verified),
        faults=tuple(faults),
    )


def operator_requests_us(store: Store, jobs: Collection[int]) -> list[int]:
    """Return the times at which operators requested that one of these jobs run again, in microseconds since 1970 UTC.
    A request by a filter counts too, because the audit trail does not list its jobs."""
    calls = [call for verb in _RERUN_VERBS for call in _calls(store, verb)]
    named = {None, *jobs}
    return [call.at_us for call in calls if json.loads(call.what).get("job") in named]


def ran_twice(history: Iterable[Attempt], requests_us: Sequence[int]) -> list[str]:
    """Return the stages of a job that ran again after they had passed, without an operator's request in between."""
    passed_us: dict[str, int] = {}
    stages: list[str] = []
    for attempt in sorted(history, key=lambda a: a.fence):
        before_us, began_us = passed_us.get(attempt.stage), attempt.started_us
        if before_us is not None and not any(before_us <= at_us <= began_us for at_us in requests_us):
            stages.append(attempt.stage)
        if attempt.outcome in PASSED:
            passed_us[attempt.stage] = attempt.ended_us or attempt.started_us
    return stages


def _calls(store: Store, verb: str) -> Iterator[AuditCall]:
    """Yield all calls of an operators' verb from the audit trail."""
    after = 0
    while page := store.audit.calls(after=after, limit=_CALLS_PER_PAGE, verb=verb):
        yield from page
        after = page[-1].first


def _inventory_faults(
    objects: dict[str, Job], recorded: Iterable[Recorded], unchanged: Collection[str]
) -> Iterator[str]:
    """Yield a message for each difference between the completed objects and the versions that the inventory records for
    the batch. ``unchanged``: the objects whose content was stored already, so that they have no new version."""
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
    """Verify a stored object, and return the numbers of files and bytes that were read. Adds messages to ``faults``."""
    try:
        result = storage.verify(entry.ark)
        faults += [f"{entry.ark}: {fault}" for fault in result.faults]
        number = entry.version.version
        faults += [
            f"{entry.ark}: version {number}: '{path}' is not the same in the archive and in the inventory"
            for path in recorded_files.differing_paths(storage, inventory, entry.ark, number)
        ]
    except NotAdmitted as error:
        # Of an object that cannot be read at all, ``verify`` has said the same.
        if (fault := f"{entry.ark}: {error}") not in faults:
            faults.append(fault)
        return 0, 0
    return result.files, result.bytes


def _leftover_faults(
    settings: Settings, order: BatchOrder, objects: dict[str, Job], folders: Path
) -> Iterator[str]:
    """Yield a message for each folder or file that should have been removed."""
    for jid, job in objects.items():
        if job.state is not State.COMPLETED:
            continue
        places = [folders / job_folder(job.id) / name for name in _CLEARED_NAMES]
        places += [area / jid for area in settings.areas.values()]
        for place in places:
            if place.exists():
                yield f"{jid} (job {job.id}) is completed, and left {place}"
    if (incoming := settings.incoming / order.bid).exists():
        yield f"the payload was taken into the batch's folder, and left {incoming}"
