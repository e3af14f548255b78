"""Serve files to other hosts, where folders are local: output and files of jobs whose folders are on this host.

Requests come through the store, and the first node of this root that sees one answers it. They cost nothing while there
are none: the node looks for them when another process has committed something."""

import asyncio
import logging
from pathlib import Path

from spinney.folders import folder_reader
from spinney.model.errors import StoreUnusable
from spinney.model.homes import FetchResult
from spinney.node.retry_delays import RetryDelays
from spinney.node.signals import NodeSignals
from spinney.node.store_thread import StoreThread

log = logging.getLogger(__name__)


class FileServer:
    """``run`` is its task. Without a home (folders are shared) it has nothing to do."""

    def __init__(
        self, writer: StoreThread, reader: StoreThread, root: Path, *, home: int, signals: NodeSignals
    ) -> None:
        self._writer, self._reader, self._root, self._home = writer, reader, root, home
        self._wake = asyncio.Event()
        signals.committed.connect(self.changed)
        signals.woken.connect(self.changed)

    def changed(self) -> None:
        """Note that another process has committed something; it may be a request."""
        if self._home:
            self._wake.set()

    async def run(self) -> None:
        """Answer requests, for ever."""
        delays = RetryDelays(1.0, 4.0)
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._answer()
            except StoreUnusable as error:
                log.debug("reading for others waits: %s", error)
                self._wake.set()
                await asyncio.sleep(delays.next_s())
            else:
                delays.reset()

    async def _answer(self) -> None:
        home = self._home
        for fetch in await self._reader.call(lambda store: store.fetches.due(home)):
            answer: FetchResult = await asyncio.to_thread(folder_reader.read, self._root, fetch)
            number = fetch.id
            await self._writer.call(lambda store, n=number, a=answer: store.fetches.answer(n, a))  # type: ignore[misc]
