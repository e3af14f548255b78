"""How long settled jobs are kept: the rules, and one walk now instead of when a node comes to it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from spinney.model.access import Role
from spinney.model.errors import StoreUnusable
from spinney.model.rights.operators import RetentionRule
from spinney.model.settings.retention import ALL_TYPES
from spinney.model.values import durations
from spinney.model.values.durations import Duration
from spinney.service.service import Service

REST_SHARE = 4.0
"""After each step of a walk it rests so many times as long as the step took: most of the writers' time is left
to others."""
REST_LEAST_S = 0.005


class OnSweep(Protocol):
    """Is told how a walk goes on: jobs removed so far, and the number that it has come to."""

    def __call__(self, removed: int, at: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionChange:
    """What a change of the rules comes to."""

    keeping: RetentionRule
    overruled: Sequence[RetentionRule] = ()
    """What types declare that counts no longer because of it."""


class Retention(Service):
    """Rules are audited; so is each step of a walk. It takes an admin; others get Forbidden."""

    def keep(
        self, type_: str, state: str, keep_s: Duration | None, *, reason: str | None = None
    ) -> RetentionChange:
        """Keep jobs of this type (``*``: of all) for so long after they settled in this state; None: for ever. The rule
        of the job at the top decides for all below it.

        Raises UnknownType, UsageError.
        """
        self.require_everywhere(Role.ADMIN, "say how long jobs are kept")
        keep_s = durations.optional(keep_s, "keep")
        done = self.store.retention.set(type_, state, keep_s, self.actor(reason), now_us=self.clock())
        overruled = [
            k
            for k in self.store.retention.all()
            if k.state == state and type_ in (k.type, ALL_TYPES) and not k.in_force and k.keep_s != keep_s
        ]
        return RetentionChange(keeping=done, overruled=overruled)

    def as_declared(self, type_: str, state: str, *, reason: str | None = None) -> bool:
        """Take back what an operator set, so that the type's own word counts; False when nothing was set."""
        self.require_everywhere(Role.ADMIN, "say how long jobs are kept")
        return self.store.retention.unset(type_, state, self.actor(reason), now_us=self.clock())

    def sweep(
        self,
        remove: Callable[[int], None],
        *,
        told: OnSweep | None = None,
        rest: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> int:
        """Walk over all jobs and remove what is over; how many jobs that were. ``remove`` removes one folder.

        May be cut off between any two steps: nodes remove the folders that are left, and the next walk
        begins anew. Raises StoreUnusable when the walk is through and folders resisted.
        """
        self.require_everywhere(Role.ADMIN, "remove jobs whose time is over")
        actor = self.actor()
        removed, after = 0, 0
        resisted: list[StoreUnusable] = []
        while True:
            begun = monotonic()
            gone, further = self.store.retention.sweep(after, actor, now_us=self.clock())
            took_s = monotonic() - begun
            if gone:
                self.store.folder_gone([job_id for job_id in gone if _removed(remove, job_id, resisted)])
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
