"""The supervisor: claims, hands out, records, recovers. It never runs or imports user code.

Start: the first worker loads the application and tells its job types, which are registered, and its
schedules, which are put into the store where no operator has said otherwise; then the node makes sure
that nobody else bears its name, joins, and works. Loops run in one task group: if one of them fails, the
node ends, and the guard clears up.

End: at the first TERM it drains (claims nothing, gets back what has not begun, lets what runs
finish up to a limit, then ends it and hands it back), at the second everything is ended at once.
What cannot be handed back because the database does not answer is taken back by whoever comes next.
"""

import asyncio
import contextlib
import importlib.metadata
import logging
import os
import signal
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from spinney import host, wakeup, wakeup_socket
from spinney.folders import folders
from spinney.model.errors import StoreUnusable, UsageError
from spinney.model.homes import FolderRoot
from spinney.model.jobs import Lease, NodeInfo, Record
from spinney.model.rights.operators import Actor
from spinney.model.settings.schedules import DECLARER, Schedule
from spinney.node.dispatch.dispatcher import Dispatcher, interrupted_outcome
from spinney.node.dispatch.lanes import Lanes
from spinney.node.dispatch.limits import Limits
from spinney.node.dispatch.output import Pump
from spinney.node.dispatch.recorder import Recorder
from spinney.node.dispatch.requests import Requests
from spinney.node.dispatch.slots import Lookahead, Slot, Task
from spinney.node.dispatch.worker_pool import WorkerPool, WorkerRules
from spinney.node.health import NodeHealth
from spinney.node.lifecycle import instance, unsynced_files
from spinney.node.lifecycle.deadline import Deadline, boot_ns
from spinney.node.lifecycle.guard import AT_ONCE
from spinney.node.lifecycle.heartbeat import Heartbeat, good_until_ns
from spinney.node.lifecycle.instance import Instance
from spinney.node.lifecycle.recovery import LocalHost
from spinney.node.lifecycle.takeover import join_cluster, startup_lock, wait_for_name
from spinney.node.retry_delays import RetryDelays
from spinney.node.services.file_server import FileServer
from spinney.node.services.holds import HoldEnforcer
from spinney.node.services.maintenance import Maintenance
from spinney.node.services.notifications import NotificationListener
from spinney.node.services.orders import OrderWatcher, trim
from spinney.node.services.peer_waker import PeerWaker
from spinney.node.services.retention import Pruner
from spinney.node.settings import NodeSettings
from spinney.node.store_thread import StoreThread
from spinney.node.workers.child import Child, Hello
from spinney.store.contract import Store

log = logging.getLogger(__name__)

T = TypeVar("T")
DRAIN_GRACE_S = 5.0
"""Between TERM and KILL for what still runs when a drain has reached its limit."""
LOST_NAMED = 50
"""So many attempts that lose their leases are named in the log."""
_LOOK_S = 0.02
_FOLDERS_S = 2.0
"""Between two looks at the disk of the folder root."""


def wall_us() -> int:
    """Now, in microseconds since 1970 UTC."""
    return time.time_ns() // 1000


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
        make_child: Callable[..., Child] = Child,
        now_us: Callable[[], int] = wall_us,
    ) -> None:
        """``on_dead`` is called, in some thread, when the node has lost its leases: it must end
        everything at once and not return. ``ending`` tells whether that has begun: nothing of what ends
        then is recorded, so that the successor finds it as it was."""
        self._settings, self._own, self._lock_fd, self._deadline = settings, own, lock_fd, deadline
        self._open_store, self._open_for_beats = open_store, open_for_beats
        self._on_dead, self._ending = on_dead, ending
        self._make_child, self._now_us = make_child, now_us
        self._run_dir, self._root = settings.run_path(), Path(settings.folders)
        self._here = LocalHost(
            host=socket.gethostname(),
            boot_id=host.boot_id(),
            run_dir=self._run_dir,
            folder_root=self._root,
        )
        self._socket_name = wakeup_socket.socket_name(settings.name, own.pid)
        self._known: set[int] = set()
        self._root_fingerprint: str | None = None
        """Of its folder root, where folders are local."""
        self._home = 0
        """What the store calls that root."""
        self._health = NodeHealth(
            held_back=lambda: self._recorder.held_back() if self._joined.is_set() else 0
        )
        self._joined = asyncio.Event()
        self._term = asyncio.Event()
        self._hurry = asyncio.Event()
        self._look_for_cancel_requests = True

    async def run(self) -> int:
        """Work until told to end."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._on_term)
        loop.add_signal_handler(AT_ONCE, self._on_at_once)
        async with AsyncExitStack() as stack:
            self._writer = await stack.enter_async_context(self._store_thread("writer"))
            self._reader = await stack.enter_async_context(self._store_thread("reader"))
            facts = await self._reader.insist(
                lambda store: store.facts(), for_s=self._settings.lease_period_s
            )
            self._admit_folders(facts)
            async with asyncio.TaskGroup() as group:
                self._build(group.create_task)
                stack.callback(self._pool.close)
                work = group.create_task(self._work())
                leave = group.create_task(self._term.wait())
                await asyncio.wait((work, leave), return_when=asyncio.FIRST_COMPLETED)
                if not self._joined.is_set():
                    work.cancel()  # told to end before it had begun
                await asyncio.gather(work, return_exceptions=True)
                leave.cancel()
            if not work.cancelled() and (error := work.exception()) is not None:
                raise error
        return 1 if self._hurry.is_set() else 0

    def _admit_folders(self, facts: Mapping[str, str]) -> None:
        """Raises StoreUnusable for a folder root that is not one of this store."""
        if facts.get("folders") != "local":
            folders.check_token(self._root, facts["folder_token"])
            return
        folders.write_token(self._root, facts["folder_token"])
        self._root_fingerprint = folders.fingerprint(self._root, make=True)

    def _store_thread(self, name: str) -> StoreThread:
        return StoreThread(name, self._open_store, self._health)

    def _build(self, spawn: Callable[[Coroutine[Any, Any, Any]], object]) -> None:
        """Make the parts and tie them together."""
        settings = self._settings
        pages, logs = instance.pages_dir(self._run_dir, self._own), self._run_dir / f"logs-{settings.name}"
        for folder in (pages, logs):
            folder.mkdir(mode=0o700, exist_ok=True)
        self._spawn = spawn
        self._first_hello: asyncio.Future[Hello] = asyncio.get_running_loop().create_future()
        self._slots = [Slot(n) for n in range(settings.slots)]
        requests = Requests(
            self._writer,
            self._reader,
            now_us=self._now_us,
            on_spawned=self._on_spawned,
            insist_s=settings.lease_period_s,
        )
        self._pool = WorkerPool(
            rules=WorkerRules(
                recycle_after_jobs=settings.recycle_after_jobs,
                memory_bytes=settings.worker_memory_bytes,
                idle_end_s=settings.idle_end_s,
                starting_at_once=max(2, len(os.sched_getaffinity(0))),
            ),
            make_child=self._child,
            pump=lambda marked: Pump(marked, head_bytes=settings.output_bytes),
            pages=pages,
            logs=logs,
            locate=self._output_of,
            requests=requests,
            spawn=spawn,
            on_hello=self._on_hello,
            ending=self._ending,
            recorded=lambda: self._recorder.flushed(),
            sync_killed=lambda job_ids: unsynced_files.sync_folders_of(self._root, job_ids),
        )
        self._dispatcher = Dispatcher(
            slots=self._slots,
            pool=self._pool,
            lookahead=Lookahead(
                run_us=settings.lookahead_s * 1e6, jobs=settings.lookahead_jobs, list_size=settings.list_size
            ),
            mark_started=self._mark_started,
            on_wake=self._on_wake,
            on_hold=lambda last_hold: self._hold_enforcer.note_last_hold(last_hold),
            on_left=lambda: self._peer_waker.request(),
        )
        self._pool.dispatcher = self._dispatcher
        self._recorder = Recorder(
            self._writer, self._dispatcher, batch=settings.batch_records, now_us=self._now_us
        )
        self._dispatcher.sink = self._recorder
        self._limits = Limits(
            self._pool,
            show=lambda fences: spawn(self._mark_started(fences)),
            recall=lambda slot: self._dispatcher.recall([slot]),
            take_back=lambda worker: self._dispatcher.take_back(worker),
            long_s=settings.lookahead_s,
        )

    # --- start, work, end -----------------------------------------------------------------

    async def _work(self) -> None:
        try:
            await self._start_first_worker()
            hello = await self._first_hello
            if hello.error is not None:
                raise UsageError(hello.error)
            await self._insist(lambda store: store.register(hello.types, hello.queues, hello.locks))
            await self._declare(hello.schedules)
            async with self._membership(hello) as node_id:
                loops = self._loops(node_id)
                self._dispatcher.join_cluster(node_id, Lanes(hello.types))
                self._joined.set()
                log.info("node %s works slots=%d types=%d", self._own, len(self._slots), len(hello.types))
                tasks = [asyncio.ensure_future(loop) for loop in loops]
                try:
                    await _while_alive(tasks, self._term.wait())
                    await _while_alive(tasks, self._drain(node_id))
                finally:
                    for task in tasks:
                        task.cancel()
        finally:
            await self._pool.end_all(0.0)

    async def _start_first_worker(self) -> None:
        """The one that loads the application. Where none can be started (a full disk), when that is mended: before the
        node has joined nothing else would try again."""
        self._pool.warm_up(self._slots[0])
        while self._slots[0].worker is None:
            await asyncio.sleep(_LOOK_S)
            self._pool.warm_up(self._slots[0])

    async def _declare(self, schedules: Sequence[Schedule]) -> None:
        actor, now_us = Actor(by=DECLARER, call=uuid.uuid4().hex), self._now_us()
        kept = await self._insist(lambda store: store.schedules.declare(schedules, actor, now_us=now_us))
        for name in kept:
            log.warning(
                "schedule %s stays as an operator made it; 'spinney schedule drop %s' and another start take it "
                "from the code again",
                name,
                name,
            )

    async def _insist(self, verb: Callable[[Store], T]) -> T:
        """At the beginning and at the end, when nothing can go on without it."""
        return await self._writer.insist(verb, for_s=self._settings.lease_period_s)

    @asynccontextmanager
    async def _membership(self, hello: Hello) -> AsyncIterator[int]:
        """Be a node: joined, beating, to be woken."""
        settings = self._settings
        node = NodeInfo(
            id=0,
            name=settings.name,
            boot_id=self._here.boot_id,
            host=self._here.host,
            pid=self._own.pid,
            slots=settings.slots,
            state="active",
            beat=0,
            started_us=self._own.started_us,
            seen_us=self._own.started_us,
            version=importlib.metadata.version("spinney"),
            types=tuple(t.name for t in hello.types),
            serves=settings.serves,
            root=None
            if self._root_fingerprint is None
            else FolderRoot(self._root_fingerprint, str(self._root)),
            lease_s=settings.lease_period_s,
        )
        async with startup_lock(self._run_dir, settings.name):
            await wait_for_name(
                self._writer,
                self._here,
                name=settings.name,
                replace=settings.replace,
                insist_s=settings.lease_period_s,
                now_us=self._now_us,
            )
            # From before it joins: a guard that ends it clears its traces only when nothing is held.
            self._deadline.renew(good_until_ns(boot_ns(), settings.lease_period_s))
            now_us = self._now_us()
            entered = await self._insist(lambda store: join_cluster(store, node, now_us))
            node_id, self._home = entered.id, entered.home
        self._heartbeat = Heartbeat(
            self._open_for_beats,
            node_id,
            deadline=self._deadline,
            lease_period_s=settings.lease_period_s,
            beat_s=settings.beat_s,
            now_us=self._now_us,
            on_dead=self._lost,
            trouble=self._health.text,
        )
        with self._heartbeat:
            async with wakeup_socket.received_wakeups(self._run_dir, self._socket_name, self._on_wakeup):
                yield node_id
        # Only now that it beats no more: a beat of a node that has left would be refused.
        left_us = self._now_us()
        await self._insist(lambda store: store.update_node(node_id, state="left", now_us=left_us))
        self._deadline.renew(0)  # nothing is leased any more, nothing can come too late
        await self._reader.call(lambda store: wakeup.wake_all(store, self._run_dir))
        log.info("node %s has left, recorded=%d", self._own, self._recorder.recorded)

    def _loops(self, node_id: int) -> list[Coroutine[Any, Any, None]]:
        self._hold_enforcer = HoldEnforcer(
            self._writer,
            self._reader,
            self._pool,
            node_id=node_id,
            now_us=self._now_us,
            on_claimable=self._claimable,
            is_leader=lambda: self._maintenance.is_leader,
        )
        self._orders = OrderWatcher(
            self._reader,
            self._dispatcher,
            self._pool,
            name=self._settings.name,
            slots=self._settings.slots,
            on_claimable=self._claimable,
        )
        self._maintenance = Maintenance(
            self._writer,
            self._reader,
            node_id=node_id,
            here=self._here,
            folder_root=self._root,
            now_us=self._now_us,
            on_claimable=self._claimable,
            on_round=self._hold_enforcer.wake,
            on_promoted=lambda: self._peer_waker.request(),
            home=self._home,
            held_up=lambda: self._heartbeat.held_up,
        )
        self._peer_waker = PeerWaker(self._reader, self._run_dir, node_id=node_id, but=self._socket_name)
        self._file_server = FileServer(self._writer, self._reader, self._root, home=self._home)
        listener = NotificationListener(
            self._open_store, run_dir_id=wakeup_socket.run_dir_id(self._run_dir), on_wake=self._on_wakeup
        )
        pruner = Pruner(
            self._reader,
            node=self._settings.name,
            folder_root=self._root,
            every_s=self._settings.retention_s,
            now_us=self._now_us,
            draining=lambda: self._dispatcher.draining or not self._maintenance.is_leader,
        )
        return [
            self._recorder.run(),
            self._poll(),
            self._tick(node_id),
            self._maintenance.run(),
            self._maintenance.watch(),
            self._maintenance.tidy(),
            self._orders.run(),
            self._hold_enforcer.get_back(),
            self._hold_enforcer.sweep(),
            pruner.run(),
            self._peer_waker.run(),
            listener.run(),
            self._watch_folders(),
            self._file_server.run(),
        ]

    async def _drain(self, node_id: int) -> None:
        log.info("draining: %d leases", self._dispatcher.held())
        self._dispatcher.draining = True
        now_us = self._now_us()
        with contextlib.suppress(StoreUnusable):  # it drains whether the store knows or not
            await self._writer.call(lambda store: store.update_node(node_id, state="draining", now_us=now_us))
        for worker in self._pool.workers:
            worker.child.recall()
        give_up = time.monotonic() + self._settings.drain_limit_s
        while self._dispatcher.held() and time.monotonic() < give_up and not self._hurry.is_set():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        for worker in self._pool.workers:
            for fence, task in worker.held.items():
                worker.endings.setdefault(fence, interrupted_outcome(task.lane, "its node was stopped"))
        await self._end_workers()
        await self._recorder.flushed()

    async def _end_workers(self) -> None:
        ended = asyncio.ensure_future(self._pool.end_all(DRAIN_GRACE_S))
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait((ended, hurry), return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not ended.done():
            await self._pool.end_all(0.0)
        await ended

    # --- loops ----------------------------------------------------------------------------

    async def _poll(self) -> None:
        """Behind the wake-ups: has anybody committed?"""
        seen, delays = -1, RetryDelays(self._settings.poll_s)
        while True:
            try:
                signature = await self._reader.call(lambda store: store.signature())
            except StoreUnusable as error:
                log.debug("cannot look at the store: %s", error)
                await asyncio.sleep(delays.next_s())
                continue
            else:
                delays.reset()
                if signature != seen:
                    seen, self._look_for_cancel_requests = signature, True
                    self._hold_enforcer.changed()
                    self._orders.changed()
                    self._maintenance.changed()
                    self._file_server.changed()
                    self._claimable()
            await asyncio.sleep(self._settings.poll_s)

    async def _watch_folders(self) -> None:
        """Jobs that cannot write fail, each for itself; that it is their node is to be seen in one place."""
        while True:
            # In a thread, which a share that does not answer may keep; nothing else waits for it.
            self._health.lasts(await asyncio.to_thread(folders.write_problem, self._root))
            await asyncio.sleep(_FOLDERS_S)

    async def _tick(self, node_id: int) -> None:
        while True:
            self._limits.tick()
            self._pool.tick(self._slots)
            trim(self._slots)
            if self._look_for_cancel_requests and self._dispatcher.held():
                self._look_for_cancel_requests = False
                await self._read_cancel_requests(node_id)
            await asyncio.sleep(self._settings.tick_s)

    async def _read_cancel_requests(self, node_id: int) -> None:
        try:
            wished = await self._reader.call(lambda store: store.cancel_requests(node_id))
        except StoreUnusable as error:
            log.debug("cannot look for cancel requests: %s", error)
            self._look_for_cancel_requests = True
            return
        if wished:
            self._look_for_cancel_requests = True  # until they have ended
            self._limits.cancel_requests(wished)

    # --- what happens ---------------------------------------------------------------------

    def _lost(self, why: str) -> None:
        """In the heartbeat's thread: all leases are gone, so everything is ended; what that hits is told first."""
        try:
            _name_lost(
                "attempts are stopped, their leases are gone",
                [task.lease for task in self._dispatcher.tasks()],
            )
            _name_lost("late records are refused, their leases are gone", self._recorder.due())
        finally:
            self._on_dead(why)

    def _on_term(self) -> None:
        if self._term.is_set():
            self._hurry.set()
        self._term.set()

    def _on_at_once(self) -> None:
        self._hurry.set()
        self._term.set()

    def _on_wakeup(self) -> None:
        self._look_for_cancel_requests = True
        self._hold_enforcer.on_wakeup()
        self._file_server.changed()
        self._dispatcher.new_work_arrived()

    def _on_spawned(self) -> None:
        self._claimable()
        self._peer_waker.request()  # its parent has a slot of this node, perhaps the last one

    def _claimable(self) -> None:
        self._dispatcher.claimable()

    def _on_wake(self, wake_us: int) -> None:
        self._maintenance.due(wake_us)

    def _on_hello(self, hello: Hello) -> None:
        if not self._first_hello.done():
            self._first_hello.set_result(hello)
        elif hello.error is not None:
            log.error("a further worker cannot serve: %s", hello.error)

    async def _mark_started(self, fences: Sequence[int]) -> bool:
        now_us = self._now_us()
        try:
            await self._writer.call(lambda store: store.started(fences, now_us=now_us))
        except StoreUnusable as error:
            log.debug("cannot show %d attempts as running: %s", len(fences), error)
            return False
        return True

    def _child(self, **particular: Any) -> Child:
        return self._make_child(
            app=self._settings.app,
            folder_root=self._root,
            known=self._known,
            node=self._settings.name,
            lock_fd=self._lock_fd,
            **particular,
        )

    def _output_of(self, task: Task) -> Path:
        lease = task.lease
        return folders.path(self._root, lease.job_id) / folders.OWN / f"{lease.stage}.{lease.fence}"


def _name_lost(what: str, lost: Sequence[Lease | Record]) -> None:
    if lost:
        named = ", ".join(f"job={one.job_id} fence={one.fence}" for one in lost[:LOST_NAMED])
        more = f" and {len(lost) - LOST_NAMED} more" if len(lost) > LOST_NAMED else ""
        log.error("%s: %s%s", what, named, more)


async def _while_alive(loops: Sequence["asyncio.Task[None]"], what: Coroutine[Any, Any, Any]) -> None:
    """Wait for ``what``. Raises at once what a loop raised: loops end only by failing."""
    wanted = asyncio.ensure_future(what)
    try:
        await asyncio.wait([wanted, *loops], return_when=asyncio.FIRST_COMPLETED)
        for loop in loops:
            if loop.done():
                loop.result()
        await wanted
    finally:
        wanted.cancel()
