"""Take the stacks of running attempts: from the memory that their workers write, into the folders of their jobs.

``<job folder>/.spinney/<stage>.<fence>.stack`` when somebody requested them, ``….stack_after`` when the attempt has
lasted so long, ``….stack_timeout`` before its time limit ends it."""

import asyncio
import logging
import time
import weakref
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spinney.define.job.data import folder_of
from spinney.model.values.paths import OWN
from spinney.node.workers.child import Child
from spinney.node.workers.proctree import command_line, descendants, is_stopped
from spinney.postmortem.programs import write_document

log = logging.getLogger(__name__)

KINDS = REQUESTED, AFTER, TIMEOUT = "stack", "stack_after", "stack_timeout"
_PATIENCE_S = 1.0
"""How long a worker may take until its interpreter handles the signal."""
_RAW_S = 0.2
"""How long ``faulthandler`` gets, which writes at once."""
_LOOK_S = 0.01


def file_path(stage: str, fence: int, kind: str = REQUESTED) -> str:
    """Return the path in a job's folder of an attempt's stacks."""
    return f"{OWN}/{stage}.{fence}.{kind}"


class StackTaker:
    """Takes stacks, one after another in each worker."""

    def __init__(self, root: Path, spawn: Callable[[Coroutine[Any, Any, Any]], object]) -> None:
        """``root``: the folder root. ``spawn`` starts a task."""
        self._root, self._spawn = root, spawn
        self._being_taken: set[int] = set()
        self._workers: weakref.WeakKeyDictionary[Child, asyncio.Lock] = weakref.WeakKeyDictionary()

    def is_taking(self, fence: int) -> bool:
        """Return whether the stacks of an attempt are being taken: it is ended only afterwards."""
        return fence in self._being_taken

    def begin(
        self,
        child: Child,
        job_id: int,
        stage: str,
        fence: int,
        kind: str,
        *,
        on_taken: Callable[[int], None] = lambda fence: None,
    ) -> None:
        """Take the stacks of a running attempt. ``on_taken`` is called with its fence at the end, whatever became of
        it."""
        if fence not in self._being_taken:
            self._being_taken.add(fence)
            self._spawn(self._take(child, job_id, stage, fence, kind, on_taken))

    async def _take(
        self, child: Child, job_id: int, stage: str, fence: int, kind: str, on_taken: Callable[[int], None]
    ) -> None:
        try:
            try:
                async with self._workers.setdefault(child, asyncio.Lock()):
                    text = await self._text(child, fence)
            finally:
                # It may be ended from here on, although the disk may not answer.
                self._being_taken.discard(fence)
            moment = datetime.now(UTC)
            heading = f"{moment:%Y-%m-%d %H:%M:%S} UTC, worker {child.name}, process {child.pid}\n\n"
            folder = await asyncio.to_thread(folder_of, self._root, job_id)
            path = folder / file_path(stage, fence, kind)
            await asyncio.to_thread(write_document, path, (heading + text).encode())
        except OSError as error:  # the worker has ended, or the disk is full: the attempt goes on without
            log.info("the stacks of job=%d fence=%d cannot be kept: %s", job_id, fence, error)
        finally:
            on_taken(fence)

    async def _text(self, child: Child, fence: int) -> str:
        memory = child.stack_memory
        memory.clear()
        child.request_stacks(fence)
        text, complete = await self._written(child, _PATIENCE_S)
        if not complete and child.alive:
            memory.clear()
            child.request_raw_stacks()
            text, _ = await self._written(child, _RAW_S)
            text = f"(a thread is inside a long call of C code)\n{text}" if text else ""
        # A process of a concurrent worker may be another job's, whose secrets and files are not for this one.
        most = 1 if child.concurrent else None
        processes = descendants(child.pid)
        programs = "".join(
            f"process {proc.pid}{_stopped(proc.pid)}: {command_line(proc, most=most)}\n" for proc in processes
        )
        return f"{text or f'(the worker did not answer{_stopped(child.pid)})'}\n{programs}"

    async def _written(self, child: Child, patience_s: float) -> tuple[str, bool]:
        """Wait until the worker's answer is complete, for so long at most; return it."""
        give_up = time.monotonic() + patience_s
        while True:
            text, complete = child.stack_memory.read()
            if complete or not child.alive or time.monotonic() > give_up:
                return text, complete
            await asyncio.sleep(_LOOK_S)


def _stopped(pid: int) -> str:
    """Return a remark on a process that was stopped, and cannot go on by itself; empty for any other."""
    return f", stopped by a signal until 'kill -CONT {pid}'" if is_stopped(pid) else ""
