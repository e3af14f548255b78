"""What may not enter fails its job at once, since another attempt would meet the same; an inventory that is away fails
none."""

from collections.abc import Iterator
from contextlib import contextmanager

from spinney import Defer, Fail
from spinney.apps.ingest.inventory import InventoryAway
from spinney.apps.ingest.paths import NotAdmitted

AWAY_S = 15.0
"""How long a stage rests while the inventory does not answer."""


@contextmanager
def admission() -> Iterator[None]:
    """Makes of NotAdmitted a failure that is not tried again, and of InventoryAway a rest."""
    try:
        yield
    except InventoryAway as error:
        raise Defer(AWAY_S, str(error)) from error
    except NotAdmitted as error:
        raise Fail(str(error), retryable=False) from error
