"""Look into inboxes: the folders whose files become jobs.

Each inbox is looked into by one node that sees its folder (``spinney.features.inboxes.sql``); this service takes up
those that no active node has, and gives up those whose folder has gone, or all when an operator drains the node. Each
has a thread while it is looked into, so that neither a long file nor a file system that does not answer keeps the node
or another inbox waiting.

A node without inboxes looks for new ones only when another process has committed something.

Uploads to inboxes need no node. Every node looks now and then for those that a process has left unfinished when it
died, and removes the abandoned ones (``spinney.folders.upload_steps``)."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from spinney.folders import upload_steps
from spinney.folders.drop_folder import DropFolder, Stopped
from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.settings.inboxes import Inbox
from spinney.model.values.store_urls import database_file
from spinney.node.context import NodeContext
from spinney.node.services.intake import Intake
from spinney.node.services.loop import every
from spinney.store.parts import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

EVERY_S = 1.0
"""Seconds between two looks into each inbox."""
LIST_S = 5.0
"""Seconds after which the inboxes are listed again, where there are any: their nodes may have died."""
THREADS = 8
"""How many inboxes are looked into at the same time."""


class InboxWatcher:
    """Looks into the inboxes that this node has taken up. ``run`` is its task."""

    def __init__(self, context: NodeContext, *, node_id: int) -> None:
        self._context, self._node_id = context, node_id
        self._inboxes: dict[str, Inbox] = {}
        self._intakes: dict[str, Intake] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._listed_s = 0.0
        self._changed = True
        self._ended = threading.Event()
        context.signals.committed.connect(self.changed)
        context.signals.woken.connect(self.changed)

    def changed(self) -> None:
        """Note that another process has committed something; it may concern an inbox."""
        self._changed = True

    async def run(self) -> None:
        """Look into the inboxes, for ever."""
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, "inbox")
        try:
            async with asyncio.TaskGroup() as services:
                services.create_task(every(EVERY_S, self._round, "looking into inboxes"))
                services.create_task(every(upload_steps.EVERY_S, self._sweep, "looking after uploads"))
        finally:
            self._ended.set()
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _round(self) -> None:
        """List the inboxes if they may have changed, and begin a look into each that is not being looked
        into. A look that takes long (a large file, a slow share) is simply not begun again."""
        if self._context.status.draining:
            return
        if self._changed or (self._inboxes and time.monotonic() > self._listed_s + LIST_S):
            self._changed, self._listed_s = False, time.monotonic()
            inboxes = await self._context.reader.call(lambda store: store.inboxes.all())
            self._inboxes = {i.name: i for i in inboxes if i.host in (None, self._context.host.host)}
        for inbox in self._inboxes.values():
            look = self._looks.get(inbox.name)
            if look is None or look.done():
                self._looks[inbox.name] = asyncio.create_task(self._look(inbox))

    async def _sweep(self) -> None:
        """Finish uploads whose process has died, and remove abandoned ones. Errors are logged, and it goes on
        in the next round."""
        root, now_us = self._context.folder_root, self._context.now_us()
        try:
            finished = await self._in_thread(lambda: upload_steps.sweep(self._do, root, now_us=now_us))
        except Stopped:
            return
        except StoreUnusable as error:
            log.warning("uploads to inboxes wait: %s", error)
            return
        except (SpinneyError, OSError):
            log.exception("uploads to inboxes cannot be looked after")
            return
        if finished:
            self._context.signals.claimable()
            self._context.signals.work_for_peers()

    async def _look(self, inbox: Inbox) -> None:
        """Look into one inbox. Whatever goes wrong concerns this inbox alone; the next round tries again."""
        try:
            await self._take(inbox)
        except StoreUnusable as error:
            log.debug("inbox %s waits: %s", inbox.name, error)
        except Stopped:
            return
        except (SpinneyError, OSError):
            log.exception("inbox %s cannot be looked into", inbox.name)

    async def _take(self, inbox: Inbox) -> None:
        """Take up the inbox if this node sees its folder and no other has it, give it up if the folder has
        gone, and take what has been dropped there. A problem is stored with the inbox, where operators see
        it."""
        name, node_id, call = inbox.name, self._node_id, self._context.reader.call
        serves = inbox.node_id == node_id
        if not serves and inbox.node_id is not None:
            return
        may_serve = self._context.status.takes_jobs  # a node that an operator has drained is left in peace
        sees = may_serve and await self._in_thread(lambda: Path(inbox.folder).is_dir())
        if serves != sees:
            self._changed = True
            self._intakes.pop(name, None)
            fault = (
                f"its folder {inbox.folder} does not exist any more; make it again"
                if serves and may_serve
                else None
            )
            now_us = self._context.now_us()
            if not await call(
                lambda store: store.inboxes.serve(name, node_id, leave=not sees, problem=fault, now_us=now_us)
            ):
                return
            log.info("this node looks into inbox %s", name)
        elif not sees:
            return
        problem = await self._in_thread(lambda: self._problem(inbox))
        if problem is None:
            taken = await self._in_thread(lambda: self._intake(name).step(inbox))
            problem = taken.problem
            if taken.jobs:
                self._context.signals.claimable()
                self._context.signals.work_for_peers()
        if problem != inbox.problem or inbox.scan_us is not None:
            if problem not in (None, inbox.problem):
                log.warning("inbox %s: %s", name, problem)
            await call(lambda store: store.inboxes.report(name, node_id, problem, scanned_us=inbox.scan_us))
            self._changed = True

    def _intake(self, name: str) -> Intake:
        """Return the intake of this inbox, which remembers since when each drop rests."""
        if name not in self._intakes:
            self._intakes[name] = Intake(
                self._do,
                root=self._context.folder_root,
                node_id=self._node_id,
                now_us=self._context.now_us,
                stopped=self._ended.is_set,
            )
        return self._intakes[name]

    def _problem(self, inbox: Inbox) -> str | None:
        """Return why this folder can be no inbox: it has Spinney's own files in it, or is one of those; or the node may
        not take files out of it."""
        folder, host = Path(os.path.realpath(inbox.folder)), self._context.host
        for own in (host.folder_root, host.run_dir, database_file(self._context.settings.store)):
            if own is not None:
                place = Path(os.path.realpath(own))
                if place.is_relative_to(folder) or folder.is_relative_to(place):
                    return f"{inbox.folder} lies among Spinney's own files, or has them in it ({own}); name another one"
        return DropFolder(Path(inbox.folder)).problem()

    # --- threads --------------------------------------------------------------------------------

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._threads, work)

    def _do(self, verb: Callable[[Store], T]) -> T:
        """Make a call of the store from a thread. Raises Stopped when the node ends before the answer comes."""
        answer = asyncio.run_coroutine_threadsafe(self._context.reader.call(verb), self._loop)
        while True:
            try:
                return answer.result(EVERY_S)
            except TimeoutError:
                if answer.done():
                    raise
                if self._ended.is_set():
                    raise Stopped from None
