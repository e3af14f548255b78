"""Remove jobs whose retention time is over, in the background.

Now and then the leader scans all jobs. A step takes some milliseconds of the write time at most, and between two steps
the scan pauses nine times as long, so that it does not slow down claims. While the node drains, or when another node
leads, no step begins. The folders of the jobs that a step removed are removed before the next step; where that is
interrupted, or a folder cannot be removed, ``maintenance`` continues, as for all deleted jobs.

The steps run in the reader's thread, so that an exchange never waits for one.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from spinney.folders import folders
from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.rights.operators import Actor
from spinney.node.signals import NodeStatus
from spinney.node.store_thread import StoreThread

log = logging.getLogger(__name__)

REST_S = 0.1
"""The least pause between two steps, in seconds."""
REST_SHARE = 9.0
"""The pause between two steps, as a multiple of the step's duration."""
FIRST_S = 60.0
"""The first scan begins so many seconds after the node, or after one interval if that is shorter."""


class Pruner:
    """``run`` is its task."""

    def __init__(
        self,
        reader: StoreThread,
        *,
        node: str,
        folder_root: Path,
        every_s: float,
        now_us: Callable[[], int],
        status: NodeStatus,
    ) -> None:
        self._reader, self._node, self._root, self._every_s = reader, node, folder_root, every_s
        self._now_us, self._status = now_us, status

    async def run(self) -> None:
        """Scan, for ever."""
        await asyncio.sleep(min(FIRST_S, self._every_s))
        while True:
            try:
                await self._walk()
            except StoreUnusable as error:
                log.error("removing jobs whose time is over waits: %s", error)
            await asyncio.sleep(self._every_s)

    async def _walk(self) -> None:
        actor = Actor(by=f"node {self._node}", call=uuid.uuid4().hex, reason="its time is over")
        after: int | None = 0
        removed = 0
        while after is not None and self._status.is_leader and not self._status.draining:
            begun = time.monotonic()
            removed_ids, after = await self._step(after, actor)
            took_s = time.monotonic() - begun
            removed += len(removed_ids)
            await self._remove_folders(removed_ids)
            await asyncio.sleep(max(REST_S, REST_SHARE * took_s))
        if removed:
            log.info("removed %d jobs whose time is over", removed)

    async def _step(self, after: int, actor: Actor) -> tuple[Sequence[int], int | None]:
        now_us = self._now_us()
        return await self._reader.call(lambda store: store.retention.sweep(after, actor, now_us=now_us))

    async def _remove_folders(self, job_ids: Sequence[int]) -> None:
        if job_ids:
            removed = await asyncio.to_thread(_removed, self._root, job_ids)
            await self._reader.call(lambda store: store.note_removed_folders(removed))


def _removed(root: Path, job_ids: Sequence[int]) -> list[int]:
    """Remove the jobs' folders; return the jobs whose folder is removed now."""
    removed = []
    for job_id in job_ids:
        try:
            folders.remove(root, job_id)
        except SpinneyError as error:
            log.error("folder of the removed job %d stays: %s", job_id, error)
        else:
            removed.append(job_id)
    return removed
