"""Repeatable submissions: the caller's idempotency key, and the jobs that were created with it.

A short submission writes both in one transaction. A long one takes the key with its row in ``staging``, and marks it as
done in the transaction that publishes the jobs. So a key that is not done belongs to a writer in progress, or to a dead
one, whose jobs will never be visible: then the key may be used again."""

from spinney.model.errors import SubmissionUnfinished, UsageError
from spinney.store.contract import SubmissionKey, SubmitResult
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.submit import staging
from spinney.store.sql.transitions import trusted_clock

KEPT_US = 86_400_000_000
"""How long a key is remembered: a day. A repetition after that makes the jobs again."""


def find(tx: Tx, once: SubmissionKey, now_us: int) -> SubmitResult | None:
    """Return the earlier result of this key; None: it is new, too old to count, or its writer is dead, and
    the caller may take it. Raises UsageError when the key was used for another request, and
    SubmissionUnfinished while the call that took it is still writing its jobs."""
    row = tx.one(
        "select digest, first_id, last_id, held, done, at_us from idempotency where owner = ? and key = ?",
        (once.owner, once.key),
    )
    if row is None:
        return None
    digest, first_id, last_id, held, done, at_us = row
    if not _is_old(tx, at_us, now_us) and (done or not _is_dead(tx, first_id, now_us)):
        if digest != once.digest:
            raise UsageError(
                f"the idempotency key {once.key!r:.120} was used for another request; choose a new key for a new one"
            )
        if not done:
            raise SubmissionUnfinished(
                "this very submission is still being written, or was interrupted within the last minute; repeat it "
                "with the same key until it is answered with its jobs"
            )
        return SubmitResult(ids=range(first_id, last_id + 1), held=held, repeated=True)
    tx.run("delete from idempotency where owner = ? and key = ?", (once.owner, once.key))
    return None


def take(
    tx: Tx, once: SubmissionKey, first_id: int, last_id: int, now_us: int, *, held: int = 0, done: bool
) -> None:
    """Take the key, in the transaction that creates these jobs, or hides them until they are written. ``held``: how
    many of them a hold keeps, for the answer to a repetition. ``done``: they are visible with this transaction."""
    tx.run(
        "insert into idempotency (owner, key, digest, first_id, last_id, held, done, at_us) "
        "values (?, ?, ?, ?, ?, ?, ?, ?)",
        (once.owner, once.key, once.digest, first_id, last_id, held, int(done), now_us),
    )


def publish(tx: Tx, once: SubmissionKey, first_id: int) -> None:
    """Mark the key as done, in the transaction that publishes the hidden jobs."""
    tx.run(
        "update idempotency set done = 1 where owner = ? and key = ? and first_id = ?",
        (once.owner, once.key, first_id),
    )


def forget(tx: Tx, now_us: int, limit: int = 500) -> None:
    """Delete a bounded number of keys that are older than a day."""
    tx.delete_some("idempotency", "owner, key", "at_us <= ? order by at_us", (now_us - KEPT_US,), limit)


def _is_old(tx: Tx, at_us: int, now_us: int) -> bool:
    """Return whether a key that was taken at ``at_us`` counts no longer, because a day has surely passed. The trusted
    time is read only for a key that is old by the caller's clock."""
    return at_us <= now_us - KEPT_US and at_us <= trusted_clock.past_us(tx, now_us) - KEPT_US


def _is_dead(tx: Tx, first_id: int, now_us: int) -> bool:
    """Return whether these jobs cannot be published any more; a writer without progress for long is prevented from
    it."""
    tx.run(
        "update staging set published = -1 where first_id = ? and published = 0 and beat_us < ?",
        (first_id, now_us - staging.ABANDONED_US),
    )
    return not tx.exists("select 1 from staging where first_id = ? and published = 0", (first_id,))
