"""Check whether the folder root is the store's and can be written to. While another folder is in the place of the root,
or none, while it does not answer, or its file system is read-only, the node takes no jobs: they would fail, or hang,
for a cause that is not theirs, and there may be other nodes where it can be used. When its disk is full, jobs that
cannot write fail one by one, while others may make room, and this shows the cause once."""

import asyncio

from spinney.files.disk_space import is_read_only
from spinney.folders import folders
from spinney.model.errors import StoreUnusable
from spinney.node.context import NodeContext
from spinney.node.health import NodeHealth
from spinney.node.services.loop import every

EVERY_S = 2.0
"""Seconds between two checks of the folder root."""
PATIENCE_S = 15.0
"""How long a check may take before it is said that the folder root does not answer, in seconds."""


class FolderWatch:
    """Notes in the node's health and status whether the folder root can be used. ``run`` is its task."""

    def __init__(
        self, context: NodeContext, token: str, health: NodeHealth, *, root_fingerprint: str | None
    ) -> None:
        """``token``: by which the store knows its folder root. ``root_fingerprint``: that of the root with which the
        node has joined, where folders are local."""
        self._context, self._token, self._health = context, token, health
        self._fingerprint = root_fingerprint
        self._running: asyncio.Future[tuple[str | None, str | None]] | None = None
        """The check that has not been answered yet."""

    async def run(self) -> None:
        """Check the folder root every ``EVERY_S`` seconds until the task is cancelled."""
        await every(EVERY_S, self._check, "checking the folder root")

    async def _check(self) -> None:
        wrong_root, problem = await self._answer()
        self._health.lasts("folders", wrong_root or problem)
        status = self._context.status
        was_wrong, status.root_is_wrong = status.root_is_wrong, wrong_root is not None
        if was_wrong and not status.root_is_wrong:
            self._context.signals.claimable()

    async def _answer(self) -> tuple[str | None, str | None]:
        """Return the problems. They are looked for in a thread, because a network share may not answer; a check that
        gets no answer is the only one until it gets one."""
        if self._running is None:
            self._running = asyncio.ensure_future(asyncio.to_thread(self._problems))
        await asyncio.wait((self._running,), timeout=PATIENCE_S)
        if not self._running.done():
            return (
                f"the folder root {self._context.folder_root} does not answer; see its file server, or the disk",
                None,
            )
        running, self._running = self._running, None
        return running.result()

    def _problems(self) -> tuple[str | None, str | None]:
        """Return why the root is of no use, and else why jobs may be unable to write to it; None: no problem."""
        root = self._context.folder_root
        if self._fingerprint is not None:
            try:
                present = folders.fingerprint(root, make=False)
            except StoreUnusable as error:
                return str(error), None
            if present != self._fingerprint:
                # It is not made anew: where a disk is not mounted, its files would be lost to the jobs.
                return (
                    f"{root} is not the folder root with which this node began: is the disk mounted? Mount it, or, "
                    f"when what was in it is lost, stop this node, let go of it (spinney rehome --host "
                    f"{self._context.host.host}) and start the node again"
                ), None
        try:
            folders.check_token(root, self._token)
        except StoreUnusable as error:
            return str(error), None
        problem = folders.write_problem(root)
        return (problem, None) if is_read_only(root) else (None, problem)
