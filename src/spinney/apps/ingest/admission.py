"""How errors of a stage end its attempt. A payload that is not admitted fails its job at once, since another attempt
would fail in the same way; a problem that operators have to solve (settings, a profile, a disk that is not mounted, is
full or read-only, an inventory that is away) fails no job."""

import errno
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from spinney import Defer, Fail, Job
from spinney.apps.ingest.config import settings
from spinney.errors import BadName, BadParameters, UsageError
from spinney.files import disk_space
from spinney.files.disk_space import NoRoom
from spinney.files.paths import NotAdmitted, shown
from spinney.tables import TablesUnusable

AWAY_S = 15.0
"""How long a stage waits while the inventory does not answer, in seconds."""
OPERATOR_S = 60.0
"""How long a stage waits while an operator has to solve a problem, in seconds."""
FULL_S = 30.0
"""How long a stage waits before it checks again whether there is space, in seconds."""
Stage = TypeVar("Stage", bound=Callable[..., Any])


@contextmanager
def admission(*, lane: bool = False) -> Iterator[None]:
    """Turn NotAdmitted into a failure that is not tried again, and TablesUnusable and UsageError into a Defer.

    ``lane``: a UsageError defers all jobs of the stage, since they would all meet the same error.
    """
    try:
        yield
    except TablesUnusable as error:
        raise Defer(AWAY_S, str(error)) from error
    except (BadName, BadParameters):  # errors of the job itself, not of its settings
        raise
    except UsageError as error:
        raise Defer(OPERATOR_S, str(error), lane=lane) from error
    except NotAdmitted as error:
        raise Fail(str(error), retryable=False) from error


def space_awaited(stage: Stage) -> Stage:
    """Decorate a stage so that it defers while there is no space for what it writes, on whatever disk, or a disk is
    read-only, as some become after an error."""

    @functools.wraps(stage)
    def run(job: Job, *args: Any, **kwargs: Any) -> Any:
        try:
            return stage(job, *args, **kwargs)
        except OSError as error:
            if error.errno == errno.EROFS:
                place = shown(os.fsdecode(error.filename or "a file"))
                reason = f"{place} cannot be written, since its disk is read-only; check the disk and mount it for "
                raise Defer(OPERATOR_S, f"{reason}writing, and it continues by itself") from error
            if not disk_space.is_full(error):
                raise
            raise Defer(FULL_S, str(_no_room(job, error))) from error

    return run  # type: ignore[return-value]


def _no_room(job: Job, error: OSError) -> NoRoom:
    """Return the error with the full disk's folder: that named by the system, or the fullest that a stage writes to."""
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
        config = settings.load()
    except UsageError:
        return
    yield from (config.home, *config.areas.values())
    yield from (target.folder for target in config.storage.values() if target.folder is not None)
