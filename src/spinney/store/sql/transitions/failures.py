"""Causes of failures: written when a job fails by its own attempt. ``spinney.features.failures`` reads them for people.

The fingerprint is in ``inactive_jobs``, in the row of the failed job: opening, deleting or cancelling the job removes
it with the row. ``failures`` describes each fingerprint, and when it first occurred; the number of jobs is counted by
the index. Jobs that failed because of their subjobs or of jobs that they need have none: they continue when the cause
is fixed."""

from collections.abc import Iterable

from spinney.model.attempts.failures import Cause
from spinney.store.sql.connection.database import RowChange, Tx
from spinney.store.sql.transitions import trusted_clock

KEPT_US = 30 * 86_400_000_000
"""How long a cause without failed jobs is remembered after it last occurred: one that comes back after a retry is the
old one."""
FORGET_STEP = 50
"""How many causes one sweep checks."""

_FORGOTTEN = RowChange("failures", "fingerprint = ?")


def remember(tx: Tx, causes: Iterable[Cause], now_us: int) -> None:
    """Store the descriptions of these fingerprints, and that they have occurred now. The description of a
    known fingerprint stays as it first was."""
    tx.many(
        "insert into failures (fingerprint, type, stage, exception, message, first_us, last_us) "
        "values (?, ?, ?, ?, ?, ?, ?) on conflict (fingerprint) do update set last_us = excluded.last_us",
        [(c.fingerprint, c.type, c.stage, c.exception, c.message, now_us, now_us) for c in causes],
    )


def of_engine(tx: Tx, type_: str, stage: str | None, word: str, reason: str, now_us: int) -> str:
    """Store and return the fingerprint of a failure that the engine caused (a deadlock, say), and no attempt.
    ``word``: in place of an exception."""
    cause = Cause.of(type_, stage or "", word, reason)
    remember(tx, [cause], now_us)
    return cause.fingerprint


def forget(tx: Tx, after: str, now_us: int) -> str:
    """Do one bounded step of a scan of all causes, after ``after``: delete those that occurred long ago and have no
    failed jobs. Return where to continue; empty: from the beginning.

    Whether a cause has failed jobs is looked up by the partial index on ``inactive_jobs.fingerprint``;
    nothing counts them."""
    rows = tx.all(
        "select fingerprint, last_us, exists (select 1 from inactive_jobs p where p.fingerprint = "
        "failures.fingerprint) "
        "from failures where fingerprint > ? order by fingerprint limit ?",
        (after, FORGET_STEP),
    )
    forgotten = [(mark, last_us) for mark, last_us, alive in rows if not alive and last_us < now_us - KEPT_US]
    if forgotten:
        before_us = trusted_clock.past_us(tx, now_us) - KEPT_US
        forgotten = [(mark, last_us) for mark, last_us in forgotten if last_us < before_us]
    if forgotten:
        tx.change(_FORGOTTEN, [(mark,) for mark, _ in forgotten])
    return rows[-1][0] if len(rows) == FORGET_STEP else ""
