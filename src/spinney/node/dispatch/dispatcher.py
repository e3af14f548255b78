"""Between recorder and workers: wants from free slots, leases into workers, rows into records.

This is the hot path: a list of small jobs goes through as a list, at a few microseconds of Python a
job, with plain tuples and dict lookups. Everything unusual leaves it at the first test.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from typing import Protocol

from spinney.model.jobs import ClaimRequest, FlushResult, LaneRequest, Lease, Record, SlotRequest
from spinney.model.outcomes import PASSED, Outcome
from spinney.model.values.named_tuples import named
from spinney.node.dispatch.job_lists import messages
from spinney.node.dispatch.lanes import Lane, Lanes
from spinney.node.dispatch.record_queue import RecordQueue
from spinney.node.dispatch.records import Row, detailed_record, success_records
from spinney.node.dispatch.slots import Lookahead, Slot, Task, backlogged, cold_slot_request
from spinney.node.dispatch.worker_pool import Worker, WorkerPool
from spinney.node.signals import NodeSignals, NodeStatus
from spinney.node.workers.child import Exit

log = logging.getLogger(__name__)

RECALL_LEAST_US = 10_000.0
"""Shorter backlogs are not recalled: they are gone before anybody could gain by it."""
RECALL_PAUSE_S = 0.05
"""No slot's backlog is recalled more often, so that a stream of newcomers makes no storm."""

_UNSAID = "its worker died before it could say how it ended"
_BESIDE = "its worker was ended, not because of this attempt"
_BROKEN_OFF = frozenset({Outcome.RETURNED, Outcome.CANCELLED})
"""What a worker may say of an attempt only where somebody asked that attempt to end."""

_PLAIN = 3
"""So long is the row of an attempt of which there is nothing to say but that it passed."""
_SLOT_AND_STAGE = itemgetter(2, 3, 4)
"""Of a lease."""
_LANE_AND_SLOT = itemgetter(1, 2)
"""Of a task."""


class Dispatcher:
    """Owns the slots; talks to the worker pool about workers. Everything happens in the event loop."""

    def __init__(
        self,
        *,
        slots: list[Slot],
        pool: WorkerPool,
        queue: RecordQueue,
        lookahead: Lookahead,
        mark_started: "MarkStarted",
        signals: NodeSignals,
        status: NodeStatus,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """The pool reports to this dispatcher from now on."""
        self.slots, self.pool = slots, pool
        self.lanes = Lanes(())
        self.nothing_claimable = False
        """Nothing was claimable when last asked, and nothing has happened since."""
        self._node_id, self._lookahead = 0, lookahead
        self._mark_started, self._monotonic = mark_started, monotonic
        self._queue, self._signals, self._status = queue, signals, status
        signals.claimable.connect(self.claimable)
        signals.committed.connect(self.claimable)
        signals.woken.connect(self.new_work_arrived)
        pool.attach(self)

    def join_cluster(self, node_id: int, lanes: Lanes) -> None:
        """The node has joined: from now on work is wanted."""
        self._node_id, self.lanes = node_id, lanes
        self._queue.request_claim()

    def held(self) -> int:
        """How many leases the node holds that are not recorded yet."""
        return sum(len(w.held) + len(w.output_pending) for w in self.pool.workers)

    def tasks(self) -> list[Task]:
        """What workers have, as far as another thread can see it."""
        return [task for worker in self.pool.workers for task in list(worker.held.values())]

    def known(self) -> tuple[int, set[int]]:
        """The node, and the fences of all leases that it holds."""
        workers = self.pool.workers
        return self._node_id, {
            fence for worker in workers for fence in (*worker.held, *worker.output_pending)
        }

    # --- wanting --------------------------------------------------------------------------

    def claim_request(self) -> ClaimRequest | None:
        """What could be taken on now. With no slots in it: nothing, but stages may be kept."""
        if not (self._status.takes_jobs and self._node_id):
            return None
        return ClaimRequest(
            node_id=self._node_id, slots=self._requested_slots(), lanes=self._requested_lanes()
        )

    def _requested_lanes(self) -> Mapping[tuple[str, str], LaneRequest]:
        """While no worker can start, what needs one of its own is not asked for: it would be handed back at once,
        and asked for again, as fast as the store can."""
        claim_requests = self.lanes.claim_requests()
        if self.pool.may_start:
            return claim_requests
        return {
            key: claim_request
            for key, claim_request in claim_requests.items()
            if self.pool.serves(self.lanes.lane(key))
        }

    def _requested_slots(self) -> list[SlotRequest]:
        now = self._monotonic()
        wanted = []
        offers = self.pool.offers()
        # Slots without a warm worker serve threads, coroutines and cold starts as well as any.
        any_cold = self.lanes.any_cold and self.pool.may_start
        for slot in self.slots:
            if slot.leaving:
                continue
            if slot.warm:
                if claim_request := self._lookahead.claim_request(slot, now):
                    wanted.append(claim_request)
            elif slot.held == 0 and slot.worker is None and offers:
                offers -= 1
                wanted.append(cold_slot_request(slot, warm=True))
            elif slot.held == 0 and any_cold:
                wanted.append(cold_slot_request(slot, warm=False))
        return wanted

    def after_claim(self, claim_request: ClaimRequest | None, answer: FlushResult) -> None:
        """An exchange has been made: is there more to ask for?"""
        if answer.wake_us is not None:
            self._signals.wake_due(answer.wake_us)
        self._signals.last_hold(answer.last_hold)
        if answer.left:
            self._signals.work_for_peers()
        if claim_request is None:
            return
        idle = any(s.free and s.warm for s in claim_request.slots)
        if idle:
            self.nothing_claimable = not answer.leases
        if answer.leases and answer.starved:
            self._queue.request_claim()  # a slot that was given its first job may be given more behind it
        if idle and not answer.leases:
            self.recall()  # somebody idles beside a backlog

    def new_work_arrived(self) -> None:
        """Something new may be claimable. When no slot is free, what waits in workers comes back, so
        that newcomers and what is more urgent get their fair turn."""
        self.claimable()
        if all(slot.held for slot in self.slots if slot.warm):
            self.recall()

    def claimable(self) -> None:
        """Something may have become claimable."""
        self.nothing_claimable = False
        self._queue.request_claim()

    def recall(self, slots: Sequence[Slot] | None = None) -> None:
        """Ask for the backlogs back that are worth it; of these slots, where they stand behind something that takes
        long, however short they are."""
        now = self._monotonic()
        among, least_us = (self.slots, RECALL_LEAST_US) if slots is None else (slots, 0.0)
        for slot in backlogged(among, least_us=least_us, now=now, pause_s=RECALL_PAUSE_S):
            if slot.worker is not None:
                slot.recalled_at = now
                slot.worker.child.recall()

    def record(self, records: Sequence[Record]) -> None:
        """These can be recorded now."""
        self._queue.add(records)

    def available(self) -> None:
        """A slot may take work."""
        self._queue.request_claim()

    # --- handing out ----------------------------------------------------------------------

    async def take(self, leases: Sequence[Lease]) -> None:
        """Hand out new leases. Where a silent second run is forbidden, ``running`` is durable first."""
        if not self.lanes.any_orphan:
            self._give(leases)
            return
        careful = [lease for lease in leases if self._orphan(lease)]
        self._give([lease for lease in leases if not self._orphan(lease)])
        if careful and await self._mark_started([lease.fence for lease in careful]):
            self._give(careful)
        else:
            self._return(careful)

    def _orphan(self, lease: Lease) -> bool:
        lane = self.lanes.get(lease.type, lease.stage)
        return lane is not None and lane.orphan

    def _give(self, leases: Sequence[Lease]) -> None:
        now = self._monotonic()
        groups: dict[Worker, list[tuple[str, str, list[Row]]]] = {}
        for (_, type_, stage), run in groupby(leases, _SLOT_AND_STAGE):
            given = list(run)
            place = self._place(given[0], now)
            if place is None:
                self._return(given)
                continue
            lane, slot, worker = place
            expected_us = self._lookahead.expected_us(lane)
            slot.held += len(given)
            slot.expected_us += len(given) * expected_us
            tasks = named(Task, zip(given, repeat(lane), repeat(slot), repeat(expected_us)))
            worker.held.update(zip([lease[1] for lease in given], tasks, strict=True))
            rows: list[Row] = [
                (job_id, fence, attempt, params, parent_id, root_id)
                for job_id, fence, _, _, _, attempt, params, parent_id, root_id in given
            ]
            sent = groups.setdefault(worker, [])
            if sent and sent[-1][:2] == (type_, stage):
                sent[-1][2].extend(rows)
            else:
                sent.append((type_, stage, rows))
        for worker, some in groups.items():
            for message in messages(some, self._lookahead.list_size):
                worker.child.send_run(message)

    def _place(self, lease: Lease, now: float) -> tuple[Lane, Slot, Worker] | None:
        """Where a lease runs; None when it cannot run here now."""
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
        """Hand leases back that never reached a worker."""
        self._queue.add([Record(lease.job_id, lease.fence, Outcome.RETURNED, 0, 0) for lease in leases])

    # --- what comes back ------------------------------------------------------------------

    def done(self, worker: Worker, rows: Sequence[Row]) -> None:
        """Attempts have ended in a worker."""
        plain = max(map(len, rows), default=0) == _PLAIN
        if not plain:
            for row in rows:
                if len(row) != _PLAIN and row[_PLAIN].get("output"):
                    # Before it leaves ``held``: the pump's thread must find it in one of the two.
                    worker.note_output_pending(row[0])
        rows, tasks = _taken(worker, rows)
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
            if plain:
                records += success_records(ended, part, keep=keep)
            else:
                for task, row in zip(ended, part, strict=True):
                    if len(row) == _PLAIN:
                        records += success_records([task], [row], keep=keep)
                    else:
                        self._unusual(worker, task, row, keep, records)
            slot.moved_at = now
            if slot.held == 0:
                slot.emptied()
        if touched is not None:
            touched.learn()
        worker.finished(len(rows), now)
        self._queue.add(records)

    def _unusual(self, worker: Worker, task: Task, row: Row, keep: bool, records: list[Record]) -> None:
        """An attempt that ended with more to say than "ok". Whose end was asked for is known here, not in the worker:
        what was broken off without that, or failed while its worker was being killed, is an interruption."""
        fence, said = row[0], row[_PLAIN]
        outcome = Outcome(said.get("outcome", "ok"))
        message = said.get("message")
        if outcome not in PASSED and (ended := worker.endings.get(fence)) is not None:
            outcome, message = ended
        elif outcome not in PASSED and (worker.forced or outcome in _BROKEN_OFF):
            outcome, message = interrupted_outcome(task.lane, _BESIDE)
        elif outcome not in PASSED and fence in worker.uncertain_requests:
            outcome, message = Outcome.LOST, worker.uncertain_requests[fence]
        record = detailed_record(task, row, outcome, message, keep=keep)
        if said.get("output"):
            self.pool.after_output(worker, record)
        else:
            records.append(record)

    def take_back(self, worker: Worker) -> None:
        """Get back, without the worker's answer, what it was asked for and cannot begin any more."""
        running = worker.child.blocking_fence()
        if running not in worker.held:
            return
        # Workers keep to the order: what stands before it has ended, and is about to be told.
        fences = list(worker.held)
        behind = fences[fences.index(running) + 1 :]
        if behind:
            log.debug(
                "worker %s: %d leases are taken from behind attempt %d", worker.name, len(behind), running
            )
            worker.child.take_back(behind)
            self.back(worker, behind)

    def back(self, worker: Worker, fences: Sequence[int]) -> None:
        """A worker hands back what it had not begun."""
        tasks = [task for fence in fences if (task := worker.held.pop(fence, None)) is not None]
        self._leave(tasks)
        self._return([task.lease for task in tasks])

    def exited(self, worker: Worker, how: Exit, remarked: Mapping[int, str]) -> None:
        """A worker is gone with everything below it: what it ran has ended, the rest goes back.
        ``remarked``: what is to be said of the output of its attempts, by fence. A death that several attempts
        shared makes them suspects (``crash_suspects``)."""
        running = {line.fence: line for line in how.running}
        if len(running) > 1 and not how.forced:
            shared = [worker.held[fence].lease.job_id for fence in running if fence in worker.held]
            log.warning(
                "worker %s: %s; each of its %d attempts runs again alone", worker.name, how, len(shared)
            )
            self.pool.crash_suspects.add(shared)
        now_us = time.time_ns() // 1000
        records = []
        for fence, task in worker.held.items():
            line = running.get(fence)
            if line is None and how.unreported and task.lane.orphan:
                # It may be one of those, and its type forbids a silent second run.
                records.append(
                    Record(task.lease.job_id, fence, Outcome.LOST, now_us, now_us, message=_UNSAID)
                )
                continue
            if line is None:
                records.append(Record(task.lease.job_id, fence, Outcome.RETURNED, 0, 0))
                continue
            outcome, message = self._ending(worker, task, how)
            records.append(
                Record(
                    task.lease.job_id,
                    fence,
                    outcome,
                    line.started_us,
                    now_us,
                    message=message,
                    remark=remarked.get(fence),
                )
            )
            log.warning("job=%d fence=%d ended as %s: %s", task.lease.job_id, fence, outcome, message)
        tasks = list(worker.held.values())
        worker.held.clear()
        self._leave(tasks)
        self._queue.add(records)

    def _ending(self, worker: Worker, task: Task, how: Exit) -> tuple[Outcome, str]:
        ending = worker.endings.get(task.lease.fence)
        if ending is not None:
            return ending
        if how.forced:  # it ran beside the one that had to be ended, and is not to blame
            return interrupted_outcome(task.lane, _BESIDE)
        if len(how.running) > 1:
            return interrupted_outcome(task.lane, f"{how} while {len(how.running)} attempts ran in it")
        return Outcome.DIED, str(how)

    def _leave(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            task.slot.held -= 1
            task.slot.expected_us -= task.expected_us
            if task.slot.held == 0:
                task.slot.emptied()


class MarkStarted(Protocol):
    """Makes durable that these attempts run; False when that was not possible."""

    async def __call__(self, fences: Sequence[int]) -> bool: ...


def _taken(worker: Worker, rows: Sequence[Row]) -> tuple[Sequence[Row], list[Task]]:
    """What the worker has of these; it has them no more."""
    pop = worker.held.pop
    tasks = [pop(row[0], None) for row in rows]
    known = [task for task in tasks if task is not None]
    if len(known) == len(rows):
        return rows, known
    for row, task in zip(rows, tasks, strict=True):
        if task is None:
            log.warning("worker %s reported attempt %d, which it does not have", worker.name, row[0])
    return [row for row, task in zip(rows, tasks, strict=True) if task is not None], known


def interrupted_outcome(lane: Lane, message: str) -> tuple[Outcome, str]:
    """How an attempt ends that the node had to break off: uncounted where it may run again."""
    return (Outcome.LOST if lane.orphan else Outcome.RETURNED), message
