"""What is passed over in Merritt's queue: a fault of one item must not stop the work on the others."""

import logging

from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from spinney.bridges.foreign import ForeignAway
from spinney.bridges.merritt import MerrittError, MerrittZKNodeInvalid
from spinney.errors import SpinneyError, UsageError

_NOT_OF_AN_ITEM = (KazooException, KazooTimeoutError, MerrittError, ForeignAway, SpinneyError)
log = logging.getLogger("spinney.bridges.merritt")


class PassedOver:
    """The items that a consumer has passed over, each with its reason."""

    def __init__(self, consumer: str) -> None:
        self._consumer = consumer
        self._warned: set[tuple[str, str]] = set()

    def __call__(self, item: str, error: Exception) -> bool:
        """Leave an item as it is until its fault is repaired, with one warning; with the traceback where the fault was
        not foreseen. ``item``: as ``job jid0000000001``. Return False for an error that is not the item's: one of the
        connection or of the store."""
        is_foreseen = isinstance(error, UsageError | MerrittZKNodeInvalid | OSError)
        if not is_foreseen and isinstance(error, _NOT_OF_AN_ITEM):
            return False
        if (item, str(error)) not in self._warned:
            self._warned.add((item, str(error)))
            trace = None if is_foreseen else error
            log.warning("%s: %s is passed over: %s", self._consumer, item, error, exc_info=trace)
        return True
