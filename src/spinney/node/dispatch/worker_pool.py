"""The workers of a node: they are started when slots need them, ended when idle, and replaced when worn.

A slot that runs ``process`` and ``program`` stages has a warm worker of its own; ``cold`` stages get
a fresh one each; ``thread`` and ``async`` stages of all slots share one ``--concurrent`` child, except those that may
have killed such a child (``crash_suspects``), which get one each. A new worker may get jobs before it is ready: it
reads them when it is.

Slots without a worker only claim while all warm ones are busy, a few at a time: jobs should not wait for the start of a
process when a warm worker will soon be free, and a burst of small jobs should not start a worker in every slot."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from spinney.folders import folders
from spinney.model.attempts import remarks
from spinney.model.errors import SpinneyError
from spinney.model.jobs import Record
from spinney.model.outcomes import Outcome
from spinney.node.context import NodeContext
from spinney.node.dispatch.crash_suspects import CrashSuspects
from spinney.node.dispatch.lanes import Lane
from spinney.node.dispatch.output import Pump
from spinney.node.dispatch.record_queue import RecordQueue
from spinney.node.dispatch.records import interrupted_outcome
from spinney.node.dispatch.requests import Requests
from spinney.node.dispatch.slots import PoolWorker, Slot, Task
from spinney.node.lifecycle import unsynced_files
from spinney.node.workers.child import Child, Events
from spinney.node.workers.start_trouble import StartTrouble
from spinney.node.workers.worker_reports import Exit, Hello

log = logging.getLogger(__name__)

START_SLOW_S = 30.0
"""How long a worker may load the application before that counts as trouble, in seconds."""
ENDING_S = 60.0
"""How long a worker may take to exit when it was told to end and nothing runs in it, in seconds."""
CLEAN_UP_S = 1.0
"""Seconds between TERM and KILL for a shared worker: its other attempts have had their time before."""
LOOK_S = 0.02
"""Seconds between two checks of what still runs beside an attempt that is being ended."""
_BLOCKED = (
    "blocked the event loop, in which other attempts run, too: call what blocks in a thread (await asyncio.to_thread), "
    "or give the stage isolation='thread' or 'process'"
)
"""The message of an attempt that was ended because it blocked the event loop."""


class RunDirGone(SpinneyError):
    """The run-time directory was removed under a node, which ends it: nobody could see any more whether it is gone."""


class Dispatcher(Protocol):
    """The dispatcher, to which the pool reports what workers send."""

    nothing_claimable: bool
    """Nothing was claimable when last asked, and nothing has happened since."""

    def done(self, worker: PoolWorker, rows: Sequence[Sequence[Any]]) -> None:
        """Take the rows of attempts that have ended in this worker."""

    def back(self, worker: PoolWorker, fences: Sequence[int]) -> None:
        """Take leases that this worker hands back unbegun."""

    def exited(self, worker: PoolWorker, how: Exit, remarked: Mapping[int, str]) -> None:
        """Take the end of this worker, of which no process is left. ``remarked``: remarks on lost output, by
        fence."""


class WorkerPool(Events):
    """All workers, in the event loop. ``spawn`` starts a task whose failure ends the node."""

    def __init__(
        self,
        context: NodeContext,
        queue: RecordQueue,
        *,
        make_child: Callable[..., Child],
        pages: Path,
        logs: Path,
        requests: Requests,
        spawn: Callable[[Coroutine[Any, Any, Any]], object],
        on_hello: Callable[[Hello], None],
        ending: Callable[[], bool],
        on_start_trouble: Callable[[str | None], None],
    ) -> None:
        """``ending`` returns whether everything is being killed. ``on_start_trouble`` is called with why workers cannot
        be started, and with None when they can."""
        self._settings, self._root = context.settings, context.folder_root
        self._queue, self._ending, self._make_child = queue, ending, make_child
        self._pages, self._logs, self._starting_at_once = pages, logs, starting_at_once()
        self._requests, self._spawn, self._on_hello = requests, spawn, on_hello
        self.crash_suspects = CrashSuspects()
        self._loop = asyncio.get_running_loop()
        self._pump = Pump(self._marked_in_thread, head_bytes=context.settings.output_bytes)
        self._numbers = count(1)
        self._workers: dict[Child, PoolWorker] = {}
        self._concurrent_worker: PoolWorker | None = None
        self._waiting: dict[int, tuple[PoolWorker, Record]] = {}
        """Records that wait until their output is in its files, by fence."""
        self._early: dict[int, str | None] = {}
        """Remarks on output that was written before its row arrived, by fence."""
        self._offers = 0
        self.start_trouble = StartTrouble(on_start_trouble, queue.request_claim)
        self._worker_ended = asyncio.Event()

    def attach(self, dispatcher: Dispatcher) -> None:
        """Report to this dispatcher; its constructor calls this, before any worker is started."""
        self.dispatcher = dispatcher

    @property
    def workers(self) -> Sequence[PoolWorker]:
        """Return the workers that have processes, or whose last output is still being written, in the order
        of their start."""
        return list(self._workers.values())

    # --- workers for slots ------------------------------------------------------------------

    @property
    def may_start(self) -> bool:
        """Return whether workers can be started now."""
        return time.monotonic() >= self.start_trouble.not_before

    def offers(self) -> int:
        """Return how many slots without a worker may claim now."""
        if not self.may_start:
            return 0
        if not any(w.slot is not None and not w.retiring for w in self._workers.values()):
            return max(1, self._offers)
        return self._offers

    def worker_for(self, slot: Slot, lane: Lane, job_id: int) -> PoolWorker | None:
        """Return the worker that runs an attempt of this job and lane in this slot; None when there can be none now."""
        if lane.concurrent and job_id in self.crash_suspects:
            worker = self._start("isolated", None, concurrent=True)
            if worker is not None:
                worker.isolated = True
            return worker
        if lane.concurrent:
            if self._concurrent_worker is None or self._concurrent_worker.retiring:
                self._concurrent_worker = self._start("concurrent", None, concurrent=True)
            return self._concurrent_worker
        if not lane.warm:
            return self._start("cold", None)
        if slot.worker is None:
            self.warm_up(slot)
            self._offers = max(0, self._offers - 1)
        worker = slot.worker
        return None if worker is None or worker.retiring else worker

    @property
    def shared_loads_long(self) -> bool:
        """Return whether the worker of threads and coroutines has been loading the application for long."""
        return self._concurrent_worker is not None and self._concurrent_worker.loads_long

    def serves(self, lane: Lane) -> bool:
        """Return whether jobs of the lane can run now in a slot with a warm worker; some need a worker of their own."""
        if lane.concurrent and self.shared_loads_long:
            return False
        shares = (
            lane.concurrent
            and self._concurrent_worker is not None
            and not self._concurrent_worker.retiring
            and not self.crash_suspects
        )
        return lane.warm or self.may_start or shares

    def look_at_starts(self) -> None:
        """Report workers that have been loading the application for long: it may wait for something. What was sent to
        the worker of a slot, or to the shared one, goes back meanwhile, because another worker or node may be able to
        run it. A worker for one attempt keeps that: the next one would load the application as long, and never begin it
        either."""
        for worker in self.workers:
            loads = not (worker.hello_received or worker.retiring)
            if loads and time.monotonic() - worker.started_at > START_SLOW_S:
                child = worker.child
                self.start_trouble.failed(
                    f"worker {worker.name} has been loading {self._settings.app} for more than {START_SLOW_S:g} s; "
                    f"see its log {child.log_file}, or what its process waits for, and end that if it hangs: "
                    f"kill {child.pid}"
                )
                worker.loads_long = True
                if worker.slot is not None or worker is self._concurrent_worker:
                    child.recall()

    def warm_up(self, slot: Slot) -> None:
        """Start the slot's warm worker before an attempt needs it, so that its start delays none."""
        slot.worker = self._start(f"slot{slot.number}", slot)

    def _start(self, role: str, slot: Slot | None, *, concurrent: bool = False) -> PoolWorker | None:
        """Start a worker and return it; None while starts pause, or when it cannot be started, which is
        logged. It may get jobs at once, although it has not said hello. Raises RunDirGone."""
        if not self.may_start:
            return None
        worker = PoolWorker(f"{role}.{next(self._numbers)}", slot)
        child = self._make_child(
            name=worker.name,
            events=self,
            page=self._pages / worker.name,
            log_file=self._logs / f"{role}.log",
            concurrent=concurrent,
            start_task=self._spawn,
        )
        try:
            child.start()
        except OSError as error:
            if not self._pages.is_dir():
                raise RunDirGone(
                    f"the run-time directory {self._pages.parent} no longer exists, nor do the locks of this node; "
                    f"set --run-dir (run_dir in spinney.toml) to one that nobody removes, and start the node again"
                ) from None
            self.start_trouble.failed(f"{error}; it tries again")
            self.start_trouble.pause()
            return None
        worker.child = child
        self._workers[child] = worker
        self._pump.add(
            child, lambda fence: self._output_path(worker.held.get(fence) or worker.output_pending[fence])
        )
        log.debug("started worker %s pid=%d", worker.name, child.pid)
        return worker

    def _output_path(self, task: Task) -> Path:
        """Return the path of an attempt's output, without the suffix (``output.Locate``)."""
        lease = task.lease
        return folders.path(self._root, lease.job_id) / folders.OWN / f"{lease.stage}.{lease.fence}"

    # --- replacing and ending workers --------------------------------------------------------------

    def tick(self, slots: Sequence[Slot]) -> None:
        """Measure, replace and end workers; to be called regularly with all slots of the node.

        It also decides how many slots without a worker may claim until the next call: none while a warm
        worker is idle, else as many as may still start (``starting_at_once``)."""
        now = time.monotonic()
        self.start_trouble.forget_old(now)
        self.look_at_starts()
        slots = [slot for slot in slots if not slot.leaving]
        busy = all(slot.held for slot in slots if slot.worker is not None)
        starting = sum(not w.child.ready for w in self._workers.values())
        self._offers = max(0, self._starting_at_once - starting) if busy else 0
        if (
            self._offers
            and not self.dispatcher.nothing_claimable
            and any(slot.worker is None for slot in slots)
        ):
            self._queue.request_claim()
        warm = sum(w.slot is not None and w.usable for w in self._workers.values())
        for worker in self.workers:
            if worker.has_lingered(ENDING_S, now):
                log.warning(
                    "worker %s is killed, because it has not exited for %g s after its end: an atexit function or a "
                    "thread of the application may wait for something",
                    worker.name,
                    ENDING_S,
                )
                self._spawn(self._kill(worker, CLEAN_UP_S))
            if not worker.usable:
                continue
            if not worker.held:
                worker.child.measure_memory()
            if self._worn(worker):
                worker.retire()
            elif not worker.held and now - worker.idle_since > self._settings.idle_end_s:
                if worker.slot is not None and warm <= 1:
                    continue  # one stays warm, so that a new job starts at once
                warm -= worker.slot is not None
                worker.retire()

    def _worn(self, worker: PoolWorker) -> bool:
        """Return whether a worker is to be replaced, because of what it has run or of the memory that it has
        kept."""
        return (
            worker.attempts_run >= self._settings.recycle_after_jobs
            or worker.child.rss_bytes > self._settings.worker_memory_bytes
        )

    def end_attempt(self, worker: PoolWorker, grace_s: float) -> None:
        """End a worker because of an attempt that is named in its ``endings``; ``exited`` is called afterwards. In a
        shared worker, other attempts may finish within ``grace_s``, and go back otherwise."""
        if worker.child.concurrent:
            worker.retire()
            self._spawn(self._end_shared(worker, grace_s))
        else:
            worker.retiring = True
            self._spawn(self._kill(worker, grace_s))

    async def _end_shared(self, worker: PoolWorker, grace_s: float) -> None:
        """Wait until only attempts that are to end are left in a shared worker, at most ``grace_s`` seconds,
        and kill it."""
        until = self._loop.time() + grace_s
        while self._loop.time() < until and any(  # noqa: ASYNC110
            r.fence not in worker.endings for r in worker.child.running()
        ):
            await asyncio.sleep(LOOK_S)
        await self._kill(worker, CLEAN_UP_S)

    async def _kill(self, worker: PoolWorker, grace_s: float) -> None:
        """Kill a worker with all its processes. From now on only rows of passed attempts count as the worker
        reports them."""
        worker.retiring = worker.forced = True
        await worker.child.kill_attempt(grace_s)

    async def end_all(self, grace_s: float) -> None:
        """End every worker; return when no process of them is left and all output is written."""
        await asyncio.gather(*(self._kill(worker, grace_s) for worker in self.workers))
        while self._workers:  # their last output is being written
            self._worker_ended.clear()
            await self._worker_ended.wait()

    def close(self) -> None:
        """Stop the pump's thread, when the workers have ended. It blocks until all output is in its files."""
        self._pump.close()

    # --- output ---------------------------------------------------------------------------

    def after_output(self, worker: PoolWorker, record: Record) -> None:
        """Add the record when the attempt's output is in its files."""
        self._waiting[record.fence] = (worker, record)
        if worker.child.concurrent:
            self._pump.end(worker.name, record.fence)
        if record.fence in self._early:
            self._marked(record.fence, self._early.pop(record.fence))

    def _marked_in_thread(self, fence: int, remark: str | None) -> None:
        self._loop.call_soon_threadsafe(self._marked, fence, remark)

    def _marked(self, fence: int, remark: str | None) -> None:
        """Pass on the record of an attempt whose output is complete. Row and output come by different ways, a
        socket and a pipe: where the output is complete first, that is remembered until ``after_output``."""
        waiting = self._waiting.pop(fence, None)
        if waiting is None:
            self._early[fence] = remark
            return
        worker, record = waiting
        worker.output_pending.pop(fence, None)
        if remark is not None:
            record = record._replace(remark=remarks.behind(record.remark, remark))
        self._queue.add([record])

    # --- Events of children ------------------------------------------------------

    def hello(self, child: Child, hello: Hello) -> None:
        """Claim for a worker that is ready, and pass on what it says of the application, or why it cannot
        serve."""
        worker = self._workers[child]
        worker.idle_since = time.monotonic()
        worker.hello_received, worker.loads_long = True, False
        self._on_hello(hello)
        if hello.error is None:
            self.start_trouble.ended()
            self._queue.request_claim()

    def done(self, child: Child, rows: list[list[Any]]) -> None:
        """Pass on the rows of attempts that have ended. A worker that serves one attempt alone is ended after
        it."""
        worker = self._workers[child]
        self.dispatcher.done(worker, rows)
        if worker.slot is None and (worker.isolated or not child.concurrent):
            worker.retire()  # a cold worker serves one attempt, and so does the worker of a suspect

    def back(self, child: Child, fences: list[int]) -> None:
        """Pass on leases that the worker hands back; one that is ending gets no more."""
        worker = self._workers[child]
        if child.ending:
            worker.retire()
        self.dispatcher.back(worker, fences)

    def ask(self, child: Child, number: int, fence: int, verb: str, args: dict[str, Any]) -> None:
        """Serve a request of an attempt in a task of its own, so that a slow answer delays nothing else."""
        self._spawn(self._requests.answer(self._workers[child], number, fence, verb, args))

    def output(self, child: Child, fence: int, stream: str, text: str) -> None:
        """Pass on what an attempt in a shared worker has printed."""
        self._pump.put(child.name, fence, stream, text)

    def blocked(self, child: Child, blocker: int, late: list[int]) -> None:
        """Blame the attempt that blocks the event loop for the time limits that others have exceeded because of it.
        These go back; the job of the blocking one is run alone from now on."""
        worker = self._workers[child]
        timed_out = {f for f, (outcome, _) in worker.endings.items() if outcome is Outcome.TIMEOUT}
        overdue = [f for f in late if f in worker.held and f in timed_out]
        task = worker.held.get(blocker)
        if task is None or not overdue:
            return
        name = f"stage {task.lease.stage} of job {task.lease.job_id}"
        for fence in overdue:
            if fence != blocker:
                lane = worker.held[fence].lane
                worker.endings[fence] = interrupted_outcome(lane, f"{name} blocked its event loop")
        before = worker.endings.get(blocker)
        if before is None or before[0] is Outcome.TIMEOUT:
            exceeded = "" if before is None else f"{before[1]}, and "
            worker.endings[blocker] = (Outcome.TIMEOUT, f"{exceeded}{_BLOCKED}")
            self.crash_suspects.add([task.lease.job_id])

    def exited(self, child: Child, how: Exit) -> None:
        """Begin to record what a worker ran that has ended with all its processes (``_after_exit``). While
        the whole node is being killed nothing is recorded."""
        if self._ending():
            return  # killed with the node: the successor reads from its page what was running
        worker = self._workers[child]
        if child.ready and not (worker.retiring or how.forced or how.running or how.code == 0):
            log.warning(
                "worker %s ended between attempts (%s); its log is %s",
                worker.name,
                how.signal or f"exit code {how.code}",
                child.log_file,
            )
        worker.retiring = True
        if not child.ready:
            self.start_trouble.pause()
        # A worker that has sent its hello has reported whether it could load the application; one that was killed by
        # this node needs no report.
        if not (worker.hello_received or how.forced):
            why = f"worker {worker.name} did not become ready: {how}; its log is {child.log_file}"
            self._on_hello(Hello(error=why))
        # Its attempts count as ended only when their output is in its files.
        self._spawn(self._after_exit(worker, how, self._pump.remove(worker.name)))

    async def _after_exit(self, worker: PoolWorker, how: Exit, drained: "Future[dict[int, str]]") -> None:
        """Record the end of a worker, in this order: its output is in its files, what its attempts wrote is
        synced, its attempts are recorded. Only then its page is removed, so that a node that dies in between
        leaves behind what the worker ran."""
        remarked: dict[int, str] = {}
        try:
            remarked = await asyncio.wrap_future(drained)
        except OSError as error:
            log.error("output of worker %s is cut short: %s", worker.name, error)
        await unsynced_files.sync_folders(
            self._root,
            [worker.held[line.fence].lease.job_id for line in how.running if line.fence in worker.held],
        )
        for fence in list(worker.output_pending):
            self._marked(fence, remarked.get(fence))
        for fence in worker.held:
            if (early := self._early.pop(fence, None)) is not None:
                remarked[fence] = early
        self.dispatcher.exited(worker, how, remarked)
        del self._workers[worker.child]
        if worker.slot is not None and worker.slot.worker is worker:
            worker.slot.worker = None
        if self._concurrent_worker is worker:
            self._concurrent_worker = None
        worker.child.page.close()
        self._worker_ended.set()
        self._queue.request_claim()
        # The page is deleted after the results are in the store: if the node dies before, its successor reads from
        # the page which attempts the worker was running when it ended.
        await self._queue.flushed()
        (self._pages / worker.name).unlink(missing_ok=True)


def starting_at_once() -> int:
    """Return how many workers may be starting at a time: importing an application keeps one processor busy,
    so one for each, and two on a host with one so that a slow import does not keep all other slots
    waiting."""
    return max(2, len(os.sched_getaffinity(0)))
