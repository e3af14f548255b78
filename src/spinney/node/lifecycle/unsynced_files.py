"""Sync files of killed attempts, which their workers can no longer sync.

The next attempt may keep files that it finds, and only syncs those that it writes itself. So the file system of all
folders is synced before such an attempt is recorded, by the supervisor for its own workers, and by the process that
takes back the jobs of a dead node of this host. A host that crashed has lost what was not on its disk, so that nothing
is in doubt."""

import asyncio
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from spinney.folders import folders
from spinney.host import filesystem

log = logging.getLogger(__name__)


async def sync_folders_of(root: Path, job_ids: Iterable[int]) -> None:
    """Sync the file system of the folder root ``root`` if one of these jobs has a folder there."""
    await _in_thread(root, list(job_ids))


async def sync_folder_root(root: Path) -> None:
    """Sync the file system of the folder root."""
    await _in_thread(root, None)


async def _in_thread(root: Path, job_ids: Sequence[int] | None) -> None:
    """Sync in a thread, because a share that does not answer must not stop the event loop. An error of the disk is only
    logged, because the attempts are lost in any case."""
    try:
        await asyncio.to_thread(_sync, root, job_ids)
    except OSError as error:
        log.error("what killed attempts wrote below %s could not be synced: %s; see the disk", root, error)


def _sync(root: Path, job_ids: Sequence[int] | None) -> None:
    if job_ids is not None and not any(folders.path(root, job_id).is_dir() for job_id in job_ids):
        return
    if not root.is_dir():
        return
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        filesystem.sync_whole(descriptor)
    finally:
        os.close(descriptor)
