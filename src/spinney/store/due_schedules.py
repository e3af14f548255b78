"""Create the jobs of schedules that are due, one schedule a step.

Any process may do it at any time, also several at once: each step checks again in its transaction."""

import logging

from spinney.model.errors import SpinneyError, StoreUnusable
from spinney.store.parts import Store

log = logging.getLogger(__name__)


def tick(store: Store, *, now_us: int) -> bool:
    """Create the jobs of one schedule that is due; return whether another one may be due. An error that concerns one
    schedule alone (its time zone is unknown on this host) is logged, because neither other schedules nor other
    housekeeping may wait for that. Raises StoreUnusable."""
    try:
        return store.schedules.tick(now_us=now_us)
    except StoreUnusable:
        raise
    except SpinneyError as error:
        log.error("%s", error)
        return True
