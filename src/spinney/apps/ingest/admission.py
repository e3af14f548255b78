"""What may not enter fails its job at once, since another attempt would meet the same; what those who run the service
have to mend (settings, a profile, a disk that is not mounted, an inventory that is away) fails none."""

from collections.abc import Iterator
from contextlib import contextmanager

from spinney import Defer, Fail
from spinney.apps.ingest.files.paths import NotAdmitted
from spinney.apps.ingest.inventory import InventoryUnusable
from spinney.errors import BadName, BadParameters, UsageError

AWAY_S = 15.0
"""How long a stage rests while the inventory does not answer."""
MEND_S = 60.0
"""How long it rests while somebody has to mend something."""


@contextmanager
def admission(*, lane: bool = False) -> Iterator[None]:
    """Makes of NotAdmitted a failure that is not tried again, and of InventoryUnusable and UsageError a rest. ``lane``:
    of all jobs of the stage, for none of them would meet anything else."""
    try:
        yield
    except InventoryUnusable as error:
        raise Defer(AWAY_S, str(error)) from error
    except (BadName, BadParameters):  # of the job itself, not of what it is told
        raise
    except UsageError as error:
        raise Defer(MEND_S, str(error), lane=lane) from error
    except NotAdmitted as error:
        raise Fail(str(error), retryable=False) from error
