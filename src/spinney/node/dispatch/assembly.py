"""The parts that jobs pass through, put together: requests, worker pool, dispatcher, recorder, limits.

The parts get each other here and nowhere else, so that each can be tested with stand-ins. The order of calls
in the life of a node is ``start_workers``, ``tasks`` (from then on the node claims), ``drain``, and
``pool.end_all``."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from spinney.model.errors import StoreUnusable
from spinney.node.context import NodeContext
from spinney.node.dispatch.dispatcher import Dispatcher
from spinney.node.dispatch.lanes import Lanes
from spinney.node.dispatch.limits import Limits
from spinney.node.dispatch.lookahead import Lookahead
from spinney.node.dispatch.record_queue import RecordQueue
from spinney.node.dispatch.recorder import Recorder
from spinney.node.dispatch.records import interrupted_outcome
from spinney.node.dispatch.requests import Requests
from spinney.node.dispatch.slots import Slot
from spinney.node.dispatch.ticker import Ticker
from spinney.node.dispatch.worker_pool import WorkerPool, starting_at_once
from spinney.node.workers.child import Child
from spinney.node.workers.stack_taker import StackTaker
from spinney.node.workers.worker_reports import Hello

log = logging.getLogger(__name__)

_LOOK_S = 0.02
_LOOK_AT_STARTS_S = 1.0


class DispatchAssembly:
    """Jobs pass from the store through these parts to workers and back."""

    def __init__(
        self,
        context: NodeContext,
        queue: RecordQueue,
        *,
        make_child: Callable[..., Child],
        pages: Path,
        logs: Path,
        spawn: Callable[[Coroutine[Any, Any, Any]], object],
        ending: Callable[[], bool],
        on_start_trouble: Callable[[str | None], None],
    ) -> None:
        """``spawn`` starts a task whose failure ends the node. ``ending`` returns whether everything is being
        killed. ``on_start_trouble`` is called with why workers cannot be started, and with None when they can."""
        self._spawn = spawn
        self._context, settings = context, context.settings
        self._first_hello: asyncio.Future[Hello] = asyncio.get_running_loop().create_future()
        requests = Requests(context, spawn)
        self.pool = WorkerPool(
            context,
            queue,
            make_child=make_child,
            pages=pages,
            logs=logs,
            requests=requests,
            spawn=spawn,
            on_hello=self._on_hello,
            ending=ending,
            on_start_trouble=on_start_trouble,
        )
        self.dispatcher = Dispatcher(
            context,
            slots=[Slot(number) for number in range(settings.slots)],
            pool=self.pool,
            queue=queue,
            lookahead=Lookahead(
                run_us=settings.lookahead_s * 1e6, jobs=settings.lookahead_jobs, list_size=settings.list_size
            ),
            mark_started=self._mark_started,
        )
        self._recorder = Recorder(context, self.dispatcher, queue, use_results=requests.use_results)
        self._limits = Limits(
            self.pool,
            self.dispatcher,
            stacks=StackTaker(context.folder_root, spawn),
            show=lambda fences: spawn(self._mark_started(fences)),
            long_s=settings.lookahead_s,
        )

    async def start_workers(self, *, backlog: bool) -> None:
        """Start the worker that loads the application, and where jobs are waiting already (``backlog``) others beside
        it, as many as may start at a time: the processors are idle until the node has joined, and a start takes them
        from the jobs later. Where none can be started (a full disk), retry until one can, because nothing else does
        before the node has joined."""
        for slot in self.dispatcher.slots[: starting_at_once() if backlog else 1]:
            self.pool.warm_up(slot)
        slot = self.dispatcher.slots[0]
        while slot.worker is None:
            await asyncio.sleep(_LOOK_S)
            self.pool.warm_up(slot)

    async def application(self) -> Hello:
        """Return the first worker's description of the application, as soon as it has loaded it."""
        while not self._first_hello.done():
            self.pool.look_at_starts()
            await asyncio.wait((self._first_hello,), timeout=_LOOK_AT_STARTS_S)
        return self._first_hello.result()

    def tasks(self, node_id: int, lanes: Lanes) -> list[Coroutine[Any, Any, None]]:
        """Start to claim, and return the tasks that run while the node is a member of its cluster."""
        ticker = Ticker(
            self._context, self.pool, self.dispatcher, self._limits, node_id=node_id, spawn=self._spawn
        )
        self.dispatcher.join_cluster(node_id, lanes)
        return [self._recorder.run(), ticker.run()]

    async def drain(self, hurry: asyncio.Event) -> None:
        """Recall leases that have not begun, end workers that are still loading the application, and wait until running
        attempts have finished, up to the drain's limit or until ``hurry`` is set; attempts that still run are then
        marked as interrupted, before the workers are ended."""
        for worker in self.pool.workers:
            worker.child.recall()
            if not worker.child.ready:
                self.pool.end_attempt(worker, 0.0)
        give_up = time.monotonic() + self._context.settings.drain_limit_s
        while self.dispatcher.held() and time.monotonic() < give_up and not hurry.is_set():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        for worker in self.pool.workers:
            for fence, task in worker.held.items():
                worker.endings.setdefault(fence, interrupted_outcome(task.lane, "its node was stopped"))

    def _on_hello(self, hello: Hello) -> None:
        """Note what a worker says of the application. Only the first worker decides whether the node starts;
        a later one that cannot load the application (its files were changed meanwhile) degrades the node."""
        if not self._first_hello.done():
            self._first_hello.set_result(hello)
        elif hello.error is not None:
            self.pool.start_trouble.failed(hello.error)

    async def _mark_started(self, fences: Sequence[int]) -> bool:
        """Make durable that these attempts run, and return whether that was possible. While the database does
        not answer an attempt goes on without being shown as running; ``Dispatcher.take`` hands its leases
        back instead."""
        now_us = self._context.now_us()
        try:
            await self._context.writer.call(lambda store: store.started(fences, now_us=now_us))
        except StoreUnusable as error:
            log.debug("cannot show %d attempts as running: %s", len(fences), error)
            return False
        return True
