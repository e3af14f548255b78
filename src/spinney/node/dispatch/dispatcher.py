"""The dispatcher: it makes claim requests for free slots, gives leases to workers, and turns their rows into
records.

The way of a lease through this module: ``claim_request`` asks for it, ``take`` gets it and sends it to a
worker, where it is in ``PoolWorker.held``; then exactly one of four things makes a record of it: its row
comes back (``done``), the worker hands it back (``back``), it is taken back without the worker
(``take_back``), or the worker ends (``exited``).

This is the hot path: a list of small jobs is handled as a list, at a few microseconds of Python for each job,
with plain tuples and dict lookups. Everything unusual takes another path at the first test."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from types import MappingProxyType

from spinney.model.jobs import ClaimRequest, FlushResult, LaneRequest, Lease, Record, SlotRequest
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.values.named_tuples import named
from spinney.node.context import NodeContext
from spinney.node.dispatch.job_lists import messages, with_extras
from spinney.node.dispatch.lanes import Lane, Lanes
from spinney.node.dispatch.lookahead import Lookahead, backlogged, cold_slot_request
from spinney.node.dispatch.record_queue import RecordQueue
from spinney.node.dispatch.records import (
    BESIDE,
    detailed_record,
    exit_outcome,
    interrupted_outcome,
    is_within_limit,
    success_records,
)
from spinney.node.dispatch.slots import PoolWorker, Slot, Task
from spinney.node.dispatch.worker_pool import WorkerPool
from spinney.node.workers.worker_reports import Exit, Row

log = logging.getLogger(__name__)

RECALL_LEAST_US = 10_000.0
"""The shortest backlog that is recalled: a shorter one is done before others could gain by it."""
RECALL_PAUSE_S = 0.05
"""The least time between two recalls of a slot, so that a stream of new jobs does not cause a storm of recalls."""

_UNSAID = "its worker died before it could report how it ended"
_BROKEN_OFF = frozenset({Outcome.RETURNED, Outcome.CANCELLED})
"""Outcomes that a worker may report only for an attempt that was asked to end."""

_NO_RESULTS: Mapping[int, str] = MappingProxyType({})
_PLAIN = 3
"""The length of a row of an attempt that simply passed."""
_SLOT_AND_STAGE = itemgetter(2, 3, 4)
"""Gets slot, type and stage of a lease."""
_TRACE = itemgetter(9)
"""Gets the trace of a lease."""
_LANE_AND_SLOT = itemgetter(1, 2)
"""Gets lane and slot of a task."""

MarkStarted = Callable[[Sequence[int]], Awaitable[bool]]
"""Makes durable that these attempts run; returns False when that was not possible."""


class Dispatcher:
    """Owns the slots, and gets workers from the worker pool. Everything runs in the event loop."""

    def __init__(
        self,
        context: NodeContext,
        *,
        slots: list[Slot],
        pool: WorkerPool,
        queue: RecordQueue,
        lookahead: Lookahead,
        mark_started: MarkStarted,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Attach the dispatcher to the pool, which reports to it from now on."""
        self.slots, self.pool = slots, pool
        self.lanes = Lanes(())
        self.nothing_claimable = False
        """Nothing was claimable at the last exchange, and nothing has happened since."""
        self._node_id, self._lookahead = 0, lookahead
        self._mark_started, self._monotonic = mark_started, monotonic
        self._queue, self._status, self._now_us = queue, context.status, context.now_us
        self._measurements, self._spans = context.measurements, context.spans
        self._signals = signals = context.signals
        signals.claimable.connect(self.claimable)
        signals.committed.connect(self.claimable)
        signals.woken.connect(self.new_work_arrived)
        pool.attach(self)

    def join_cluster(self, node_id: int, lanes: Lanes) -> None:
        """Start to claim, because the node has joined."""
        self._node_id, self.lanes = node_id, lanes
        self._queue.request_claim()

    def held(self) -> int:
        """Return how many leases the node holds that are not in the record queue yet, those whose output is
        still being written among them. A drain waits until there are none."""
        return sum(len(w.held) + len(w.output_pending) for w in self.pool.workers)

    def tasks(self) -> list[Task]:
        """Return the tasks of all workers. Another thread may call this (the heartbeat names lost attempts):
        it gets a copy of what it can see at that moment."""
        return [task for worker in self.pool.workers for task in list(worker.held.values())]

    def leases(self) -> tuple[int, set[int]]:
        """Return the node's id, and the fences of all leases that it holds."""
        workers = self.pool.workers
        return self._node_id, {
            fence for worker in workers for fence in (*worker.held, *worker.output_pending)
        }

    # --- claim requests --------------------------------------------------------------------------

    def claim_request(self) -> ClaimRequest | None:
        """Return a request for what the node can take now; None: it has not joined, or takes no jobs at
        present (``NodeStatus.takes_jobs``).

        With a request without slots nothing is claimed, but the store may keep the next stage of a recorded
        job on this node, in the slot where the job is."""
        if not (self._status.takes_jobs and self._node_id):
            return None
        return ClaimRequest(
            node_id=self._node_id, slots=self._requested_slots(), lanes=self._requested_lanes()
        )

    def _requested_lanes(self) -> Mapping[tuple[str, str], LaneRequest]:
        """Return the lanes to claim from. Those that no worker can serve now are left out: their jobs would be handed
        back at once and claimed again, as fast as the store can."""
        if self.pool.may_start and not self.pool.shared_loads_long:
            return self.lanes.claim_requests()
        return {lane.key: lane.claim_request for lane in self.lanes if self.pool.serves(lane)}

    def _requested_slots(self) -> list[SlotRequest]:
        """Return a request for each slot that can take jobs: those with a warm worker by the look-ahead, and
        of the others as many as may start a worker now (``WorkerPool.offers``). A slot without a worker may
        also take jobs that need no warm one."""
        now = self._monotonic()
        requests = []
        offers = self.pool.offers()
        # Slots without a warm worker serve threads, coroutines and cold starts as well as any.
        any_cold = self.lanes.any_cold and self.pool.may_start
        for slot in self.slots:
            if slot.leaving:
                continue
            if slot.warm:
                if claim_request := self._lookahead.claim_request(slot, now):
                    requests.append(claim_request)
            elif slot.held == 0 and slot.worker is None and offers:
                offers -= 1
                requests.append(cold_slot_request(slot, warm=True))
            elif slot.held == 0 and any_cold:
                requests.append(cold_slot_request(slot, warm=False))
        return requests

    def after_claim(self, claim_request: ClaimRequest | None, answer: FlushResult) -> None:
        """React to the answer of an exchange: pass on what it says of wake-ups and holds, claim more for
        slots that got their first job or where the store says so, or recall backlogs for a slot that got none.
        ``claim_request`` None: nothing was requested."""
        if answer.wake_us is not None:
            self._signals.wake_due(answer.wake_us)
        self._signals.last_hold(answer.last_hold)
        if answer.work_for_others:
            self._signals.work_for_peers()
        if claim_request is None:
            return
        idle = any(s.free and s.warm for s in claim_request.slots)
        if idle:
            self.nothing_claimable = not (answer.leases or answer.claim_again)
        if answer.claim_again or (answer.leases and answer.starved):
            self._queue.request_claim()  # a slot that got its first job may get more behind it
        if idle and self.nothing_claimable:
            self.recall()  # a slot is idle beside a backlog

    def new_work_arrived(self) -> None:
        """Note that new jobs may be claimable. When no slot is free, backlogs in workers are recalled, so that new and
        more urgent jobs get their fair turn."""
        self.claimable()
        if all(slot.held for slot in self.slots if slot.warm):
            self.recall()

    def claimable(self) -> None:
        """Note that jobs may have become claimable."""
        self.nothing_claimable = False
        self._queue.request_claim()

    def recall(self, slots: Sequence[Slot] | None = None) -> None:
        """Recall the backlogs that are long enough (``RECALL_LEAST_US``); with ``slots``, those of slots
        whose attempt takes long, however short they are. A slot is recalled at most every ``RECALL_PAUSE_S``
        seconds. What the workers hand back comes to ``back``."""
        now = self._monotonic()
        among, least_us = (self.slots, RECALL_LEAST_US) if slots is None else (slots, 0.0)
        for slot in backlogged(among, least_us=least_us, now=now, pause_s=RECALL_PAUSE_S):
            if slot.worker is not None:
                slot.recalled_at = now
                slot.worker.child.recall()

    # --- giving leases to workers ----------------------------------------------------------------------

    def take(self, leases: Sequence[Lease], results: Mapping[int, str] = _NO_RESULTS) -> Sequence[Lease]:
        """Give new leases to workers; those that have no place now are handed back. Return those of types that must not
        run twice unasked (``on_lost="orphan"``), which ``take_marked`` gives. ``results``: by fence, the results of
        earlier stages that go with a lease."""
        if self._spans is not None:
            self._spans.leased(leases)
        if not self.lanes.any_orphan:
            self._give(leases, results)
            return ()
        self._give([lease for lease in leases if not self._orphan(lease)], results)
        return [lease for lease in leases if self._orphan(lease)]

    async def take_marked(self, leases: Sequence[Lease], results: Mapping[int, str] = _NO_RESULTS) -> None:
        """Give leases to workers when it is durable that they run: otherwise a crash of the node would leave a claimed
        job, which goes back to its queue although its stage may have begun. Where that cannot be made durable, the
        leases are handed back."""
        if await self._mark_started([lease.fence for lease in leases]):
            self._give(leases, results)
        else:
            self._return(leases)

    def _orphan(self, lease: Lease) -> bool:
        lane = self.lanes.get(lease.type, lease.stage)
        return lane is not None and lane.orphan

    def _give(self, leases: Sequence[Lease], results: Mapping[int, str]) -> None:
        """Send leases to their workers, as few messages as possible: consecutive leases of one slot and stage
        are handled as one list, and one worker's lists travel together."""
        now = self._monotonic()
        groups: dict[PoolWorker, list[tuple[str, str, list[Row]]]] = {}
        for (_, type_, stage), run in groupby(leases, _SLOT_AND_STAGE):
            chunk = list(run)
            place = self._place(chunk[0], now)
            if place is None:
                self._return(chunk)
                continue
            lane, slot, worker = place
            expected_us = self._lookahead.expected_us(lane)
            slot.held += len(chunk)
            slot.expected_us += len(chunk) * expected_us
            tasks = named(Task, zip(chunk, repeat(lane), repeat(slot), repeat(expected_us)))
            worker.held.update(zip([lease[1] for lease in chunk], tasks, strict=True))
            rows: list[Row] = [
                (job_id, fence, attempt, params, parent_id, root_id)
                for job_id, fence, _, _, _, attempt, params, parent_id, root_id, _ in chunk
            ]
            if results or any(map(_TRACE, chunk)):
                rows = [
                    with_extras(row, results.get(row[1]), lease.trace)
                    for row, lease in zip(rows, chunk, strict=True)
                ]
            sent = groups.setdefault(worker, [])
            if sent and sent[-1][:2] == (type_, stage):
                sent[-1][2].extend(rows)
            else:
                sent.append((type_, stage, rows))
        for worker, lists in groups.items():
            for message in messages(lists, self._lookahead.list_size):
                worker.child.send_run(message)

    def _place(self, lease: Lease, now: float) -> tuple[Lane, Slot, PoolWorker] | None:
        """Return lane, slot and worker for a lease; None when it cannot run on this node now: the node takes
        no jobs, the slot is gone, leaving or closed, the stage is not served, or no worker can be started."""
        if not self._status.takes_jobs or lease.slot >= len(self.slots):
            return None
        slot, lane = self.slots[lease.slot], self.lanes.get(lease.type, lease.stage)
        if lane is None or slot.leaving or (slot.held and (slot.closed or not lane.warm)):
            return None
        worker = self.pool.worker_for(slot, lane, lease.job_id)
        if worker is None:
            return None
        slot.put(lane, now)
        return lane, slot, worker

    def _return(self, leases: Sequence[Lease]) -> None:
        """Hand back leases that never reached a worker."""
        self._queue.add([Record(lease.job_id, lease.fence, Outcome.RETURNED, 0, 0) for lease in leases])

    # --- rows from workers ------------------------------------------------------------------

    def done(self, worker: PoolWorker, rows: Sequence[Row]) -> None:
        """Record attempts that have ended in a worker, in the order in which they ended.

        Rows of attempts that simply passed have three fields and become records as a list; each other row is
        looked at by itself. An attempt with output is queued only when its output is in its files
        (``WorkerPool.after_output``). A row of a lease that the worker does not have is dropped, with a
        warning."""
        plain = max(map(len, rows), default=0) == _PLAIN
        if not plain:
            for row in rows:
                if len(row) != _PLAIN and row[_PLAIN].get("output"):
                    # Before ``take`` removes it from ``held``: the pump's thread, which reports that the output is
                    # written, looks for the attempt in ``held`` and ``output_pending``.
                    worker.note_output_pending(row[0])
        rows, tasks = worker.take(rows)
        if worker.isolated:
            for task in tasks:
                self.pool.crash_suspects.clear(task.lease.job_id)
        keep = self._status.takes_jobs and not (worker.retiring or self.slots[-1].leaving)
        now = self._monotonic()
        records: list[Record] = []
        touched: Lane | None = None
        at = 0
        for (lane, slot), run in groupby(tasks, _LANE_AND_SLOT):
            ended = list(run)
            part = rows[at : at + len(ended)]
            at += len(ended)
            slot.held -= len(ended)
            slot.expected_us -= sum([task[3] for task in ended])
            lane.add_run_times(
                len(ended),
                sum([row[2] - row[1] for row in part]),
                chars=sum([len(task[0][6]) for task in ended]),
            )
            if lane is not touched:
                if touched is not None:
                    touched.learn()
                touched = lane
            if plain and not worker.endings:
                self._passed(lane, ended, part, keep, records)
            else:
                for task, row in zip(ended, part, strict=True):
                    if len(row) == _PLAIN and row[0] not in worker.endings:
                        self._passed(lane, [task], [row], keep, records)
                    else:
                        self._unusual(worker, task, row, keep, records)
            slot.moved_at = now
            if slot.held == 0:
                slot.emptied()
        if touched is not None:
            touched.learn()
        worker.finished(len(rows), now)
        self._queue.add(records)

    def _passed(
        self, lane: Lane, tasks: Sequence[Task], rows: Sequence[Row], keep: bool, records: list[Record]
    ) -> None:
        """Add the records of attempts of one lane that simply passed, and count them."""
        records += success_records(tasks, rows, keep=keep)
        if self._measurements is not None:
            self._measurements.passed(lane.key, rows)

    def _unusual(self, worker: PoolWorker, task: Task, row: Row, keep: bool, records: list[Record]) -> None:
        """Record an attempt whose row has more than a plain success, or that was asked to end. Only the dispatcher
        knows which were: one that was broken off without that, or failed while its worker was being killed, is an
        interruption. One that returned after its time limit has not passed: it may have returned because of it. Where
        it has exceeded its limit because another attempt blocked the event loop, that counts as an interruption, and
        the job runs alone next time: one that hangs by itself would be interrupted again and again."""
        row = row if len(row) > _PLAIN else [*row, {}]
        fence, detail = row[0], row[_PLAIN]
        outcome = Outcome(detail.get("outcome", "ok"))
        message = detail.get("message")
        ending = worker.endings.get(fence)
        if ending is not None and ending[0] is Outcome.TIMEOUT and is_within_limit(task, row):
            blocked_s, blocker = detail["blocked"]
            outcome, message = interrupted_outcome(
                task.lane, f"{blocker} blocked its event loop for {blocked_s:.1f} s"
            )
            if outcome is Outcome.RETURNED:
                self.pool.crash_suspects.add([task.lease.job_id])
        elif ending is not None and (outcome not in PASSED or ending[0] is Outcome.TIMEOUT):
            outcome, message = ending
        elif outcome not in PASSED and (worker.forced or outcome in _BROKEN_OFF):
            outcome, message = interrupted_outcome(task.lane, BESIDE)
        elif outcome not in PASSED and fence in worker.uncertain_requests:
            outcome, message = Outcome.LOST, worker.uncertain_requests[fence]
        record = detailed_record(task, row, outcome, message, keep=keep)
        if self._measurements is not None:
            self._measurements.ended(task.lane.key, record)
        if detail.get("output"):
            self.pool.after_output(worker, record)
        else:
            records.append(record)

    def take_back(self, worker: PoolWorker) -> None:
        """Take back, without the worker's answer, recalled leases that it cannot begin any more."""
        fences, running = list(worker.held), worker.child.blocking_fence()
        if running in worker.held:
            # Workers keep the order: attempts before this one have ended, and are about to be reported.
            fences = fences[fences.index(running) + 1 :]
        elif worker.child.ready or not worker.child.begins_nothing():
            return
        if fences:
            log.debug("worker %s: %d leases are taken back", worker.name, len(fences))
            worker.child.take_back(fences)
            self.back(worker, fences)

    def back(self, worker: PoolWorker, fences: Sequence[int]) -> None:
        """Return leases that a worker hands back without having begun them."""
        tasks = [task for fence in fences if (task := worker.held.pop(fence, None)) is not None]
        self._leave(tasks)
        self._return([task.lease for task in tasks])

    def exited(self, worker: PoolWorker, how: Exit, remarked: Mapping[int, str]) -> None:
        """Record the end of a worker with all its processes: its running attempts have ended, the rest goes back.
        ``remarked``: remarks on the output of its attempts, by fence. When several attempts were running, they become
        suspects (``crash_suspects``)."""
        running = {line.fence: line for line in how.running}
        if len(running) > 1 and not how.forced:
            shared = [worker.held[fence].lease.job_id for fence in running if fence in worker.held]
            log.warning(
                "worker %s: %s; each of its %d attempts runs again alone", worker.name, how, len(shared)
            )
            self.pool.crash_suspects.add(shared)
        now_us = self._now_us()
        records = []
        for fence, task in worker.held.items():
            line, job_id = running.get(fence), task.lease.job_id
            if line is not None:
                outcome, message = exit_outcome(worker, task, how)
                remark = remarked.get(fence)
                record = Record(
                    job_id, fence, outcome, line.started_us, now_us, message=message, remark=remark
                )
                records.append(record)
                log.warning("job=%d fence=%d ended as %s: %s", job_id, fence, outcome, message)
            elif how.unreported and task.lane.orphan:
                # The worker may have run it without a report, and ``on_lost="orphan"`` forbids a second run that
                # nobody has decided on.
                records.append(Record(job_id, fence, Outcome.LOST, now_us, now_us, message=_UNSAID))
            else:
                records.append(Record(job_id, fence, Outcome.RETURNED, 0, 0))
        tasks = list(worker.held.values())
        worker.held.clear()
        self._leave(tasks)
        if self._measurements is not None:
            for task, record in zip(tasks, records, strict=True):
                self._measurements.ended(task.lane.key, record)
        self._queue.add(records)

    def _leave(self, tasks: Sequence[Task]) -> None:
        """Take tasks out of their slots, which are free again when they were the last ones."""
        for task in tasks:
            task.slot.held -= 1
            task.slot.expected_us -= task.expected_us
            if task.slot.held == 0:
                task.slot.emptied()
