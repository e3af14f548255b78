"""Serve files to other hosts, where folders are local: output and files of jobs whose folders are on this host.

Requests come through the store, and the first node of this root that sees one answers it. They cost nothing while there
are none: the node looks for them when another process has committed something."""

import asyncio

from spinney.folders import folder_reader
from spinney.model.homes import FetchResult
from spinney.node.context import NodeContext
from spinney.node.services.loop import on_wake


class FileServer:
    """Answers requests of other hosts for files below this host's folder root. ``run`` is its task. Where folders are
    shared there is no home, and nothing to do."""

    def __init__(self, context: NodeContext, *, home: int) -> None:
        self._context, self._home = context, home
        self._wake = asyncio.Event()
        if home:
            # Another process has committed something; it may be a request.
            context.signals.committed.connect(self._wake.set)
            context.signals.woken.connect(self._wake.set)

    async def run(self) -> None:
        """Answer requests of other hosts for files of this one as they come, until the task is cancelled."""
        await on_wake(self._wake, self._answer, "reading for others")

    async def _answer(self) -> None:
        """Answer all open requests for files of this home, one after another; the files are read in a thread,
        since the disk may be slow."""
        home = self._home
        for fetch in await self._context.reader.call(lambda store: store.fetches.due(home)):
            answer: FetchResult = await asyncio.to_thread(
                folder_reader.read, self._context.folder_root, fetch
            )
            number = fetch.id
            await self._context.writer.call(lambda store, n=number, a=answer: store.fetches.answer(n, a))  # type: ignore[misc]
