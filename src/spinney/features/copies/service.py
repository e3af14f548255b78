"""A store copied to another place, whole: see ``spinney.features.copies.sql`` for what that promises."""

from collections.abc import Sequence

from spinney.features.copies.sql import CopiedTable, OnProgress, copy
from spinney.model.errors import Refused
from spinney.store.sql import open_store

__all__ = ["CopiedTable", "copy_store"]


def copy_store(source: str, target: str, *, told: OnProgress = lambda *_: None) -> Sequence[CopiedTable]:
    """Copy the store of one URL to the place of another, where nothing may be yet; returns its tables.

    Both are open for as long as it takes, and the old store is only read. Raises UsageError for what is no URL of a
    store, Refused, StoreUnusable.
    """
    if source == target:
        raise Refused("a store cannot be copied to where it is; name another place")
    here, there = open_store(source), open_store(target)
    try:
        return copy(here.database, there.database, told=told)
    finally:
        here.close()
        there.close()
