"""Removal of the folders of deleted jobs. Where this is interrupted, nodes remove the rest."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinney.store.contract import Store

_CHUNK = 100
"""How many removed folders are reported to the store at a time."""


def remove_folders(store: "Store", job_ids: Sequence[int], remove: Callable[[int], None]) -> None:
    """Remove the jobs' folders, and record in the store that they are removed."""
    for first in range(0, len(job_ids), _CHUNK):
        chunk = job_ids[first : first + _CHUNK]
        for job_id in chunk:
            remove(job_id)
        store.note_removed_folders(chunk)
