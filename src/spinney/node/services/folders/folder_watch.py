"""Check whether the folder root can be written to: jobs that cannot write fail one by one, and this shows the cause
once."""

import asyncio
from pathlib import Path

from spinney.folders import folders
from spinney.node.health import NodeHealth
from spinney.node.services.loop import every

EVERY_S = 2.0
"""Seconds between two checks of the disk of the folder root."""


class FolderWatch:
    """Notes in the node's health whether the folder root can be written to. ``run`` is its task."""

    def __init__(self, root: Path, health: NodeHealth) -> None:
        self._root, self._health = root, health

    async def run(self) -> None:
        """Check the folder root every ``EVERY_S`` seconds until the task is cancelled."""
        await every(EVERY_S, self._check, "checking the folder root")

    async def _check(self) -> None:
        # In a thread, because a network share may not answer; nothing else waits for it.
        self._health.lasts(await asyncio.to_thread(folders.write_problem, self._root))
