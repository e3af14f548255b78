"""The resources that a process opens once and keeps: inventory and storages, which cost more to open than to use."""

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from spinney.apps.ingest.config.settings import Settings, Target
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.storage import NotThere, Storage, open_storage
from spinney.apps.ingest.storage.layout import ROOT_DECLARATION
from spinney.errors import UsageError

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory


def inventory(settings: Settings) -> "Inventory":
    """Return the inventory, which the process keeps open. Only ``ingest init`` makes one: in an empty inventory in
    place of one whose disk is not mounted, all local ids would be unknown and every ARK would be minted again."""
    return _inventory(settings.inventory, os.getpid())


def storage(settings: Settings, name: str) -> Storage:
    """Return the storage with this name in the settings. Raises UsageError when there is none, NotThere, NotAdmitted,
    OSError.

    A folder that is no storage root is refused, and not made one: where a disk is not mounted, every object would seem
    to be lost, and a second archive would begin in its place. Only ``ingest init`` makes one.
    """
    return _storage(_target(settings, name), os.getpid())


def check_storage(settings: Settings, name: str) -> None:
    """Open a storage anew: one that the process keeps open may not answer any more. Raises what ``storage`` raises."""
    _storage.__wrapped__(_target(settings, name), os.getpid())


def _target(settings: Settings, name: str) -> Target:
    """Return the place of a storage. Raises UsageError, NotThere."""
    target = settings.storage.get(name)
    if target is None:
        raise UsageError(
            f"the settings have no storage {name!r}, where objects are kept; add it to the settings again"
        )
    folder = target.folder
    if folder is not None and not (folder / ROOT_DECLARATION).exists():
        raise NotThere(
            f"{folder} is no storage root now; mount the disk of storage {name!r}, or correct its url"
        )
    return target


# Cached by process, since a connection must not be used across a fork.
@lru_cache(maxsize=4)
def _inventory(url: str, _pid: int) -> "Inventory":
    return open_inventory(url)


@lru_cache(maxsize=16)
def _storage(target: Target, _pid: int) -> Storage:
    return open_storage(
        target.url, algorithm=target.algorithm, endpoint=target.endpoint, region=target.region, make=False
    )
