"""Retention on demand: one walk over all jobs now, as ``keep --sweep`` does, instead of when a node next makes one."""

import time
from collections.abc import Callable

from spinney.model.access import Role
from spinney.model.errors import StoreUnusable
from spinney.model.values.texts import counted
from spinney.service.service import Service

REST_SHARE = 4.0
"""After each step the walk rests for this multiple of the step's time, so that other writers get most of the time."""
REST_LEAST_S = 0.005
"""The shortest rest, in seconds."""


def sweep(
    service: Service,
    remove: Callable[[int], None],
    *,
    on_progress: Callable[[int, int], None] | None = None,
    rest: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> int:
    """Remove every job whose time is over, with its folder, and return how many jobs were removed.

    ``remove`` removes the folder of one job; ``on_progress`` is called after each step with the number of jobs removed
    so far, and the last job that was looked at. The caller must be an admin. The walk may be interrupted between any
    two steps: nodes remove the remaining folders, and the next walk starts from the beginning. The caller vouches for
    the clock of this host: nodes trust it from now on, however far it is ahead (``spinney.model.trusted_clock``).
    Raises StoreUnusable at the end if some folders could not be removed; nodes try those again.
    """
    service.require_everywhere(Role.ADMIN, "remove jobs whose time is over")
    actor = service.actor()
    service.store.retention.confirm_clock(now_us=service.clock())
    removed, after = 0, 0
    failures: list[StoreUnusable] = []
    while True:
        begun = monotonic()
        removed_ids, next_after = service.store.retention.sweep(after, actor, now_us=service.clock())
        took_s = monotonic() - begun
        if removed_ids:
            service.store.note_removed_folders(
                [job_id for job_id in removed_ids if _removed(remove, job_id, failures)]
            )
        removed += len(removed_ids)
        if on_progress is not None:
            on_progress(removed, after)
        if next_after is None:
            break
        after = next_after
        rest(max(REST_LEAST_S, REST_SHARE * took_s))
    if failures:
        raise StoreUnusable(
            f"{counted(removed, 'job is', 'jobs are')} removed, but "
            f"{counted(len(failures), 'folder is', 'folders are')} still there; nodes try again: {failures[0]}"
        ) from failures[0]
    return removed


def _removed(remove: Callable[[int], None], job_id: int, failures: list[StoreUnusable]) -> bool:
    """Remove a folder, and return whether that succeeded. A failure is collected and does not stop the walk:
    ``deleted_folders`` lists the folder until it is gone."""
    try:
        remove(job_id)
    except StoreUnusable as error:
        failures.append(error)
        return False
    return True
