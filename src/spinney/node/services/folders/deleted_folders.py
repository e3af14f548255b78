"""Remove the remaining folders of deleted jobs, some at a time, round after round.

Where a deletion was interrupted, or a folder could not be removed, the store lists the job until its folder is removed.
A round goes through all of them by id, so that folders that cannot be removed do not block later ones."""

import asyncio
import logging

from spinney.folders import folders
from spinney.model.errors import SpinneyError
from spinney.node.context import NodeContext

log = logging.getLogger(__name__)

AT_ONCE = 50
"""Folders of one step."""


class DeletedFolders:
    """Continues the round with each ``step``. The log has the first folder that stays for each cause, and the number
    that stay when it changes, so that the same message does not appear in each round."""

    def __init__(self, context: NodeContext, *, home: int) -> None:
        """``home``: the store's id of this root, where folders are local; other homes are left to their nodes."""
        self._context, self._home = context, home
        self._after = 0
        self._stay = self._logged_stay = 0
        """How many stayed in this round, and how many were logged last."""
        self._causes: set[str] = set()
        self._logged_causes: set[str] = set()
        """Why some stayed in this round, and which causes are logged already."""

    async def step(self) -> None:
        """Remove the next few folders. Raises StoreUnusable when the store is."""
        after, home = self._after, self._home
        listed = await self._context.reader.call(
            lambda store: store.deleted_folders(AT_ONCE, after=after, home=home or None)
        )
        removed = await asyncio.to_thread(folders.remove_each, self._context.folder_root, listed, self._stays)
        if removed:
            await self._context.writer.call(lambda store: store.note_removed_folders(removed, home=home))
        if len(listed) == AT_ONCE:
            self._after = listed[-1]
        else:
            self._end_round()

    def _stays(self, job_id: int, error: SpinneyError) -> None:
        """Count a folder that could not be removed, and log the first for each cause."""
        self._stay += 1
        cause = getattr(error.__cause__, "strerror", None) or type(error).__name__
        self._causes.add(cause)
        if cause not in self._logged_causes:
            self._logged_causes.add(cause)
            log.error("the folder of the deleted job %d stays: %s", job_id, error)

    def _end_round(self) -> None:
        """Log how many folders stay, if that has changed, and begin again with the first job."""
        if self._stay != self._logged_stay:
            if self._stay:
                log.warning("%d folders of deleted jobs stay; 'spinney doctor' names them", self._stay)
            else:
                log.info("all folders of deleted jobs are removed")
        self._logged_stay, self._logged_causes = self._stay, self._causes
        self._after, self._stay, self._causes = 0, 0, set()
