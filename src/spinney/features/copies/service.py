"""Copies the store of one URL to the database of another; ``sql`` says what a copy promises."""

from collections.abc import Sequence
from contextlib import closing

from spinney.features.copies.sql import CopiedTable, OnProgress, copy
from spinney.model.errors import Refused
from spinney.store.sql import open_store

__all__ = ["CopiedTable", "copy_store"]


def copy_store(
    source: str, target: str, *, on_progress: OnProgress = lambda *_: None
) -> Sequence[CopiedTable]:
    """Copy the store of one URL to the empty database of another, and return its tables.

    ``on_progress`` is called after each page of rows. The source is only read. Raises UsageError for what is no URL of
    a store, Refused (the target is not empty, nodes are at work), StoreUnusable.
    """
    if source == target:
        raise Refused("a store cannot be copied to where it is; name another place")
    with closing(open_store(source)) as old, closing(open_store(target)) as new:
        return copy(old.database, new.database, on_progress=on_progress)
