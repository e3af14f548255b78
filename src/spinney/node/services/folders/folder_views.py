"""Keep the tree of links to the folders of jobs up to date (``spinney.folders.views``).

The leader goes round in bounded steps: over the folders that are there, and over the links. Each step looks first at
what runs, then at a few hundred folders and links, and rests nine times as long as it took."""

import asyncio
import logging
import time
from collections.abc import Iterator
from itertools import islice

from spinney.folders.views import RUNNING, ViewLink, ViewTree
from spinney.model.errors import StoreUnusable
from spinney.model.jobs import Filter
from spinney.model.states import State
from spinney.node.context import NodeContext

log = logging.getLogger(__name__)

STEP = 300
"""Folders, and links, of one step."""
REST_S, REST_SHARE = 0.2, 9.0
"""The shortest rest between two steps in seconds, and the rest as a multiple of the time that a step took."""
IDLE_S = 2.0
"""The pause after a round that changed nothing."""


class FolderViews:
    """Keeps the tree of views up to date, on the leader, or on each host where folders are local. ``run`` is its
    task."""

    def __init__(self, context: NodeContext, *, home: int) -> None:
        """``home``: the number of this host's folder root where folders are local; 0: they are shared."""
        self._context, self._home = context, home
        self._tree = ViewTree(context.folder_root)
        self._folders: Iterator[int] = iter(())
        self._links: Iterator[ViewLink] = iter(())
        self._changed = 0
        self._trouble = ""

    async def run(self) -> None:
        """Go round over folders and links in bounded steps, with rests between, until the task is cancelled."""
        status = self._context.status
        while True:
            begun, rest_s = time.monotonic(), IDLE_S
            if (status.is_leader or self._home) and not status.draining:
                try:
                    rest_s = await self._step()
                    self._trouble = ""
                except StoreUnusable as error:
                    log.debug("the views wait: %s", error)
                except OSError as error:
                    if str(error) != self._trouble:
                        log.warning("the views cannot be kept: %s", error)
                    self._trouble = str(error)
            await asyncio.sleep(max(rest_s, REST_SHARE * (time.monotonic() - begun)))

    async def _step(self) -> float:
        """Mend a part of the tree; return how many seconds to rest."""
        if not await asyncio.to_thread(self._tree.exists):
            return IDLE_S
        ids, links, is_last = await asyncio.to_thread(self._next_part)
        jobs = await self._context.reader.call(
            lambda store: store.jobs(Filter(states=(State.RUNNING,)), limit=STEP)
        )
        ids -= {job.id for job in jobs}
        if ids:
            jobs += await self._context.reader.call(
                lambda store: store.jobs(Filter(ids=tuple(ids)), limit=len(ids))
            )
        self._changed += await asyncio.to_thread(self._tree.mend, links, {job.id: job for job in jobs})
        if not is_last:
            return REST_S
        changed, self._changed = self._changed, 0
        return REST_S if changed else IDLE_S

    def _next_part(self) -> tuple[set[int], list[ViewLink], bool]:
        """Return the next folders' jobs and links, with the links of what runs, and whether a round ends with them."""
        ids = set(islice(self._folders, STEP))
        links = list(islice(self._links, STEP))
        is_last = not ids and not links
        if is_last:
            self._folders, self._links = self._tree.job_ids(), self._tree.links()
        links += self._tree.links(RUNNING)
        return ids | {link.job_id for link in links}, links, is_last
