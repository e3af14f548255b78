"""Locks: how much there is of them, and taken away from jobs that will not give them back.

Whoever is limited and has locks of his own to name may free those, whoever has them. Without such locks he frees what
jobs in his sight have.
"""

from spinney.model.access import Role
from spinney.model.errors import Forbidden, Refused
from spinney.model.values import names
from spinney.service.service import ASK, Service, limits
from spinney.service.visibility import Visibility


class Locks(Service):
    """Every change is audited. It takes an operator who may name the lock; others get Forbidden."""

    def free(self, name: str, *, reason: str, job_id: int | None = None) -> int:
        """Take a lock away from all that have it, or from one job; returns how many lost it.

        Who waits for it goes on at once, beside the old owner if that is still at work: whoever asks has made
        sure that it is not. Raises BadName, UsageError (no reason), Refused (nobody has it, or not this job).
        """
        self._require(name, "free")
        if job_id is not None and not self.rights.everywhere:
            self.require_within(self.store.job(job_id))
        if job_id is None and self._named_by_sight:
            self._require_owners_seen(name)
        names.label("reason", reason)
        try:
            lost = self.store.locks.free(name, self.actor(reason), job_id=job_id, now_us=self.clock())
        except Refused:
            if self.rights.everywhere:
                raise
            raise self._not_had(
                name
            ) from None  # the store's sentence names other locks, and who has this one
        self.wake_nodes()
        return lost

    def set_capacity(self, name: str, capacity: int | None, *, reason: str | None = None) -> int:
        """Set how much there is of a lock, or of each of a family (``download:*``), or (None) take back what was set;
        how much is in force then.

        Who waits goes on where there is more; where there is less, nobody loses what he has. Raises BadName,
        UsageError (no such capacity), Refused (nothing was set that could be taken back).
        """
        self._require(name, "set the capacity of")
        if self._named_by_sight:
            self.require_everywhere(Role.OPERATOR, "set the capacity of locks")
        if reason is not None:
            names.label("reason", reason)
        done = self.store.locks.set_capacity(name, capacity, self.actor(reason), now_us=self.clock())
        self.wake_nodes()
        return done

    def _require(self, name: str, what: str) -> None:
        self.require(Role.OPERATOR, f"{what} locks")
        if not self.rights.names_lock(name):
            may = " or ".join(self.rights.locks or ()) or "none"
            raise Forbidden(f"{self.by} may {what} {may}, not {name!r}; {ASK}")

    @property
    def _named_by_sight(self) -> bool:
        """Whether nothing says which locks are his but what he sees."""
        return self.rights.locks is None and not self.rights.everywhere

    def _require_owners_seen(self, name: str) -> None:
        owners = {info.owner_id for info in self.store.locks.of(name) if info.owner_id is not None}
        seen = Visibility(self.store, self.rights.within).seen(owners)
        if not seen:
            raise self._not_had(name)
        if seen != owners:
            raise Forbidden(
                f"{self.by} is limited to {limits(self.rights)} and may not free the lock {name!r}, which others have, "
                f"too; name the job to take it from, or {ASK}"
            )

    def _not_had(self, name: str) -> Refused:
        return Refused(
            f"nobody within your limits has the lock {name!r}, or not that job; 'spinney locks' lists those there are"
        )
