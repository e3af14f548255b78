"""The one loop of records and leases, and the threads that own stores."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from spinney.model.errors import CommitUncertain, StoreUnusable
from spinney.model.jobs import ClaimRequest, FlushResult, Lease, Reconciliation, Record, SlotRequest
from spinney.model.outcomes import Outcome
from spinney.node.dispatch.record_queue import RecordQueue
from spinney.node.dispatch.recorder import Recorder
from spinney.node.measurements import NodeMeasurements
from spinney.node.store_thread import StoreThread, StoreThreadEnded


def record(n: int) -> Record:
    return Record(n, n, Outcome.OK, 1, 2)


ENDLESS_S = 1e300


class FakeStore:
    """Remembers exchanges; stays shut while ``health`` lasts."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.claim_requests: list[ClaimRequest | None] = []
        self.trouble = 0
        self.closed = False
        self.leases: list[Lease] = []
        self.all_results: dict[int, dict[str, object]] = {}
        self.asked_about: list[list[int]] = []
        self.accounts = Reconciliation(leased=[], recorded=frozenset())

    def flush_and_claim(
        self, records: Sequence[Record], claim_request: ClaimRequest | None, *, now_us: int
    ) -> FlushResult:
        self.claim_requests.append(claim_request)
        if any(r.delay_s == ENDLESS_S for r in records):
            raise OverflowError("no database takes that")
        if self.trouble:
            self.trouble -= 1
            raise StoreUnusable("the disk is full; make room")
        self.batches.append([r.job_id for r in records])
        leases, self.leases = self.leases, []
        return FlushResult(leases=leases, refused=[r for r in records if r.job_id == 99])

    def results(self, job_id: int) -> Mapping[str, object]:
        return self.all_results[job_id]

    def reconcile(self, node_id: int, records: Sequence[Record]) -> Reconciliation:
        self.asked_about.append([r.fence for r in records])
        if self.trouble:
            self.trouble -= 1
            raise StoreUnusable("the disk is full; make room")
        return self.accounts

    def close(self) -> None:
        self.closed = True


class FakeDesk:
    def __init__(self) -> None:
        self.slots: list[SlotRequest] = []
        self.taken: list[Lease] = []
        self.results: dict[int, str] = {}
        self.answered: list[ClaimRequest | None] = []

    def claim_request(self) -> ClaimRequest | None:
        return ClaimRequest(node_id=1, slots=self.slots, lanes={})

    def take(self, leases: Sequence[Lease], results: Mapping[int, str]) -> Sequence[Lease]:
        self.taken += leases
        self.results |= results
        return ()

    def after_claim(self, claim_request: ClaimRequest | None, answer: FlushResult) -> None:
        self.answered.append(claim_request)

    def leases(self) -> tuple[int, set[int]]:
        return 1, {50}


class FakeSpans:
    """Remembers of which records spans were sent, by job."""

    def __init__(self) -> None:
        self.outcomes: dict[int, Outcome] = {}

    def recorded(
        self, records: Sequence[Record], refused: Collection[int], *, begun_us: int, ended_us: int
    ) -> None:
        self.outcomes |= {r.job_id: r.outcome for r in records if r.fence not in refused}


class Scene:
    def __init__(self) -> None:
        self.store: Any = FakeStore()
        self.dispatcher = FakeDesk()
        self.pauses: list[float] = []
        self.spans: Any = FakeSpans()

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


def context(
    db: StoreThread,
    *,
    batch: int = 10,
    measurements: NodeMeasurements | None = None,
    spans: FakeSpans | None = None,
) -> Any:
    """In place of the node's context: what a recorder takes of it."""
    return SimpleNamespace(
        writer=db,
        settings=SimpleNamespace(batch_records=batch),
        now_us=lambda: 1,
        measurements=measurements,
        spans=spans,
    )


async def running(
    scene: Scene,
    work: Callable[[RecordQueue], Any],
    batch: int = 600,
    measurements: NodeMeasurements | None = None,
) -> None:
    async with StoreThread("test", lambda: scene.store) as db:
        queue = RecordQueue()
        recorder = Recorder(
            context(db, batch=batch, measurements=measurements, spans=scene.spans),
            scene.dispatcher,  # type: ignore[arg-type]
            queue,
            use_results={("t", "s")},
            pause=scene.pause,
            draw=lambda: 0.5,
        )
        loop = asyncio.ensure_future(recorder.run())
        try:
            async with asyncio.timeout(10):
                await work(queue)
        finally:
            loop.cancel()
    assert scene.store.closed


async def test_what_is_due_goes_out_in_one_transaction_up_to_the_bound() -> None:
    scene = Scene()

    async def work(queue: RecordQueue) -> None:
        queue.add([record(n) for n in range(25)])
        await queue.flushed()
        assert queue.recorded == 25

    await running(scene, work, batch=10)
    assert [len(b) for b in scene.store.batches] == [10, 10, 5]


async def test_spans_are_sent_of_what_was_written_as_it_was_written() -> None:
    """Given a record that no database takes and one whose lease is gone, when they are recorded one by one, then the
    first has failed, and the second has no span."""
    scene = Scene()

    async def work(queue: RecordQueue) -> None:
        endless = record(2)._replace(outcome=Outcome.DEFER, delay_s=ENDLESS_S)
        queue.add([record(1), endless, record(99)])
        await queue.flushed()

    await running(scene, work)
    assert scene.spans.outcomes == {1: Outcome.OK, 2: Outcome.ERROR}


async def test_nothing_is_asked_when_nothing_is_due_or_wanted() -> None:
    scene = Scene()

    async def work(queue: RecordQueue) -> None:
        queue.request_claim()
        await asyncio.sleep(0.01)

    await running(scene, work)
    assert scene.store.batches == []


async def test_when_a_commit_is_in_doubt_only_what_was_not_taken_goes_out_again_and_unheard_leases_go_back() -> (
    None
):
    # Given an exchange of which the answer was lost, and then a store that is away for two more tries
    scene = Scene()

    def lost(records: Sequence[Record], claim_request: ClaimRequest | None, *, now_us: int) -> FlushResult:
        del scene.store.flush_and_claim
        scene.store.trouble = 2
        raise CommitUncertain("lost in the commit")

    # ... that has the first record and the second's lease; of the third, which had not begun, there is nothing;
    # the fourth's attempt was taken from it; 50 is known, of 60 the node has never heard
    scene.store.flush_and_claim = lost
    scene.store.accounts = Reconciliation(leased=[(2, 2), (5, 50), (6, 60)], recorded=frozenset({1}))

    async def work(queue: RecordQueue) -> None:
        queue.add([record(1), record(2), Record(3, 3, Outcome.RETURNED, 0, 0), record(4)])
        await queue.flushed()
        await queue.flushed()
        assert queue.recorded == 5

    await running(scene, work)
    assert scene.store.asked_about == [[1, 2, 3, 4]] * 3
    assert scene.store.batches == [[2, 4], [6]]


async def test_a_free_slot_gets_leases_at_once() -> None:
    scene = Scene()
    scene.dispatcher.slots = [SlotRequest(0, 1, 1.0, True)]
    scene.store.leases = [Lease(1, 1, 0, "t", "other", 1, "{}", None, 1)]

    async def work(queue: RecordQueue) -> None:
        queue.request_claim()
        while not scene.dispatcher.taken:  # noqa: ASYNC110
            await asyncio.sleep(0)

    await running(scene, work)


async def test_results_go_with_the_leases_of_stages_that_use_them() -> None:
    scene = Scene()
    scene.dispatcher.slots = [SlotRequest(0, 1, 1.0, True)]
    scene.store.leases = [
        Lease(n, n + 10, 0, "t", stage, 1, "{}", None, n) for n, stage in enumerate("sosss")
    ]
    scene.store.all_results = {0: {"a": 1}, 1: {}, 2: {}, 3: {"a": "x" * 100_000}, 4: {"a": object()}}

    async def work(queue: RecordQueue) -> None:
        queue.request_claim()
        while not scene.dispatcher.taken:  # noqa: ASYNC110
            await asyncio.sleep(0)

    await running(scene, work)
    assert scene.dispatcher.results == {10: '{"a":1}', 12: "{}"}


async def test_records_are_held_through_trouble_and_none_is_lost() -> None:
    scene = Scene()
    scene.store.trouble = 4

    async def work(queue: RecordQueue) -> None:
        queue.add([record(1), record(2)])
        await queue.flushed()

    await running(scene, work)
    assert scene.store.batches == [[1, 2]]
    assert scene.pauses == [0.05, 0.1, 0.2, 0.4]
    assert scene.store.claim_requests[1:] == [None] * 4


async def test_a_claim_that_trouble_has_dropped_is_no_answer_and_is_made_afterwards() -> None:
    """Given an idle slot and a database that fails once, when the exchange is made again without its claim, then the
    dispatcher does not learn that nothing is claimable, and the claim follows."""
    scene = Scene()
    scene.dispatcher.slots = [SlotRequest(0, 1, 1.0, True)]
    scene.store.trouble = 1
    measurements = NodeMeasurements()

    async def work(queue: RecordQueue) -> None:
        queue.add([record(1)])
        while len(scene.dispatcher.answered) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)

    await running(scene, work, measurements=measurements)
    assert [request is not None for request in scene.store.claim_requests] == [True, False, True]
    assert [request is not None for request in scene.dispatcher.answered] == [False, True]
    assert {kind: sum(times.counts) for kind, times in measurements.exchanges.items()} == {
        "flush": 1,
        "claim": 1,
    }


async def test_a_claim_that_was_dropped_because_of_one_record_is_made_afterwards() -> None:
    scene = Scene()
    scene.dispatcher.slots = [SlotRequest(0, 1, 1.0, True)]

    async def work(queue: RecordQueue) -> None:
        queue.add([record(1)._replace(outcome=Outcome.DEFER, delay_s=ENDLESS_S)])
        while len(scene.dispatcher.answered) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)

    await running(scene, work)
    assert [request is not None for request in scene.dispatcher.answered] == [False, True]


async def test_a_record_that_no_store_can_take_fails_its_job_alone() -> None:
    scene = Scene()
    taken: list[Record] = []

    def picky(records: Sequence[Record], claim_request: ClaimRequest | None, *, now_us: int) -> FlushResult:
        if any(r.delay_s == 1e300 for r in records):
            raise OverflowError("int too large")
        taken.extend(records)
        return FlushResult(leases=[], refused=[])

    scene.store.flush_and_claim = picky

    async def work(queue: RecordQueue) -> None:
        queue.add([record(1), record(2)._replace(outcome=Outcome.DEFER, delay_s=1e300), record(3)])
        await queue.flushed()

    await running(scene, work)
    assert [(r.job_id, r.outcome, r.retryable) for r in taken] == [
        (1, Outcome.OK, True),
        (2, Outcome.ERROR, False),
        (3, Outcome.OK, True),
    ]


async def test_a_store_that_is_broken_for_all_ends_the_recorder() -> None:
    scene = Scene()

    def broken(records: Any, claim_request: Any, *, now_us: int) -> Any:
        raise KeyError("a mistake in the store")

    scene.store.flush_and_claim = broken
    async with asyncio.timeout(10), StoreThread("test", lambda: scene.store) as db:
        queue = RecordQueue()
        recorder = Recorder(context(db), scene.dispatcher, queue)  # type: ignore[arg-type]
        queue.add([record(1), record(2)])
        with pytest.raises(KeyError):
            await recorder.run()


async def test_an_error_while_leases_are_given_out_ends_the_recorder_and_fails_no_job() -> None:
    scene = Scene()

    def broken(leases: Sequence[Lease], results: Mapping[int, str]) -> Sequence[Lease]:
        raise KeyError("a mistake in the dispatcher")

    scene.dispatcher.take = broken  # type: ignore[method-assign]
    async with asyncio.timeout(10), StoreThread("test", lambda: scene.store) as db:
        queue = RecordQueue()
        recorder = Recorder(context(db), scene.dispatcher, queue)  # type: ignore[arg-type]
        queue.add([record(1), record(2)])
        with pytest.raises(KeyError, match="in the dispatcher"):
            await recorder.run()
    assert scene.store.batches == [[1, 2]]


async def test_a_late_record_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()

    async def work(queue: RecordQueue) -> None:
        queue.add([record(99)])
        await queue.flushed()

    await running(scene, work)
    assert "refused late record job=99" in caplog.text


async def test_errors_of_a_call_reach_its_caller_alone() -> None:
    scene = Scene()
    async with StoreThread("test", lambda: scene.store) as db:
        with pytest.raises(ZeroDivisionError):
            await db.call(lambda store: 1 // 0)
        assert await db.call(lambda store: 5) == 5


async def test_what_follows_a_call_is_done_before_its_caller_goes_on() -> None:
    scene = Scene()
    order: list[str] = []

    async with StoreThread("test", lambda: scene.store) as db:
        value = await db.call(lambda store: order.append("call"), then=lambda value: order.append("then"))
        order.append("caller")
        with pytest.raises(ZeroDivisionError):
            await db.call(lambda store: 0, then=lambda value: 1 // value)

    assert (value, order) == (None, ["call", "then", "caller"])


async def test_a_store_that_cannot_be_opened_is_told() -> None:
    def broken() -> Any:
        raise StoreUnusable("no store there; run 'spinney init'")

    with pytest.raises(StoreUnusable, match="spinney init"):
        await StoreThread("test", broken).__aenter__()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_nobody_waits_for_a_dead_store_thread() -> None:
    scene = Scene()

    def die(store: Any) -> None:
        raise SystemExit("broken")

    async with asyncio.timeout(10), StoreThread("test", lambda: scene.store) as db:
        calls = [asyncio.ensure_future(db.call(die)), asyncio.ensure_future(db.call(lambda store: 1))]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(d, BaseException) for d in done)
        with pytest.raises(StoreThreadEnded):
            await db.call(lambda store: 1)


async def test_a_recorder_ends_with_its_store_thread() -> None:
    scene = Scene()

    def die(records: Any, claim_request: Any, *, now_us: int) -> Any:
        raise SystemExit("broken")

    scene.store.flush_and_claim = die
    async with asyncio.timeout(10), StoreThread("test", lambda: scene.store) as db:
        queue = RecordQueue()
        recorder = Recorder(context(db), scene.dispatcher, queue)  # type: ignore[arg-type]
        queue.add([record(1)])
        with pytest.raises(StoreThreadEnded):
            await recorder.run()
