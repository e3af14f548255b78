"""The one loop through which records go out and leases come in.

Whenever records are due or a slot can take work, exactly one exchange is made with the store: all
that is due in one transaction, and the next claim with it. No timer and no linger: one job alone is
recorded at once, and while the writer is busy what becomes due gathers for the next transaction.

A record is kept here until the store has taken it. When the database is in trouble (gone, locked by a
foreign program, the disk full) the same exchange is tried again, with growing pauses, for as long
as the node lives.

**When a connection is lost in the commit**, nobody here knows whether the records were taken, and leases may have been
granted of which the answer never came. So before anything else is exchanged the store is asked for an account
(``Store.reconcile``): what is in the history is done, and a lease of which the node knows nothing goes back.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from spinney.model.errors import CommitUncertain, SpinneyError, StoreUnusable
from spinney.model.jobs import ClaimRequest, FlushResult, Lease, Record
from spinney.model.outcomes import Outcome
from spinney.node.dispatch.record_queue import RecordQueue
from spinney.node.retry_delays import RetryDelays
from spinney.node.store_thread import StoreThread
from spinney.store.contract import Store

log = logging.getLogger(__name__)

_CANNOT = "what the stage ended with cannot be recorded"


class Dispatcher(Protocol):
    """Who wants work and gets it."""

    def claim_request(self) -> ClaimRequest | None:
        """What could be taken on now. Without slots: stages may be kept; None: not even that."""

    async def take(self, leases: Sequence[Lease]) -> None:
        """Hand out new leases."""

    def after_claim(self, claim_request: ClaimRequest | None, answer: FlushResult) -> None:
        """An exchange has been made, its leases are handed out."""

    def known(self) -> tuple[int, set[int]]:
        """The node, and the fences of all leases of which it knows."""


class Recorder:
    """Exchanges records for work. Lives in the event loop; ``run`` is its task."""

    def __init__(
        self,
        db: StoreThread,
        dispatcher: Dispatcher,
        queue: RecordQueue,
        *,
        batch: int,
        now_us: Callable[[], int],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._db, self._dispatcher, self._queue, self._batch = db, dispatcher, queue, batch
        self._now_us, self._pause, self._draw = now_us, pause, draw
        self._in_doubt = False
        """Nobody here knows whether the last exchange was committed."""

    async def run(self) -> None:
        """Exchange, for ever."""
        while True:
            await self._queue.wait()
            while self._queue.begin_exchange():
                await self._once()

    async def _once(self) -> None:
        claim_request = self._dispatcher.claim_request()
        records = self._queue.first(self._batch)
        if not records and (claim_request is None or not claim_request.slots):
            return
        answer = await self._flush_and_claim(records, claim_request)
        self._queue.remove(len(records))
        for late in answer.refused:
            log.warning(
                "refused late record job=%d fence=%d outcome=%s: its lease was gone",
                late.job_id,
                late.fence,
                late.outcome,
            )
        await self._dispatcher.take(answer.leases)
        self._dispatcher.after_claim(claim_request, answer)

    async def _flush_and_claim(
        self, records: list[Record], claim_request: ClaimRequest | None
    ) -> FlushResult:
        delays = RetryDelays(draw=self._draw)
        while True:
            flush_and_claim = partial(
                _flush_and_claim, records=records, claim_request=claim_request, now_us=self._now_us()
            )
            try:
                if self._in_doubt:
                    records = await self._accounted(records)
                    continue
                return await self._db.call(flush_and_claim)
            except StoreUnusable as error:
                # The want is dropped: by the time the store answers again its slots may be gone.
                claim_request = None
                self._in_doubt = self._in_doubt or isinstance(error, CommitUncertain)
                await self._pause(delays.next_s())
            except SpinneyError:
                raise
            except Exception as error:
                if not any(record.outcome is not Outcome.RETURNED for record in records):
                    raise
                log.exception("%d records cannot be recorded together", len(records))
                return await self._one_by_one(records, error)

    async def _accounted(self, records: list[Record]) -> list[Record]:
        """Those that the store has not taken yet. Leases of which the node has not heard are handed back."""
        node_id, known = self._dispatcher.known()
        asked = list(records)
        found = await self._db.call(lambda store: store.reconcile(node_id, asked))
        self._in_doubt = False
        known.update(record.fence for record in self._queue.pending())
        unheard = [(job_id, fence) for job_id, fence in found.leased if fence not in known]
        leased = {fence for _, fence in found.leased}
        # What had not begun leaves nothing in the history but that its lease is gone.
        left = [r for r in asked if r.fence not in found.recorded and (r.fence in leased or r.started_us > 0)]
        log.warning(
            "a connection was lost in a commit: of %d records %d had been taken, %d leases go back",
            len(asked),
            len(asked) - len(left),
            len(unheard),
        )
        self._queue.add([Record(job_id, fence, Outcome.RETURNED, 0, 0) for job_id, fence in unheard])
        return left

    async def _one_by_one(self, records: list[Record], error: Exception) -> FlushResult:
        """Something in one of them is more than the store can take (a delay of a million years): that
        job fails for it, and the others do not notice."""
        if len(records) == 1:
            return await self._flush_and_claim([_without_its_words(records[0], error)], None)
        answers = [await self._flush_and_claim([record], None) for record in records]
        return FlushResult(
            leases=[lease for answer in answers for lease in answer.leases],
            refused=[late for answer in answers for late in answer.refused],
            starved=True,
        )


def _without_its_words(record: Record, error: Exception) -> Record:
    if record.message is not None and record.message.startswith(_CANNOT):
        raise error  # it was not the record: the store itself is broken
    message = f"{_CANNOT}: {error!r}; return or raise something smaller"
    return Record(
        record.job_id,
        record.fence,
        Outcome.ERROR,
        record.started_us,
        record.ended_us,
        message=message,
        retryable=False,
    )


def _flush_and_claim(
    store: Store, *, records: list[Record], claim_request: ClaimRequest | None, now_us: int
) -> FlushResult:
    return store.flush_and_claim(records, claim_request, now_us=now_us)
