"""Submissions and spawns: the calls that create jobs, each in one transaction or, where it is long, in steps."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from spinney.model.errors import CommitUncertain, StoreUnavailable, StoreUnusable, UsageError
from spinney.model.jobs import Submission
from spinney.model.rights.actor import Actor
from spinney.store.contract import SubmissionKey, SubmitResult
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.session import Session

if TYPE_CHECKING:
    from spinney.store.sql.submit import new_jobs, spawns

UNDER_MAX = 50
"""The most jobs that are submitted under holds of their own in one transaction."""
KEYED_STEP = 100
"""How many jobs with keys one transaction creates."""


class SqlSubmissions:
    """The methods of ``spinney.store.contract.Kernel`` that create jobs. What they need is imported by them,
    because a program that only reads should not wait for it."""

    session: Session

    def submit(
        self,
        submissions: Sequence[Submission],
        *,
        once: SubmissionKey | None = None,
        under: Actor | None = None,
        soon: Callable[[], object] | None = None,
        now_us: int,
    ) -> SubmitResult:
        """See ``Kernel.submit``.

        A call of up to ``new_jobs.STEP`` plain jobs (``SPECIAL_STEP`` of others) is one transaction. A longer
        one is written in steps that are not synced, and published by one that is. A crash before that leaves
        hidden rows, which a sweep drops; after it the jobs are accepted, and any process places those that
        are not in ``ready`` yet."""
        from spinney.store.sql.submit import idempotency, needs, new_jobs, staging
        from spinney.store.sql.transitions.hold_rows import hold_new

        _refuse_repeated_keys(submissions)
        write, registry = self.session.write, self.session.registry
        with write(awaited=True) as tx:
            if once is not None and (before := idempotency.find(tx, once, now_us)) is not None:
                return before
            plans = [new_jobs.plan(registry, s) for s in submissions]
            needs.check(tx, plans, None)
            total = new_jobs.size(plans)
            if under is not None and total > UNDER_MAX:
                raise UsageError(
                    f"at most {UNDER_MAX} jobs are submitted under holds of their own; submit fewer"
                )
            if total <= (new_jobs.STEP if all(p.plain for p in plans) else new_jobs.SPECIAL_STEP):
                if soon is not None:
                    soon()  # a node that wakes up now still waits: no other writer begins before this transaction ends
                ids = new_jobs.inline(tx, registry, plans, now_us)
                held = self._held_on_arrival(tx, ids)
                if under is not None:
                    hold_new(tx, registry, ids, under, now_us)
                    held = len(ids)
                if once is not None and ids:
                    idempotency.take(tx, once, ids[0], ids[-1], now_us, held=held, done=True)
                return SubmitResult(ids=ids, held=held)
            first_id = tx.take("job", total)
            staging.enter(tx, first_id, first_id + total - 1, None, None, now_us)
            if once is not None:
                idempotency.take(tx, once, first_id, first_id + total - 1, now_us, done=False)
        result = self._submit_in_steps(plans, range(first_id, first_id + total), once, now_us)
        if soon is not None:
            soon()
        return result

    def _submit_in_steps(
        self, plans: "list[new_jobs.Plan]", ids: range, once: SubmissionKey | None, now_us: int
    ) -> SubmitResult:
        """Write the jobs of a long submission, whose ids are taken, in steps; publish them, and place those that can be
        placed now."""
        from spinney.store.sql.submit import idempotency, staging

        write, registry, first_id = self.session.write, self.session.registry, ids[0]
        lightly = partial(write, durable=False)
        beat_us = staging.write_steps(write, registry, plans, first_id, now_us, lightly)
        with write() as tx:
            staging.publish(tx, first_id, beat_us)
            if once is not None:
                idempotency.publish(tx, once, first_id)
        # Accepted: jobs that cannot be placed now are placed by the next sweep, and must not be submitted again.
        held = 0
        with suppress(StoreUnusable):
            while self._staging_step(now_us) == 0:
                pass
            with self.session.look() as tx:
                held = self._held_on_arrival(tx, ids)
        return SubmitResult(ids=ids, held=held)

    def _held_on_arrival(self, tx: Tx, ids: Sequence[int]) -> int:
        """Return how many of these jobs a hold has kept from the beginning. They are counted by their rows,
        because other processes may have placed some of them."""
        from spinney.store.sql.submit import new_jobs

        return new_jobs.held_of(tx, ids[0], ids[-1]) if ids and self.session.registry.holds.wide else 0

    def spawn(
        self, job_id: int, fence: int, submissions: Sequence[Submission], *, now_us: int
    ) -> Sequence[int]:
        from spinney.store.sql.submit import spawns

        return self._spawn(
            lambda tx: spawns.of_children(tx, self.session.registry, job_id, fence), submissions, now_us
        )

    def submit_from(
        self,
        job_id: int,
        fence: int,
        submissions: Sequence[Submission],
        *,
        beside: int | None = None,
        now_us: int,
    ) -> Sequence[int]:
        from spinney.store.sql.submit import spawns

        return self._spawn(lambda tx: spawns.of_own_jobs(tx, job_id, fence, beside), submissions, now_us)

    def _spawn(
        self, spawner_of: "Callable[[Tx], spawns.Spawner]", submissions: Sequence[Submission], now_us: int
    ) -> Sequence[int]:
        """Create the jobs of a running attempt. ``spawner_of`` checks its lease, anew in each transaction.

        Jobs with keys are visible after each step. Others are written hidden, in one transaction or (many) in
        steps, of which the last gives them to the attempt."""
        from spinney.store.sql.submit import new_jobs, spawns, staging

        write, registry = self.session.write, self.session.registry
        with write() as tx:
            spawner = spawner_of(tx)
            plans = spawns.plans(tx, registry, submissions, spawner)
            keyed = spawns.keyed(plans)
            if keyed:
                ids: list[int] = []
                spawns.spawn_keyed(tx, registry, keyed[:KEYED_STEP], spawner, ids, now_us)
            elif not new_jobs.size(plans):
                return []
            else:
                first_id, total = spawns.stage(tx, plans, spawner, now_us)
                if total <= new_jobs.STEP:
                    for run in new_jobs.runs(tx, registry, plans, first_id, total):
                        new_jobs.write_run(tx, run, now_us, first_id)
        if keyed:
            for start in range(KEYED_STEP, len(keyed), KEYED_STEP):
                with write() as tx:
                    step = keyed[start : start + KEYED_STEP]
                    spawns.spawn_keyed(tx, registry, step, spawner_of(tx), ids, now_us)
            return ids
        if total > new_jobs.STEP:
            try:
                attempt = spawner.job_id, spawner.fence
                staging.write_steps(write, registry, plans, first_id, now_us, attempt=attempt)
            except StoreUnavailable as error:
                # The last step may have been committed; a repeated request would create the jobs twice.
                raise CommitUncertain(
                    f"{total} jobs were written or none: {error}; run the stage again"
                ) from error
        return range(first_id, first_id + total)

    def _staging_step(self, now_us: int) -> int | None:
        """Do one step of deferred work: place published jobs, and update dependants of jobs that have settled or were
        opened again. 0: there may be more; None: there was nothing to do. Steps that a power failure undoes are
        repeated."""
        from spinney.store.sql.submit import new_jobs, staging
        from spinney.store.sql.transitions.cascades import Cascade
        from spinney.store.sql.transitions.regrowth import Regrowth

        registry = self.session.registry
        with self.session.write(durable=False) as tx:
            parent_id = staging.step(tx, registry, now_us, new_jobs.STEP)
            cascade = Cascade(tx, registry, now_us)
            if parent_id is None:
                return 0 if Regrowth(cascade).step() else None
            if parent_id > 0:
                cascade.parent_changed(parent_id)
                # Its children were placed only now, and may wait in turn.
                cascade.began_to_wait(parent_id)
            cascade.drain()
            return parent_id


def _refuse_repeated_keys(submissions: Sequence[Submission]) -> None:
    """Raise UsageError when two jobs of a call have the same key. DuplicateKey would name the first of them, which is
    not accepted either, and callers take it as the sign that their job is there already."""
    seen = set[str]()
    for key in (key for submission in submissions for key in submission.keys or ()):
        if key in seen:
            raise UsageError(
                f"two jobs of this call have the key {key!r}; leave one of them out, or choose another key. Nothing "
                "was submitted"
            )
        seen.add(key)
