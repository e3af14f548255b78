"""Stages that rest while there is no room for what they write, since nothing is wrong with what was deposited."""

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from spinney import Defer, Job
from spinney.apps.ingest.config import settings
from spinney.apps.ingest.files import disk_space
from spinney.apps.ingest.files.disk_space import NoRoom
from spinney.errors import UsageError

FULL_S = 30.0
"""How long a stage rests before it looks again whether there is room."""
Stage = TypeVar("Stage", bound=Callable[..., Any])


def awaited(stage: Stage) -> Stage:
    """A stage that rests while there is no room for what it writes, wherever that is."""

    @functools.wraps(stage)
    def run(job: Job, *given: Any, **named: Any) -> Any:
        try:
            return stage(job, *given, **named)
        except OSError as error:
            if not disk_space.is_full(error):
                raise
            raise Defer(FULL_S, str(_named(job, error))) from error

    return run  # type: ignore[return-value]


def _named(job: Job, error: OSError) -> NoRoom:
    """Where that was: what the system names, or the fullest of the disks that a stage writes to."""
    if isinstance(error, NoRoom):
        return error
    place = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if place is not None:
        return disk_space.no_room(next(folder for folder in (place, *place.parents) if folder.is_dir()))
    return disk_space.no_room(
        min((folder for folder in _places(job) if folder.is_dir()), key=disk_space.free_bytes)
    )


def _places(job: Job) -> Iterator[Path]:
    yield job.folder
    try:
        found = settings.load()
    except UsageError:
        return
    yield from (found.home, *found.areas.values())
    yield from (target.folder for target in found.storage.values() if target.folder is not None)
