"""Locks: how much there is of them, and taken away from jobs that will not give them back."""

from spinney.control.hand import Hand
from spinney.model import names


class Locks(Hand):
    """Every change is audited."""

    def free(self, name: str, *, reason: str, job_id: int | None = None) -> int:
        """Take a lock away from all that have it, or from one job; returns how many lost it.

        Who waits for it goes on at once, beside the old owner if that is still at work: whoever asks has made
        sure that it is not. Raises BadName, UsageError (no reason), Refused (nobody has it, or not this job).
        """
        names.label("reason", reason)
        lost = self.store.locks.free(name, self.author(reason), job_id=job_id, now_us=self.clock())
        self.nudge()
        return lost

    def set_capacity(self, name: str, capacity: int | None, *, reason: str | None = None) -> int:
        """Set how much there is of a lock, or of each of a family (``download:*``), or (None) take back what was set;
        how much is in force then.

        Who waits goes on where there is more; where there is less, nobody loses what he has. Raises BadName,
        UsageError (no such capacity), Refused (nothing was set that could be taken back).
        """
        if reason is not None:
            names.label("reason", reason)
        done = self.store.locks.set_capacity(name, capacity, self.author(reason), now_us=self.clock())
        self.nudge()
        return done
