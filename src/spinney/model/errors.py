"""The exceptions of Spinney. Every message says what to do next.

There are two large classes: UsageError for a request that is wrong in itself, which no repetition makes
right, and all others for what the present state does not allow. Whether to repeat a call is told by the
class: StoreUnavailable has changed nothing and may be repeated, after CommitUncertain the caller has to look
first, and StaleFence means that somebody else does the work now.

``exit_code`` is the exit code of the command line: 2 for invalid usage, 1 when the current state does not allow it.
"""

import math


class SpinneyError(Exception):
    """Something in Spinney went wrong; the message says what to do next."""

    exit_code = 1


class UsageError(SpinneyError):
    """The request is invalid; the message names the invalid part and a valid form."""

    exit_code = 2


class BadName(UsageError):
    """A name has characters that names may not have; use letters, digits, ``_ . : @ -``."""


class BadParameters(UsageError):
    """Parameters do not fit the job type; nothing was stored. Correct the named ones and submit again."""


class UnknownType(UsageError):
    """No such job type is known; start a node that has it, or correct the name."""


_HAS = {"completed": "has completed", "failed": "has failed"}
_CANNOT = {
    "pending": "be opened again",
    "held": "be held",
    "cancelled": "be cancelled",
    "deleted": "be deleted",
}
"""What an operator wanted who meets a transition that is not in the table, by the state that a job would have had."""


class UnlawfulTransition(SpinneyError):
    """A job cannot go from this state to that one; ``spinney show`` shows what its state allows."""

    def __init__(self, job_id: int, before: str | None, after: str) -> None:
        self.job_id, self.before, self.after = job_id, before, after
        state = _HAS.get(before or "", f"is {before or 'new'}")
        if (before, after) == ("completed", "pending"):
            sentence = f"{state}, so there is nothing to retry; 'spinney rerun {job_id}' runs it again"
        elif (before, after) == ("scheduled", "pending"):
            sentence = (
                f"{state} for later, so there is nothing to retry yet; 'spinney run-now {job_id}' runs it now"
            )
        else:
            verb = _CANNOT.get(after, f"become {after}")
            sentence = f"{state} and cannot {verb}; 'spinney show {job_id}' shows its state"
        super().__init__(f"job {job_id} {sentence}")


class NoSuchJob(SpinneyError):
    """No such job; check its number in the list of jobs. ``needed_by``: the number, from 1, of the job of a call that
    needs it."""

    def __init__(self, job_id: int, *, needed_by: int | None = None) -> None:
        self.job_id = job_id
        needed = "" if needed_by is None else f", which job {needed_by} of this call needs"
        super().__init__(f"there is no job {job_id}{needed}; check its number in the list of jobs")


class Refused(SpinneyError):
    """The state of the store forbids this now; the message says what would allow it."""


class SubmissionUnfinished(Refused):
    """A submission with this idempotency key is still being written, or its writer died a moment ago; repeat the
    request with the same key until it is answered with the jobs."""


class NoSuch(Refused):
    """Nothing with that name exists; the message suggests the nearest name, or how to list the existing ones."""


class NotVisible(NoSuch):
    """It exists, but the caller may not see it: it is refused as if it did not exist."""


class Forbidden(SpinneyError):
    """The caller may not do this; the message says which right it needs, and whom to ask."""


class BadLogin(SpinneyError):
    """The caller is not known: the name or the secret is wrong, or no longer valid. Log in again, or ask an admin."""


class TooManyAttempts(Refused):
    """Too many attempts have failed, or run at once; the message says after how many seconds to try again."""

    def __init__(self, wait_s: float, *, why: str = "too many attempts have failed") -> None:
        self.wait_s = wait_s
        seconds = max(1, math.ceil(wait_s))
        super().__init__(f"{why}; try again in {seconds} {'second' if seconds == 1 else 'seconds'}")


class DuplicateKey(Refused):
    """The key is taken by an unsettled job, or for ever; the message says what to do. ``gone``: retention has removed
    that job."""

    def __init__(self, key: str, job_id: int, *, forever: bool = False, gone: bool = False) -> None:
        self.key, self.job_id = key, job_id
        if gone:
            what = (
                f"taken for ever by job {job_id}, which retention has removed; if its work is wanted once more, choose "
                "another key"
            )
        elif forever:
            what = (
                f"taken for ever by job {job_id}; rerun that job if its work is wanted once more, or choose another "
                "key"
            )
        else:
            what = f"taken by job {job_id}; wait until it settles, cancel it, or choose another key"
        super().__init__(f"the key {key!r} is {what}")


class Cycle(UsageError):
    """Jobs would wait for each other in a cycle; remove one of the named needs."""


class StaleFence(SpinneyError):
    """The attempt has lost its lease: another attempt may run the job now. Stop; nothing was written."""

    def __init__(self, job_id: int, fence: int) -> None:
        self.job_id, self.fence = job_id, fence
        super().__init__(
            f"attempt {fence} of job {job_id} has lost its lease and may not write any more; "
            f"the job goes on elsewhere, so stop"
        )


class StoreUnusable(SpinneyError):
    """The store cannot be used as it is; the message names the cause and the remedy."""

    is_public = False
    """Whether the message names no file, host or database, so that a caller who has not signed in may read it."""


def store_error_kinds() -> list[str]:
    """Return the names by which metrics count the classes of StoreUnusable: its own and those of all its
    subclasses that are imported by now."""
    kinds: list[type[StoreUnusable]] = [StoreUnusable]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return [kind.__name__ for kind in kinds]


class StoreMissing(StoreUnusable):
    """There is no store at this place: no file, or no tables in it or in the schema."""


class StoreReplaced(StoreUnusable):
    """The store is not the one that this process has opened any more: its file was replaced, or an older copy has taken
    its place. It never will be: the process has to end."""


class DiskFull(StoreUnusable):
    """The disk of the job folders has no room; the message names it. The request may be repeated when there is room."""


class StoreUnavailable(StoreUnusable):
    """The store does not answer now, or has no room; the request was not executed and may be repeated."""


class StoreLocked(StoreUnavailable):
    """Another program keeps the database locked; the message names it, and nothing was executed."""


class CommitUncertain(StoreUnavailable):
    """The connection was lost during a commit: the request may have been executed or not. Check before you repeat
    it."""


class AuditBroken(SpinneyError):
    """The audit has been changed: the message names the first entry whose digest is wrong. Keep the file as it is, and
    compare it with a backup."""


class NodeRefused(SpinneyError):
    """A node may not start under this name now; the message names the node that prevents it."""
