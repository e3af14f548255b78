"""The supervisor: it claims, dispatches, records and recovers jobs. It never runs or imports user code.

**Start.** The first worker loads the application and reports its job types and schedules. The node makes sure that no
other node has its name; then it registers the types, puts the schedules into the store unless an operator has changed
them, joins, and works.

**Work.** Each part is a task of its own (``DispatchAssembly``, ``services``), and parts notify each other by
``NodeSignals``. If one of them fails, the node ends, and the guard cleans up.

**End.** At the first TERM the node drains: it claims nothing, gets back jobs that have not begun, lets running ones
finish up to a limit, then kills them and hands them back. At the second everything is killed at once. Jobs that cannot
be handed back then, because the database or the folders do not answer, are taken back by the next node."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.folders import folders
from spinney.model.errors import StoreUnusable, UsageError
from spinney.model.jobs import Filter, Lease, Record
from spinney.model.rights.actor import Actor
from spinney.model.settings.schedules import DECLARER
from spinney.model.states import State
from spinney.model.values import times
from spinney.model.values.hints import first_of
from spinney.model.values.paths import socket_name
from spinney.model.values.store_urls import is_postgres, store_location, without_password
from spinney.node import instance
from spinney.node.attempt_spans import AttemptSpans
from spinney.node.context import NodeContext
from spinney.node.dispatch.assembly import DispatchAssembly
from spinney.node.dispatch.lanes import Lanes
from spinney.node.dispatch.record_queue import RecordQueue
from spinney.node.health import NodeHealth
from spinney.node.instance import Instance
from spinney.node.lifecycle.deadline import Deadline
from spinney.node.lifecycle.guard import AT_ONCE
from spinney.node.lifecycle.membership import Member, membership
from spinney.node.local_host import LocalHost
from spinney.node.measurements import NodeMeasurements
from spinney.node.services.folders.file_server import FileServer
from spinney.node.services.folders.folder_views import FolderViews
from spinney.node.services.folders.folder_watch import FolderWatch
from spinney.node.services.holds import HoldEnforcer
from spinney.node.services.inboxes import InboxWatcher
from spinney.node.services.maintenance import Maintenance
from spinney.node.services.metrics import MetricsService
from spinney.node.services.notifications import NotificationListener
from spinney.node.services.orders import OrderWatcher
from spinney.node.services.peer_waker import PeerWaker
from spinney.node.services.retention import Pruner
from spinney.node.services.store_poll import StorePoll
from spinney.node.services.throughput_history import ThroughputRecorder
from spinney.node.settings import NodeSettings
from spinney.node.store_thread import StoreThread
from spinney.node.workers.child import Child
from spinney.node.workers.worker_reports import Hello
from spinney.store.parts import Store
from spinney.wakeup import local as wakeup_socket

if TYPE_CHECKING:
    from spinney.tracing.otlp import SpanSender

log = logging.getLogger(__name__)

AT_ONCE_S = 15.0
"""How long a node that was told to end at once may take to hand back its work, in seconds."""
DRAIN_GRACE_S = 5.0
"""Seconds between TERM and KILL for attempts that still run when a drain has reached its limit."""
LOST_NAMED = 50
"""How many attempts that lose their leases are named in the log."""
_PENDING = Filter(states=(State.PENDING,))


class _BackgroundTasks:
    """Short tasks beside the node's work; the first that fails ends the node.

    They are in no ``TaskGroup``: that takes no more tasks once one has failed, and the ends of the workers, which the
    node then waits for, are noted by such tasks."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a task, which is kept until it ends: asyncio itself holds only a weak reference to it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        # Logged at once: the failure itself is raised to the end of the node, which first waits for its workers.
        log.error("a task has failed, which ends the node: %r", error)
        if not self._failure.done():
            self._failure.set_exception(error)

    async def failure(self) -> None:
        """Wait for the first failure, and raise it."""
        await self._failure

    async def finished(self) -> None:
        """Wait until no task is left."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def cancel(self) -> None:
        """Cancel what is left when the node ends by a failure: it may wait for records that nobody writes any more."""
        for task in self._tasks:
            task.cancel()


class Supervisor:
    """One run of a node. ``await run()`` returns its exit code."""

    def __init__(
        self,
        settings: NodeSettings,
        own: Instance,
        *,
        lock_fd: int,
        deadline: Deadline,
        open_store: Callable[[], Store],
        open_for_beats: Callable[[], Store],
        on_dead: Callable[[str], None],
        ending: Callable[[], bool],
        measurements: NodeMeasurements | None = None,
        make_child: Callable[..., Child] = Child,
        now_us: Callable[[], int] = times.now_us,
    ) -> None:
        """``on_dead`` is called, in any thread, when the node has lost its leases: it must end everything at once and
        not return. ``ending`` tells whether that has begun: attempts that end then are not recorded, so that the
        successor takes them back."""
        self._settings, self._own, self._deadline = settings, own, deadline
        self._open_store, self._open_for_beats = open_store, open_for_beats
        self._on_dead, self._ending, self._now_us = on_dead, ending, now_us
        self._root = Path(settings.folders)
        self._host = LocalHost.own(settings.run_path(), self._root)
        live_pids: set[int] = set()
        self._make_child = partial(make_child, settings=settings, live_pids=live_pids, lock_fd=lock_fd)
        self._queue = RecordQueue()
        self._measurements = measurements
        self._health = NodeHealth(
            held_back=self._queue.__len__,
            on_error=None if measurements is None else measurements.store_failed,
        )
        self._joined = asyncio.Event()
        self._term = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> int:
        """Work until a signal ends the node; return the exit code: 0 after a drain, 1 when a further signal
        has ended it at once. Raises what has ended the node otherwise, alone or in an ExceptionGroup:
        UsageError (the application cannot be loaded, or names another store), NodeRefused, StoreUnusable, or
        the error of a task."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._on_term)
        loop.add_signal_handler(AT_ONCE, self._on_at_once)
        async with AsyncExitStack() as stack:
            writer = await stack.enter_async_context(StoreThread("writer", self._open_store, self._health))
            reader = await stack.enter_async_context(StoreThread("reader", self._open_store, self._health))
            facts = await reader.insist(lambda store: store.facts(), for_s=self._settings.lease_period_s)
            self._admit_folders(facts)
            sender = self._span_sender()
            if sender is not None:
                stack.push_async_callback(asyncio.to_thread, sender.close)
            context = NodeContext(
                settings=self._settings,
                host=self._host,
                writer=writer,
                reader=reader,
                now_us=self._now_us,
                measurements=self._measurements,
                spans=None if sender is None else AttemptSpans(sender, self._settings.name),
            )
            async with asyncio.TaskGroup() as group:
                background = _BackgroundTasks()
                assembly = self._assembly(context, background.spawn)
                stack.callback(assembly.pool.close)
                stack.callback(background.cancel)
                failure = group.create_task(background.failure())
                work = group.create_task(self._work(context, assembly))
                leave = group.create_task(self._term.wait())
                await asyncio.wait((work, leave), return_when=asyncio.FIRST_COMPLETED)
                if not self._joined.is_set():
                    work.cancel()  # stopped before it had joined
                await asyncio.gather(work, return_exceptions=True)
                await background.finished()
                leave.cancel()
                failure.cancel()
            if not work.cancelled() and (error := work.exception()) is not None:
                raise error
        return 1 if self._hurry.is_set() else 0

    def _span_sender(self) -> "SpanSender | None":
        """Return the sender of spans, where a collector is set; else None. Raises UsageError when its packages are
        missing."""
        if self._settings.otlp is None:
            return None
        from spinney.tracing import otlp  # 15 MB of memory, which other nodes do not need

        return otlp.SpanSender(self._settings.otlp, self._settings.name)

    def _admit_folders(self, facts: Mapping[str, str]) -> None:
        """Note by which token the store knows its folder root and, where folders are local, the fingerprint of this
        one. Raises StoreUnusable for a folder root that is not one of this store."""
        self._folder_token = facts["folder_token"]
        self._root_fingerprint: str | None = None
        if facts.get("folders") == "local":
            folders.write_token(self._root, self._folder_token)
            self._root_fingerprint = folders.fingerprint(self._root, make=True)
        else:
            folders.check_token(self._root, self._folder_token)

    def _assembly(
        self, context: NodeContext, spawn: Callable[[Coroutine[Any, Any, Any]], object]
    ) -> DispatchAssembly:
        pages = instance.pages_dir(self._host.run_dir, self._own)
        logs = self._host.run_dir / f"logs-{self._settings.name}"
        for folder in (pages, logs):
            folder.mkdir(mode=0o700, exist_ok=True)
        return DispatchAssembly(
            context,
            self._queue,
            make_child=self._make_child,
            pages=pages,
            logs=logs,
            spawn=spawn,
            ending=self._ending,
            on_start_trouble=partial(self._health.lasts, "workers"),
        )

    # --- start, work, end -----------------------------------------------------------------

    async def _work(self, context: NodeContext, assembly: DispatchAssembly) -> None:
        """Load the application in the first worker, join with its types, and work until the node is to end."""
        writer, lease_s = context.writer, self._settings.lease_period_s
        try:
            backlog = await context.reader.insist(
                lambda store: bool(store.jobs(_PENDING, limit=1)), for_s=lease_s
            )
            await assembly.start_workers(backlog=backlog)
            hello = await assembly.application()
            if hello.error is not None:
                raise UsageError(hello.error)
            _require_own_store(self._settings, hello.store)
            if self._measurements is not None:
                self._measurements.expect(hello.types)
            async with membership(
                context,
                self._own,
                hello,
                register=partial(self._register, writer, hello),
                open_for_beats=self._open_for_beats,
                deadline=self._deadline,
                root_fingerprint=self._root_fingerprint,
                on_dead=partial(self._on_leases_lost, assembly),
                trouble=self._health.text,
            ) as member:
                services = self._services(context, member, assembly)
                self._joined.set()
                log.info("node %s works slots=%d types=%d", self._own, self._settings.slots, len(hello.types))
                if not hello.types:
                    log.warning(
                        "%s declares no job type, so this node runs nothing; import the modules that declare them in "
                        "the one that is named here",
                        self._settings.app,
                    )
                loops = [
                    asyncio.ensure_future(loop)
                    for loop in (*assembly.tasks(member.node_id, Lanes(hello.types)), *services)
                ]
                try:
                    await _while_alive(loops, self._term.wait())
                    await _while_alive(loops, self._drain(context, member.node_id, assembly))
                finally:
                    for loop in loops:
                        loop.cancel()
            log.info("node %s has left, recorded=%d", self._own, self._queue.recorded)
        finally:
            await assembly.pool.end_all(0.0)

    async def _register(self, writer: StoreThread, hello: Hello) -> None:
        """Put the application's types, queues, locks and schedules into the store. A schedule that an operator has
        changed stays, which is logged."""
        lease_s = self._settings.lease_period_s
        await writer.insist(
            lambda store: store.register(hello.types, hello.queues, hello.locks), for_s=lease_s
        )
        actor, now_us = Actor(by=DECLARER), self._now_us()
        names = await writer.insist(
            lambda store: store.schedules.declare(hello.schedules, actor, now_us=now_us), for_s=lease_s
        )
        for name in names:
            log.warning(
                "schedule %s stays as an operator made it; 'spinney schedule drop %s' and another start take it "
                "from the code again",
                name,
                name,
            )

    def _services(
        self, context: NodeContext, member: Member, assembly: DispatchAssembly
    ) -> list[Coroutine[Any, Any, None]]:
        """Return the background services of a node, each a coroutine that never ends. They start when the node has
        joined and are cancelled when it leaves; if one fails, the node ends and the guard cleans up."""
        node_id, run_dir = member.node_id, self._host.run_dir
        maintenance = Maintenance(
            context, node_id=node_id, home=member.home, held_up=lambda: member.heartbeat.held_up
        )
        listener = NotificationListener(
            self._open_store, run_dir_id=wakeup_socket.run_dir_id(run_dir), on_wake=context.signals.woken
        )
        own_socket = socket_name(self._settings.name, self._own.pid)
        return [
            StorePoll(context).run(),
            maintenance.run(),
            OrderWatcher(context, assembly.dispatcher, assembly.pool).run(),
            HoldEnforcer(context, assembly.pool, node_id=node_id).run(),
            Pruner(context).run(),
            ThroughputRecorder(context, self._open_store).run(),
            PeerWaker(context, node_id=node_id, but=own_socket).run(),
            listener.run(),
            FolderWatch(
                context, self._folder_token, self._health, root_fingerprint=self._root_fingerprint
            ).run(),
            FileServer(context, home=member.home).run(),
            FolderViews(context, home=member.home).run(),
            InboxWatcher(context, node_id=node_id).run(),
            *self._metrics(context, assembly),
        ]

    def _metrics(
        self, context: NodeContext, assembly: DispatchAssembly
    ) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield the service for the node's own ``/metrics``, where an address is set."""
        address = self._settings.metrics_address()
        if self._measurements is not None and address is not None:
            dispatcher = assembly.dispatcher
            gauges: Mapping[str, Callable[[], float]] = {
                "slots": lambda: len(dispatcher.slots),
                "leases": dispatcher.held,
                "records_waiting": self._queue.__len__,
                "degraded": lambda: self._health.is_degraded,
            }
            yield MetricsService(context, self._measurements, address, gauges).run()

    async def _drain(self, context: NodeContext, node_id: int, assembly: DispatchAssembly) -> None:
        """Stop claiming, hand back what has not begun, let running attempts finish up to the drain limit, kill the rest
        (all at once after a second signal), and return when everything is recorded."""
        log.info("draining: %d leases", assembly.dispatcher.held())
        context.status.draining = True
        now_us = self._now_us()
        with contextlib.suppress(StoreUnusable):  # it drains even if the store cannot be updated
            await context.writer.call(
                lambda store: store.update_node(node_id, state="draining", now_us=now_us)
            )
        await assembly.drain(self._hurry)
        ended = asyncio.ensure_future(assembly.pool.end_all(DRAIN_GRACE_S))
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait((ended, hurry), return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not ended.done():
            await assembly.pool.end_all(0.0)
        await ended
        await self._queue.flushed()

    # --- events ---------------------------------------------------------------------

    def _on_leases_lost(self, assembly: DispatchAssembly, why: str) -> None:
        """Log the lost leases, and end everything. This is called in the heartbeat's thread."""
        try:
            _name_lost(
                "attempts are stopped, because their leases are lost",
                [task.lease for task in assembly.dispatcher.tasks()],
            )
            _name_lost("late records are refused, because their leases are lost", self._queue.pending())
        finally:
            self._on_dead(why)

    def _on_term(self) -> None:
        """Drain at the first request, and end at once at the second."""
        if self._term.is_set():
            self._on_at_once()
        self._term.set()

    def _on_at_once(self) -> None:
        """End at once. After ``AT_ONCE_S`` seconds the node no longer waits for a store or a disk, which may not answer
        for hours."""
        self._hurry.set()
        self._term.set()
        asyncio.get_running_loop().call_later(AT_ONCE_S, self._give_up)

    def _give_up(self) -> None:
        trouble = self._health.text() or "the folders of its jobs may not answer"
        self._on_dead(f"it was told to end at once and cannot hand back its work: {trouble}")


def _require_own_store(settings: NodeSettings, named: str | None) -> None:
    """Raise UsageError where the application's code names another store, which would get what the code submits. Two
    URLs of PostgreSQL are only noted in the log: one server may have many names."""
    if named is None or store_location(named) == store_location(settings.store):
        return
    url = without_password(named)
    difference = (
        f"{settings.app} names the store {url} in its code, but this node works on "
        f"{without_password(settings.store)}"
    )
    if is_postgres(named) and is_postgres(settings.store):
        log.warning(
            "%s; if these are two stores, what the code submits does not come to this node", difference
        )
        return
    raise UsageError(f"{difference}; start it with --store {url}, or leave the store out of the code")


def _name_lost(waited_for: str, lost: Sequence[Lease | Record]) -> None:
    """Log which attempts or records are lost, the first ``LOST_NAMED`` by job and fence, so that an operator
    can see what will run again."""
    if lost:
        named = first_of((f"job={attempt.job_id} fence={attempt.fence}" for attempt in lost), LOST_NAMED)
        log.error("%s: %s", waited_for, named)


async def _while_alive(loops: Sequence["asyncio.Task[None]"], waited_for: Coroutine[Any, Any, Any]) -> None:
    """Wait for ``waited_for``. Raises the exception of a loop at once: loops only end by failing."""
    waiting = asyncio.ensure_future(waited_for)
    try:
        await asyncio.wait([waiting, *loops], return_when=asyncio.FIRST_COMPLETED)
        for loop in loops:
            if loop.done():
                loop.result()
        await waiting
    finally:
        waiting.cancel()
