"""One walk over settled jobs now, instead of when a node comes to it."""

import time
from collections.abc import Callable
from typing import Protocol

from spinney.model.access import Role
from spinney.model.errors import StoreUnusable
from spinney.service.service import Service

REST_SHARE = 4.0
"""After each step of a walk it rests so many times as long as the step took: most of the writers' time is left
to others."""
REST_LEAST_S = 0.005


class OnSweep(Protocol):
    """Is told how a walk goes on: jobs removed so far, and the number that it has come to."""

    def __call__(self, removed: int, at: int) -> None: ...


def sweep(
    service: Service,
    remove: Callable[[int], None],
    *,
    told: OnSweep | None = None,
    rest: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> int:
    """Walk over all jobs and remove what is over, and return how many jobs that were. It takes an admin.
    ``remove`` removes one folder.

    May be cut off between any two steps: nodes remove the folders that are left, and the next walk
    begins anew. Raises StoreUnusable when the walk is through and folders resisted.
    """
    service.require_everywhere(Role.ADMIN, "remove jobs whose time is over")
    actor = service.actor()
    removed, after = 0, 0
    resisted: list[StoreUnusable] = []
    while True:
        begun = monotonic()
        gone, further = service.store.retention.sweep(after, actor, now_us=service.clock())
        took_s = monotonic() - begun
        if gone:
            service.store.note_removed_folders(
                [job_id for job_id in gone if _removed(remove, job_id, resisted)]
            )
        removed += len(gone)
        if told is not None:
            told(removed, after)
        if further is None:
            break
        after = further
        rest(max(REST_LEAST_S, REST_SHARE * took_s))
    if resisted:
        raise StoreUnusable(
            f"{removed:,} jobs are removed, but {len(resisted):,} of their folders are still there; nodes try "
            f"again: {resisted[0]}"
        ) from resisted[0]
    return removed


def _removed(remove: Callable[[int], None], job_id: int, resisted: list[StoreUnusable]) -> bool:
    """One folder that resists does not keep the others: ``deleted_folders`` tells it until it is gone."""
    try:
        remove(job_id)
    except StoreUnusable as error:
        resisted.append(error)
        return False
    return True
