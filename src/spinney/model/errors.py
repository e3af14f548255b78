"""What goes wrong, as one family. Every message says what to do next.

``exit_code`` is what the command line ends with: 2 when the user asked for something that cannot
be meant (usage), 1 when the state of things does not allow it.
"""

import math


class SpinneyError(Exception):
    """Something in Spinney went wrong; the message says what to do next."""

    exit_code = 1


class UsageError(SpinneyError):
    """What was asked for cannot be meant; the message names the part and a right form."""

    exit_code = 2


class BadName(UsageError):
    """A name has characters that names may not have; use letters, digits, ``_ . : @ -``."""


class BadParameters(UsageError):
    """Parameters do not fit the job type; nothing was stored. Mend the named ones and submit again."""


class UnknownType(UsageError):
    """No such job type is known; start a node that has it, or mend the name."""


class UnlawfulTransition(SpinneyError):
    """A job cannot go from this state to that one; look at ``spinney show`` for what it allows."""

    def __init__(self, job_id: int, before: str | None, after: str) -> None:
        self.job_id, self.before, self.after = job_id, before, after
        super().__init__(
            f"job {job_id} is {before or 'new'} and cannot become {after}; "
            f"'spinney show {job_id}' shows where it stands"
        )


class NoSuchJob(SpinneyError):
    """No such job; ``spinney list`` shows those there are."""

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        super().__init__(f"there is no job {job_id}; 'spinney list' shows those there are")


class Refused(SpinneyError):
    """The state of the store forbids this now; the message says what would allow it."""


class NoSuch(Refused):
    """Nothing of that name is there; the message names the nearest, or how to list what there is."""


class NotVisible(NoSuch):
    """It is somebody else's, and out of sight: it is refused as what is not there."""


class Forbidden(SpinneyError):
    """Who asks may not do this; the message says what it takes, and whom to ask."""


class BadLogin(SpinneyError):
    """Who asks is not known: the name or the secret is wrong, or no longer good. Log in again, or ask an admin."""


class TooManyAttempts(Refused):
    """Too many attempts have failed, or are made at once; the message says after how many seconds to try again."""

    def __init__(self, wait_s: float, *, why: str = "too many attempts have failed") -> None:
        self.wait_s = wait_s
        said = max(1, math.ceil(wait_s))
        super().__init__(f"{why}; try again in {said} {'second' if said == 1 else 'seconds'}")


class DuplicateKey(Refused):
    """The key is taken by an unsettled job, or for ever; the message says what to do."""

    def __init__(self, key: str, job_id: int, *, forever: bool = False) -> None:
        self.key, self.job_id = key, job_id
        super().__init__(
            f"the key {key!r} is taken for ever by job {job_id}; rerun that job if its work is wanted once more, "
            f"or choose another key"
            if forever
            else f"the key {key!r} is taken by job {job_id}; wait until it settles, "
            f"cancel it, or choose another key"
        )


class Cycle(UsageError):
    """Jobs would wait for each other in a circle; take out one of the needs named."""


class StaleFence(SpinneyError):
    """The attempt has lost its lease: somebody else owns the job now. Stop; nothing was written."""

    def __init__(self, job_id: int, fence: int) -> None:
        self.job_id, self.fence = job_id, fence
        super().__init__(
            f"attempt {fence} of job {job_id} has lost its lease and may not write any more; "
            f"the job goes on elsewhere, so stop"
        )


class StoreUnusable(SpinneyError):
    """The store cannot be used as it is; the message names the cause and the mend."""


class StoreUnavailable(StoreUnusable):
    """The store does not answer now, or has no room; what was asked has not been done and may be asked again."""


class StoreLocked(StoreUnavailable):
    """Another program keeps the database locked; the message says which, and nothing has been done."""


class CommitUncertain(StoreUnavailable):
    """The connection was lost while the store was committing: what was asked may have been done or not. Look before
    you ask again."""


class AuditBroken(SpinneyError):
    """The audit has been changed: the message names the first entry that does not fit. Keep the file as it
    is, and compare it with a backup."""


class NodeRefused(SpinneyError):
    """A node may not start under this name now; the message says who is in its way."""
