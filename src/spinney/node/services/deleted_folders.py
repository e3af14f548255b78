"""Removing the folders of deleted jobs that are still there, some at a time, round after round.

Where a deletion was cut off, or a folder resisted, the store tells the job until its folder is gone. A round goes
through all of them by number, so that those which cannot be removed keep nobody behind them from going.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from spinney.folders import folders
from spinney.model.errors import SpinneyError
from spinney.node.store_thread import StoreThread

log = logging.getLogger(__name__)

AT_ONCE = 50
"""Folders of one step."""


class DeletedFolders:
    """``step`` goes on with the round. The log has the first folder that stays for a cause, and how many stay when
    that changes: what is so in each round is not said in each."""

    def __init__(self, writer: StoreThread, reader: StoreThread, root: Path, *, home: int = 0) -> None:
        """``home``: what the store calls this root, where folders are local; others' jobs are left to their nodes."""
        self._writer, self._reader, self._root, self._home = writer, reader, root, home
        self._after = 0
        self._stay = self._told_stay = 0
        """How many stayed in this round, and how many were told last."""
        self._causes: set[str] = set()
        self._told_causes: set[str] = set()
        """Why some stayed in this round, and which causes are told already."""

    async def step(self) -> None:
        """The next few folders. Raises StoreUnusable when the store is."""
        after, home = self._after, self._home
        listed = await self._reader.call(
            lambda store: store.deleted_folders(AT_ONCE, after=after, home=home or None)
        )
        removed = await asyncio.to_thread(self._removed, listed)
        if removed:
            await self._writer.call(lambda store: store.folder_gone(removed, home=home))
        if len(listed) == AT_ONCE:
            self._after = listed[-1]
        else:
            self._end_round()

    def _removed(self, job_ids: Sequence[int]) -> list[int]:
        """Remove the folders of these; those whose folder is gone now."""
        gone = []
        for job_id in job_ids:
            try:
                folders.remove(self._root, job_id)
            except SpinneyError as error:
                self._stays(job_id, error)
            else:
                gone.append(job_id)
        return gone

    def _stays(self, job_id: int, error: SpinneyError) -> None:
        self._stay += 1
        cause = getattr(error.__cause__, "strerror", None) or type(error).__name__
        self._causes.add(cause)
        if cause not in self._told_causes:
            self._told_causes.add(cause)
            log.error("the folder of the deleted job %d stays: %s", job_id, error)

    def _end_round(self) -> None:
        if self._stay != self._told_stay:
            if self._stay:
                log.warning("%d folders of deleted jobs stay; 'spinney doctor' names them", self._stay)
            else:
                log.info("all folders of deleted jobs are removed")
        self._told_stay, self._told_causes = self._stay, self._causes
        self._after, self._stay, self._causes = 0, 0, set()
