"""How errors of a stage end its attempt. A payload that is not admitted fails its job at once, since another attempt
would fail in the same way; a problem that operators have to solve (settings, a profile, a disk that is not mounted, an
inventory that is away) fails no job."""

from collections.abc import Iterator
from contextlib import contextmanager

from spinney import Defer, Fail
from spinney.errors import BadName, BadParameters, UsageError
from spinney.files.paths import NotAdmitted
from spinney.tables import TablesUnusable

AWAY_S = 15.0
"""How long a stage waits while the inventory does not answer, in seconds."""
OPERATOR_S = 60.0
"""How long a stage waits while an operator has to solve a problem, in seconds."""


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
