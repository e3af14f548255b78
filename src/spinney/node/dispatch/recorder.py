"""The loop that sends records to the store and gets leases from it.

Whenever records are due or a slot can take jobs, exactly one exchange is made with the store: one transaction writes
all due records and makes the next claim. There is no timer and no delay: a single job is recorded at once, and while
the writer is busy the next records accumulate for the next transaction.

A record stays in the queue until the store has written it. When the database is in trouble (unavailable, locked by
another program, the disk full) the same exchange is retried, with growing delays, for as long as the node lives.

**When a connection is lost during the commit**, the node does not know whether the records were written, and leases may
have been granted whose answer never arrived. So before the next exchange the node compares its state with the store
(``Store.reconcile``): records in the history are done, and a lease that the node does not know goes back."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial

import orjson

from spinney.model.errors import CommitUncertain, SpinneyError, StoreUnusable
from spinney.model.jobs import ClaimRequest, FlushResult, Lease, Record
from spinney.model.outcomes import Outcome
from spinney.node.context import NodeContext
from spinney.node.dispatch.dispatcher import Dispatcher
from spinney.node.dispatch.record_queue import RecordQueue
from spinney.node.retry_delays import RetryDelays
from spinney.store.parts import Store

log = logging.getLogger(__name__)

_CANNOT = "what the stage ended with cannot be recorded"
_RESULTS_MAX = 16
"""For how many leases of one exchange the results of earlier stages are read at once, so that an attempt need not ask
for them. More are leases of quick jobs, for which the next records would have to wait."""
_RESULTS_CHARS = 64 * 2**10
"""The largest results that go with a lease."""


class _NotRecorded(Exception):
    """The store cannot write these records together."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Recorder:
    """Exchanges records for leases in the event loop; ``run`` is its task."""

    def __init__(
        self,
        context: NodeContext,
        dispatcher: Dispatcher,
        queue: RecordQueue,
        *,
        use_results: Collection[tuple[str, str]] = (),
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """``use_results``: the stages, as (type, stage), that use the results of earlier ones; they grow in number."""
        self._db, self._dispatcher, self._queue = context.writer, dispatcher, queue
        self._batch, self._now_us = context.settings.batch_records, context.now_us
        self._measurements, self._spans = context.measurements, context.spans
        self._use_results, self._pause, self._draw = use_results, pause, draw
        self._results: Mapping[int, str] = {}
        """The results of earlier stages for leases of the last exchange, by fence."""
        self._unmarked: Sequence[Lease] = ()
        """Leases of the last exchange that are given out only when they are marked as started."""
        self._in_doubt = False
        """It is not known whether the last exchange was committed."""

    async def run(self) -> None:
        """Exchange records for leases with the store whenever there is something to exchange, until the task is
        cancelled."""
        while True:
            await self._queue.wait()
            while self._queue.begin_exchange():
                await self._once()

    async def _once(self) -> None:
        """Make one exchange: send the oldest records and the claim request, give out the leases, and drop the records
        from the queue. Records that the store has refused are dropped, too: their leases belong to somebody else by
        now."""
        claim_request = self._dispatcher.claim_request()
        records = self._queue.first(self._batch)
        if not records and (claim_request is None or not claim_request.slots):
            return
        self._results, self._unmarked = {}, ()
        begun_s = time.perf_counter()
        answer, answered_request = await self._flush_and_claim(records, claim_request)
        if self._measurements is not None:
            self._measurements.exchanged(
                time.perf_counter() - begun_s,
                records=records,
                refused=len(answer.refused),
                leases=len(answer.leases),
                claims=answered_request is not None and bool(answered_request.slots),
            )
        self._queue.remove(len(records))
        for late in answer.refused:
            log.warning(
                "refused late record job=%d fence=%d outcome=%s: its lease was gone",
                late.job_id,
                late.fence,
                late.outcome,
            )
        if self._unmarked:
            await self._dispatcher.take_marked(self._unmarked, self._results)
        self._dispatcher.after_claim(answered_request, answer)
        if answered_request is not claim_request:
            self._queue.request_claim()  # the slots that asked may still be idle

    async def _flush_and_claim(
        self, records: list[Record], claim_request: ClaimRequest | None
    ) -> tuple[FlushResult, ClaimRequest | None]:
        """Make the exchange, for as long as it takes: repeated while the database is in trouble, after a
        reconciliation when it is not known whether the last try was committed, and record by record when the
        store cannot write one of them. Return its answer and the claim request that was answered: None when
        that was dropped on the way, so that an answer without leases does not mean that nothing is claimable.
        Raises other errors of the store."""
        delays = RetryDelays(draw=self._draw)
        while True:
            begun_us = self._now_us()
            try:
                if self._in_doubt:
                    records = await self._reconciled(records)
                    continue
                exchange = partial(self._exchange, records, claim_request, begun_us)
                answer, _ = await self._db.call(exchange, then=self._give)
                self._send_spans(records, begun_us, {record.fence for record in answer.refused})
                return answer, claim_request
            except StoreUnusable as error:
                # The claim request is dropped: when the store answers again its slots may be gone.
                claim_request = None
                self._in_doubt = self._in_doubt or isinstance(error, CommitUncertain)
                await self._pause(delays.next_s())
            except _NotRecorded as error:
                if all(record.outcome is Outcome.RETURNED for record in records):
                    raise error.cause from None
                log.error("%d records cannot be recorded together", len(records), exc_info=error.cause)
                return await self._one_by_one(records, error.cause), None

    def _exchange(
        self, records: list[Record], claim_request: ClaimRequest | None, now_us: int, store: Store
    ) -> tuple[FlushResult, Mapping[int, str]]:
        """Make one exchange in the store's thread, and read with it the results of earlier stages that the new
        attempts will ask for: that saves each of them a request through socket and thread. Results that are long,
        or of many leases, are left out, and asked for by the attempts."""
        try:
            answer = store.flush_and_claim(records, claim_request, now_us=now_us)
        except SpinneyError:
            raise
        except Exception as error:
            raise _NotRecorded(error) from error
        using = [lease for lease in answer.leases if (lease.type, lease.stage) in self._use_results]
        if len(using) > _RESULTS_MAX:
            return answer, {}
        results: dict[int, str] = {}
        # The leases are granted by now. An attempt whose results are missing asks for them, and gets the error.
        with contextlib.suppress(SpinneyError, TypeError):
            for lease in using:
                text = orjson.dumps(store.results(lease.job_id)).decode()
                if len(text) <= _RESULTS_CHARS:
                    results[lease.fence] = text
        return answer, results

    def _give(self, exchanged: tuple[FlushResult, Mapping[int, str]]) -> None:
        """Give out the leases of an exchange, before anything else is done with its answer: workers wait for them."""
        answer, self._results = exchanged
        self._unmarked = self._dispatcher.take(answer.leases, self._results)

    async def _reconciled(self, records: list[Record]) -> list[Record]:
        """Return the records that the store has not written yet. Leases that the node does not know are
        handed back.

        A record is written if its attempt is in the history. An attempt that never began leaves no history;
        its record is written if its lease is gone."""
        node_id, fences = self._dispatcher.leases()
        in_doubt = list(records)
        reconciliation = await self._db.call(lambda store: store.reconcile(node_id, in_doubt))
        self._in_doubt = False
        fences.update(record.fence for record in self._queue.pending())
        unheard = [(job_id, fence) for job_id, fence in reconciliation.leased if fence not in fences]
        leased = {fence for _, fence in reconciliation.leased}
        unrecorded = [
            r
            for r in in_doubt
            if r.fence not in reconciliation.recorded and (r.fence in leased or r.started_us > 0)
        ]
        log.warning(
            "a connection was lost in a commit: of %d records %d had been taken, %d leases go back",
            len(in_doubt),
            len(in_doubt) - len(unrecorded),
            len(unheard),
        )
        self._queue.add([Record(job_id, fence, Outcome.RETURNED, 0, 0) for job_id, fence in unheard])
        left = {record.fence for record in unrecorded}
        now_us = self._now_us()
        self._send_spans([record for record in in_doubt if record.fence not in left], now_us, ())
        return unrecorded

    def _send_spans(self, records: Sequence[Record], begun_us: int, refused: Collection[int]) -> None:
        """Send the spans of records that the store has written, as it has written them."""
        if self._spans is not None:
            self._spans.recorded(records, refused, begun_us=begun_us, ended_us=self._now_us())

    async def _one_by_one(self, records: list[Record], error: Exception) -> FlushResult:
        """Record each by itself, because the store cannot write one of them (a delay of a million years): that job
        fails, and the others are not affected."""
        if len(records) == 1:
            answer, _ = await self._flush_and_claim([_as_error(records[0], error)], None)
            return answer
        answers = [(await self._flush_and_claim([record], None))[0] for record in records]
        return FlushResult(
            leases=[lease for answer in answers for lease in answer.leases],
            refused=[late for answer in answers for late in answer.refused],
        )


def _as_error(record: Record, error: Exception) -> Record:
    """Return a record that fails the job in place of one that cannot be written. Raises ``error`` when it is
    such a record already: then its content was not the cause."""
    if record.message is not None and record.message.startswith(_CANNOT):
        raise error  # the record was not the cause: the store itself is broken
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
