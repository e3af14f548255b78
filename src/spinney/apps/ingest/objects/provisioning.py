"""Room on working storage: nobody begins to fetch what will not fit beside what others have been promised.

A promise is an amount of a lock whose capacity are bytes. It counts whole until the object is downloaded, and then as
what is still to come of a container; so what has been written is in the end counted once, by the disk.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney import Defer, Hold, Job
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.config.settings import Working
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.objects import work_places
from spinney.apps.ingest.objects.estimating import wanted_rows, write_wanted
from spinney.apps.ingest.objects.work import Work, work
from spinney.apps.ingest.space_waits import FULL_S


def provisioning(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Promise the object its space, until the job settles."""
    at = work(job, order)
    if not work_places.bring(at):
        with admission():
            write_wanted(at, wanted_rows(at))
    found, working = disk(at.folder), at.settings.working
    needed, allowed = _needed(at), found.allowed(working)
    if needed > allowed:
        raise Hold(
            f"it needs {needed:,} bytes, and working storage may hold {allowed:,} in all; give its profile a larger "
            f"area, then release it"
        )
    if found.used_bytes > allowed:
        # Where there are other areas, those who use them must not sleep too.
        raise Defer(FULL_S, f"{found.full(working)}; make room", lane=not at.settings.areas)
    if found.used_bytes + needed > allowed:
        raise Defer(FULL_S, f"{needed:,} bytes find no room now: {found.full(working)}; make room")
    job.lock(promises(at.area), until="job", amount=needed, capacity=allowed - found.used_bytes)
    return {"bytes": needed, "area": at.area}


def promises(area: str | None) -> str:
    """The lock whose holders have been promised space in a working area."""
    return f"ingest-working:{area or 'jobs'}"


def renew(at: Work, here_bytes: int) -> None:
    """Promise once more what is still to come beside what is here: a job that failed gave its promise up. How full
    the disk is does not count any more, since what has been begun frees its room only when it ends."""
    to_come = max(0, _needed(at) - here_bytes)
    found = disk(at.folder)
    capacity = max(to_come, found.allowed(at.settings.working) - found.used_bytes)
    at.job.lock(promises(at.area), until="job", amount=to_come, capacity=capacity)


def release(at: Work, but_bytes: int = 0) -> None:
    """What has come is on the disk, and counted there; ``but_bytes`` are still to come."""
    at.job.lock(promises(at.area), until="job", amount=but_bytes)


def _needed(at: Work) -> int:
    """A container lies beside what it holds, which is taken to be as large, since nobody knows it before."""
    estimated: int = at.job.results["estimating"]["bytes"]
    return estimated * (2 if at.order.payload.kind is PayloadKind.CONTAINER else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """As it is now."""

    used_bytes: int
    room_bytes: int
    """In all; what is kept for root is no room."""

    def allowed(self, working: Working) -> int:
        return int(working.limit * self.room_bytes)

    def is_over_warning(self, working: Working) -> bool:
        return self.used_bytes > working.warning * self.room_bytes

    def full(self, working: Working) -> str:
        part = self.used_bytes / self.room_bytes
        mark = f", above the warning mark of {working.warning:.0%}" if self.is_over_warning(working) else ""
        return f"working storage is {part:.0%} full, the limit is {working.limit:.0%}{mark}"


def disk(folder: Path) -> Disk:
    """The disk that a folder is on."""
    found = os.statvfs(folder)
    used = found.f_blocks - found.f_bfree
    return Disk(used_bytes=used * found.f_frsize, room_bytes=(used + found.f_bavail) * found.f_frsize)
