"""Sync files of killed attempts, which their workers can no longer sync.

The next attempt may keep files that it finds, and only syncs those that it writes itself. So the file system of all
folders is synced before such an attempt is recorded, by the supervisor for its own workers, and by the process that
takes back the jobs of a dead node of this host. A host that crashed has lost what was not on its disk, so that nothing
is in doubt."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from spinney.folders import folders
from spinney.host import filesystem

log = logging.getLogger(__name__)


async def sync_folders(
    root: Path, job_ids: Sequence[int] | None = None, *, limit_s: float | None = None
) -> None:
    """Sync the file system of the folder root ``root`` if one of these jobs has a folder there; None: in any case.
    Return after ``limit_s`` though it is not done; the thread goes on.

    It is done in a thread, because a share that does not answer must not stop the event loop. An error of the disk is
    only logged, because the attempts are lost in any case."""
    try:
        async with asyncio.timeout(limit_s):
            await asyncio.to_thread(_sync, root, job_ids)
    except TimeoutError:
        log.error(
            "the disk of %s does not answer; what killed attempts wrote there is synced when it does", root
        )
    except OSError as error:
        log.error("what killed attempts wrote below %s could not be synced: %s; see the disk", root, error)


def _sync(root: Path, job_ids: Sequence[int] | None) -> None:
    if job_ids is not None and not any(folders.path(root, job_id).is_dir() for job_id in job_ids):
        return
    if root.is_dir():
        filesystem.sync_whole_of(root)
