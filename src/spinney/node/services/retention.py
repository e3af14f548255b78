"""Remove jobs whose retention time is over, in the background.

Now and then the leader scans all jobs. A step takes some milliseconds of the write time at most, and between two steps
the scan pauses nine times as long, so that it does not slow down claims. While the node drains, or when another node
leads, no step begins. The folders of the jobs that a step removed are removed before the next step; where that is
interrupted, or a folder cannot be removed, ``maintenance`` continues, as for all deleted jobs.

Before each step the clock is compared with the latest time at which a leader's clock was trusted
(``spinney.model.trusted_clock``). A clock that has jumped ahead ends the scan, so that it removes no job that is to be
kept still.

The steps run in the reader's thread, so that an exchange never waits for one.
"""

import asyncio
import logging
import time
from collections.abc import Sequence

from spinney.folders import folders
from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.model.rights.actor import Actor
from spinney.model.trusted_clock import TrustedClock
from spinney.model.values.times import utc_text
from spinney.node.context import NodeContext

log = logging.getLogger(__name__)

REST_S = 0.1
"""The least pause between two steps, in seconds."""
REST_SHARE = 9.0
"""The pause between two steps, as a multiple of the step's duration."""
FIRST_S = 60.0
"""The first scan begins so many seconds after the node, or after one interval if that is shorter."""
WARN_EVERY_S = 3600.0
"""The least time between two warnings that the clock has jumped ahead, in seconds."""


class Pruner:
    """Removes jobs whose retention time is over, on the leader. ``run`` is its task."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._warned_s: float | None = None
        """When the last warning about the clock was logged, by the monotonic clock; None: never."""

    async def run(self) -> None:
        """Scan all jobs every ``retention_s`` seconds until the task is cancelled."""
        every_s = self._context.settings.retention_s
        await asyncio.sleep(min(FIRST_S, every_s))
        while True:
            try:
                await self._walk()
            except StoreUnusable as error:
                log.error("removing jobs whose time is over waits: %s", error)
            await asyncio.sleep(every_s)

    async def _walk(self) -> None:
        """Scan all jobs once, in the order of their ids, and remove those whose time is over. It ends early
        when this node drains or leads no longer; the next leader begins with the first job again."""
        status = self._context.status
        actor = Actor(by=f"node {self._context.settings.name}", reason="its time is over")
        after: int | None = 0
        removed = 0
        while after is not None and status.is_leader and not status.draining:
            begun = time.monotonic()
            removed_ids, after = await self._step(after, actor)
            took_s = time.monotonic() - begun
            removed += len(removed_ids)
            await self._remove_folders(removed_ids)
            await asyncio.sleep(max(REST_S, REST_SHARE * took_s))
        if removed:
            log.info("removed %d jobs whose time is over", removed)

    async def _step(self, after: int, actor: Actor) -> tuple[Sequence[int], int | None]:
        """Remove the jobs of one step; return their ids, and the id behind which the next step begins (None:
        that was the last)."""
        now_us = self._context.now_us()
        clock = await self._context.reader.call(lambda store: store.retention.observe_clock(now_us=now_us))
        if clock.jumped_us is not None:
            self._warn(clock, now_us)
            return (), None
        self._warned_s = None
        return await self._context.reader.call(
            lambda store: store.retention.sweep(after, actor, now_us=now_us)
        )

    def _warn(self, clock: TrustedClock, now_us: int) -> None:
        """Log that the clock has jumped ahead, at most once in ``WARN_EVERY_S``."""
        now_s = time.monotonic()
        if self._warned_s is not None and now_s - self._warned_s < WARN_EVERY_S:
            return
        self._warned_s = now_s
        log.warning(
            "no jobs are removed: this node's clock shows %s, and the latest trusted time is %s; if the clock is "
            "wrong, set it right; if no node has run since then, removal goes on at %s, or at once after "
            "'spinney keep --sweep'",
            *map(utc_text, (now_us, clock.trusted_us, clock.trusted_again_us or now_us)),
        )

    async def _remove_folders(self, job_ids: Sequence[int]) -> None:
        """Remove the folders of jobs that are removed from the store, and note which are gone. Where folders
        are local this host has only some of them; the nodes of the other homes remove theirs
        (``services.folders.deleted_folders``)."""
        if job_ids:
            removed = await asyncio.to_thread(folders.remove_each, self._context.folder_root, job_ids, _stays)
            await self._context.reader.call(lambda store: store.note_removed_folders(removed))


def _stays(job_id: int, error: SpinneyError) -> None:
    log.error("the folder of the removed job %d stays: %s", job_id, error)
