"""The stage that reserves space on working storage, so that no object is fetched that will not fit beside the others.

A promise of space is an amount of a lock whose capacity is in bytes. It counts in full until the object is downloaded,
and then only the space into which a container is still to be unpacked; so what has been written is counted once in the
end, as used space of the disk.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney import Defer, Hold, Job
from spinney.apps.ingest.admission import FULL_S, admission
from spinney.apps.ingest.config.settings import Settings, Working
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.objects import work_places
from spinney.apps.ingest.objects.estimating import payload_rows, write_file_list
from spinney.apps.ingest.objects.work import PROMISING, Work, load_work


def provisioning(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Promise the object its space, until the job is settled.

    The value: the promised ``bytes``, the ``area`` in which they are, and the ``lock`` that has them. Raises Hold
    where it can never fit, Defer while the disk has too little room; where other objects have been promised the
    room, the stage waits for the lock. The capacity of the lock is what the disk has left below the limit, measured
    now. Files that an earlier attempt fetched, which ``downloading`` keeps, need no more space.
    """
    work = load_work(job, order)
    if not work_places.bring_list(work):
        with admission():
            write_file_list(work, payload_rows(work))
    work_places.clear_complete_download(work)
    measured, working = disk(work.folder), work.settings.working
    needed, allowed = _needed(work), measured.allowed(working)
    present_bytes = work_places.present_bytes(work)
    others_bytes = measured.used_bytes - present_bytes
    if needed > allowed:
        raise Hold(
            f"it needs {needed:,} bytes, and working storage may hold {allowed:,} in all; give its profile a larger "
            f"area, then release it"
        )
    if others_bytes > allowed:
        # Where there are other areas, the objects that use them must not wait too.
        raise Defer(FULL_S, f"{measured.full(working)}; make room", lane=not work.settings.areas)
    if others_bytes + needed > allowed:
        raise Defer(FULL_S, f"{needed:,} bytes do not fit now: {measured.full(working)}; make room")
    renew(work, present_bytes)
    return {"bytes": needed, "area": work.area, "lock": _lock(work)}


def promises(settings: Settings, jobs_folder: Path, area: str | None) -> str:
    """Return the name of the lock whose holders have been promised space on the disk of a working area.

    Places on one disk share its space, so the lock is named after the first of them: the folders of jobs, then the
    areas by name. An area that is not mounted here shares with none.
    """
    name = area or "jobs"
    if settings.areas:
        places = [("jobs", jobs_folder), *sorted(settings.areas.items())]
        device = _device(jobs_folder if area is None else settings.areas.get(area))
        same = (place for place, folder in places if device is not None and _device(folder) == device)
        name = next(same, name)
    return f"ingest-working:{name}"


def _device(folder: Path | None) -> int | None:
    try:
        return None if folder is None else folder.stat().st_dev
    except OSError:
        return None


def _lock(work: Work) -> str:
    """Return the lock that has the promise of an object; the node that promised counts, whose disks may be mounted
    otherwise than here."""
    promised: str | None = work.job.results.get(PROMISING, {}).get("lock")
    return promised or promises(work.settings, work.job.folder, work.area)


def renew(work: Work, present_bytes: int) -> None:
    """Promise the space that is still needed beyond ``present_bytes``; a job that failed has lost its promise.

    The disk may be full by then: an object that has begun frees its space only when it ends. What of a container is
    present has to be unpacked too, whatever was estimated: a download that has waited for that space (``promise``)
    keeps it when it starts again.
    """
    unpacked_bytes = present_bytes if work.order.payload.kind is PayloadKind.CONTAINER else 0
    promise(work, max(unpacked_bytes, _needed(work) - present_bytes))


def promise(work: Work, amount_bytes: int) -> None:
    """Promise so many bytes in place of what was promised before. What has been fetched counts as used space of the
    disk, so that 0 releases the promise.

    A container whose size was not known, or was too small, may need more than it was promised.
    """
    measured = disk(work.folder)
    capacity = max(amount_bytes, measured.allowed(work.settings.working) - measured.used_bytes)
    work.job.lock(_lock(work), until="job", amount=amount_bytes, capacity=capacity)


def _needed(work: Work) -> int:
    """Return the bytes that the object needs. A container is stored beside its content, whose size is unknown before
    and assumed to be the same."""
    estimated: int = work.job.results["estimating"]["bytes"]
    return estimated * (2 if work.order.payload.kind is PayloadKind.CONTAINER else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The space of a disk, as measured now."""

    used_bytes: int
    room_bytes: int
    """The size of the disk without the space reserved for root."""

    def allowed(self, working: Working) -> int:
        """Return how many bytes may be used in all (``working.limit``)."""
        return int(working.limit * self.room_bytes)

    def is_over_warning(self, working: Working) -> bool:
        """Return whether more is used than ``working.warning``."""
        return self.used_bytes > working.warning * self.room_bytes

    def full(self, working: Working) -> str:
        """Return the sentence that says how full the disk is."""
        part = self.used_bytes / self.room_bytes
        mark = f", above the warning mark of {working.warning:.0%}" if self.is_over_warning(working) else ""
        return f"working storage is {part:.0%} full, the limit is {working.limit:.0%}{mark}"


def disk(folder: Path) -> Disk:
    """Measure the disk that a folder is on. Raises OSError where the folder does not exist."""
    usage = shutil.disk_usage(folder)
    return Disk(used_bytes=usage.used, room_bytes=usage.used + usage.free)
