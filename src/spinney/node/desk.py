"""Between recorder and workers: wants from free slots, leases into workers, rows into records.

This is the hot path: a list of small jobs goes through as a list, at a few microseconds of Python a
job, with plain tuples and dict lookups. Everything unusual leaves it at the first test.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from spinney.model.jobs import Exchange, LaneWant, Lease, Record, SlotWant, Want
from spinney.model.outcomes import PASSED, Outcome
from spinney.node.crew import Crew, Worker
from spinney.node.executors.child import Exit
from spinney.node.lanes import CHARS_A_US, Lane, Lanes
from spinney.node.lists import messages
from spinney.node.slots import Ahead, Slot, Task, backlogged, cold_want

log = logging.getLogger(__name__)

RECALL_LEAST_US = 10_000.0
"""Shorter backlogs are not recalled: they are gone before anybody could gain by it."""
RECALL_PAUSE_S = 0.05
"""No slot's backlog is recalled more often, so that a stream of newcomers makes no storm."""

_UNSAID = "its worker died before it could say how it ended"

_OK = Outcome.OK
_record = Record._make
Row = Sequence[Any]


class Sink(Protocol):
    """Where records go (the recorder)."""

    def add(self, records: Sequence[Record]) -> None: ...
    def ask(self) -> None: ...


class Desk:
    """Owns the slots; talks to the crew about workers. Everything happens in the event loop."""

    def __init__(
        self,
        *,
        slots: list[Slot],
        crew: Crew,
        ahead: Ahead,
        mark_started: "MarkStarted",
        on_wake: Callable[[int], None],
        on_hold: Callable[[int], None],
        on_left: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``on_wake`` hears when something becomes due by itself (µs since 1970), ``on_hold`` the number of
        the last hold that was laid, again and again, ``on_left`` that there is work here for other nodes."""
        self.slots, self.crew = slots, crew
        self.lanes = Lanes(())
        self.sink: Sink
        """Set before anything runs."""
        self.draining = False
        self.resting = False
        """An operator has drained it: nothing new is wanted until it is resumed."""
        self.dry = False
        """Nothing was claimable when last asked, and nothing has happened since."""
        self._node_id, self._ahead = 0, ahead
        self._mark_started, self._monotonic = mark_started, monotonic
        self._on_wake, self._on_hold, self._on_left = on_wake, on_hold, on_left

    def enter(self, node_id: int, lanes: Lanes) -> None:
        """The node has joined: from now on work is wanted."""
        self._node_id, self.lanes = node_id, lanes
        self.sink.ask()

    def held(self) -> int:
        """How many leases the node holds that are not recorded yet."""
        return sum(len(w.held) + len(w.unwritten) for w in self.crew.workers)

    def tasks(self) -> list[Task]:
        """What workers have, as far as another thread can see it."""
        return [task for worker in self.crew.workers for task in list(worker.held.values())]

    def known(self) -> tuple[int, set[int]]:
        """The node, and the fences of all leases that it holds."""
        workers = self.crew.workers
        return self._node_id, {fence for worker in workers for fence in (*worker.held, *worker.unwritten)}

    # --- wanting --------------------------------------------------------------------------

    def want(self) -> Want | None:
        """What could be taken on now. With no slots in it: nothing, but stages may be kept."""
        if self.draining or self.resting or not self._node_id:
            return None
        return Want(node_id=self._node_id, slots=self._wanted_slots(), lanes=self._wanted_lanes())

    def _wanted_lanes(self) -> Mapping[tuple[str, str], LaneWant]:
        """While no worker can start, what needs one of its own is not asked for: it would be handed back at once,
        and asked for again, as fast as the store can."""
        wants = self.lanes.wants()
        if self.crew.may_start:
            return wants
        return {key: want for key, want in wants.items() if self.crew.serves(self.lanes.lane(key))}

    def _wanted_slots(self) -> list[SlotWant]:
        now = self._monotonic()
        wanted = []
        offers = self.crew.offers()
        # Slots without a warm worker serve threads, coroutines and cold starts as well as any.
        any_cold = self.lanes.any_cold and self.crew.may_start
        for slot in self.slots:
            if slot.leaving:
                continue
            if slot.warm:
                if want := self._ahead.want(slot, now):
                    wanted.append(want)
            elif slot.held == 0 and slot.worker is None and offers:
                offers -= 1
                wanted.append(cold_want(slot, warm=True))
            elif slot.held == 0 and any_cold:
                wanted.append(cold_want(slot, warm=False))
        return wanted

    def answered(self, want: Want | None, answer: Exchange) -> None:
        """An exchange has been made: is there more to ask for?"""
        if answer.wake_us is not None:
            self._on_wake(answer.wake_us)
        self._on_hold(answer.last_hold)
        if answer.left:
            self._on_left()
        if want is None:
            return
        idle = any(s.free and s.warm for s in want.slots)
        if idle:
            self.dry = not answer.leases
        if answer.leases and answer.starved:
            self.sink.ask()  # a slot that was given its first job may be given more behind it
        if idle and not answer.leases:
            self.recall()  # somebody idles beside a backlog

    def newcomers(self) -> None:
        """Something new may be claimable. When no slot is free, what waits in workers comes back, so
        that newcomers and what is more urgent get their fair turn."""
        self.claimable()
        if all(slot.held for slot in self.slots if slot.warm):
            self.recall()

    def claimable(self) -> None:
        """Something may have become claimable."""
        self.dry = False
        self.sink.ask()

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
        self.sink.add(records)

    def available(self) -> None:
        """A slot may take work."""
        self.sink.ask()

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
        places: dict[int, tuple[str, str, Lane, Slot, Worker, list[Row], float]] = {}
        for lease in leases:
            job_id, fence, number, type_, stage, attempt, params, parent_id, root_id = lease
            place = places.get(number)
            if place is None or place[1] != stage or place[0] != type_:
                found = self._place(lease, now)
                if found is None:
                    self._return([lease])
                    continue
                lane, slot, worker = found
                rows: list[Row] = []
                expected_us = self._ahead.expected_us(lane)
                place = places[number] = (type_, stage, lane, slot, worker, rows, expected_us)
                groups.setdefault(worker, []).append((type_, stage, rows))
            _, _, lane, slot, worker, rows, expected_us = place
            slot.held += 1
            slot.expected_us += expected_us
            worker.held[fence] = Task(lease, lane, slot, expected_us)
            rows.append((job_id, fence, attempt, params, parent_id, root_id))
        for worker, given in groups.items():
            for message in messages(given, self._ahead.list_size):
                worker.child.send_run(message)

    def _place(self, lease: Lease, now: float) -> tuple[Lane, Slot, Worker] | None:
        """Where a lease runs; None when it cannot run here now."""
        if self.draining or self.resting or lease.slot >= len(self.slots):
            return None
        slot, lane = self.slots[lease.slot], self.lanes.get(lease.type, lease.stage)
        if lane is None or slot.leaving or (slot.held and (slot.closed or not lane.warm)):
            return None
        worker = self.crew.worker_for(slot, lane)
        if worker is None:
            return None
        slot.put(lane, now)
        return lane, slot, worker

    def _return(self, leases: Sequence[Lease]) -> None:
        """Hand leases back that never reached a worker."""
        self.sink.add([Record(lease.job_id, lease.fence, Outcome.RETURNED, 0, 0) for lease in leases])

    # --- what comes back ------------------------------------------------------------------

    def done(self, worker: Worker, rows: Sequence[Row]) -> None:
        """Attempts have ended in a worker."""
        pop = worker.held.pop
        keep = not (self.draining or self.resting or worker.retiring or self.slots[-1].leaving)
        records = []
        touched: Lane | None = None
        slot: Slot | None = None
        for row in rows:
            fence, started_us, ended_us = row[0], row[1], row[2]
            if len(row) != 3 and row[3].get("output"):
                # Before it leaves ``held``: the pump's thread must find it in one of the two.
                worker.note_unwritten(fence)
            task = pop(fence, None)
            if task is None:
                log.warning("worker %s reported attempt %d, which it does not have", worker.name, fence)
                continue
            lease, lane, slot, expected_us = task
            slot.held -= 1
            slot.expected_us -= expected_us
            lane.attempts += 1
            lane.total_us += ended_us - started_us + len(lease[6]) // CHARS_A_US
            if lane is not touched:
                if touched is not None:
                    touched.learn()
                touched = lane
            if len(row) == 3:
                records.append(
                    _record((lease[0], fence, _OK, started_us, ended_us,
                             None, None, None, True, None, None, False, None, keep, None, None))
                )  # fmt: skip
            else:
                self._unusual(worker, task, row, keep, records)
            if slot.held == 0:
                slot.emptied()
        if touched is not None:
            touched.learn()
        if slot is not None:
            slot.moved_at = self._monotonic()
        worker.finished(len(rows), self._monotonic())
        self.sink.add(records)

    def _unusual(self, worker: Worker, task: Task, row: Row, keep: bool, records: list[Record]) -> None:
        """An attempt that ended with more to say than "ok"."""
        fence, started_us, ended_us, said = row
        outcome = Outcome(said.get("outcome", "ok"))
        message = said.get("message")
        if outcome not in PASSED and (ended := worker.endings.get(fence)) is not None:
            outcome, message = ended
        elif outcome not in PASSED and fence in worker.doubts:
            outcome, message = Outcome.LOST, worker.doubts[fence]
        record = Record(
            task.lease.job_id, fence, outcome, started_us, ended_us, said.get("result"), message,
            said.get("error"), said.get("retryable", True), said.get("code"), said.get("delay_s"),
            said.get("lane", False), said.get("lock"), keep, said.get("log"),
            _wanted(said),
        )  # fmt: skip
        if said.get("output"):
            self.crew.after_output(worker, record)
        else:
            records.append(record)

    def take_back(self, worker: Worker) -> None:
        """Get back, without the worker's answer, what it was asked for and cannot begin any more."""
        running = worker.child.stands_behind()
        if running not in worker.held:
            return
        # Workers keep to the order: what stands before it has ended, and is about to be told.
        fences = list(worker.held)
        behind = fences[fences.index(running) + 1 :]
        if behind:
            log.debug("worker %s: %d leases are taken from behind attempt %d", worker.name, len(behind), running)
            worker.child.take_back(behind)
            self.back(worker, behind)

    def back(self, worker: Worker, fences: Sequence[int]) -> None:
        """A worker hands back what it had not begun."""
        tasks = [task for fence in fences if (task := worker.held.pop(fence, None)) is not None]
        self._leave(tasks)
        self._return([task.lease for task in tasks])

    def exited(self, worker: Worker, how: Exit) -> None:
        """A worker is gone with everything below it: what it ran has ended, the rest goes back."""
        running = {line.fence: line for line in how.running}
        now_us = time.time_ns() // 1000
        records = []
        for fence, task in worker.held.items():
            line = running.get(fence)
            if line is None and how.unreported and task.lane.orphan:
                # It may be one of those, and its type forbids a silent second run.
                records.append(Record(task.lease.job_id, fence, Outcome.LOST, now_us, now_us, message=_UNSAID))
                continue
            if line is None:
                records.append(Record(task.lease.job_id, fence, Outcome.RETURNED, 0, 0))
                continue
            outcome, message = self._ending(worker, task, how)
            records.append(
                Record(task.lease.job_id, fence, outcome, line.started_us, now_us, message=message)
            )
            log.warning("job=%d fence=%d ended as %s: %s", task.lease.job_id, fence, outcome, message)
        tasks = list(worker.held.values())
        worker.held.clear()
        self._leave(tasks)
        self.sink.add(records)

    def _ending(self, worker: Worker, task: Task, how: Exit) -> tuple[Outcome, str]:
        ending = worker.endings.get(task.lease.fence)
        if ending is not None:
            return ending
        if how.forced:  # it ran beside the one that had to be ended, and is not to blame
            return handed_back(task.lane, "its worker had to be ended because of another attempt")
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


def _wanted(said: Mapping[str, Any]) -> tuple[int, int | None] | None:
    """How much of a lock an attempt wanted that did not get it."""
    found = said.get("wanted")
    return None if found is None else (found[0], found[1])


def handed_back(lane: Lane, message: str) -> tuple[Outcome, str]:
    """How an attempt ends that the node had to break off: uncounted where it may run again."""
    return (Outcome.LOST if lane.orphan else Outcome.RETURNED), message
