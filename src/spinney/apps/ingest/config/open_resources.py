"""The resources that a process opens once and keeps: inventory and storages, which cost more to open than to use."""

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from spinney.apps.ingest.config.settings import Settings, Target
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.storage import Storage, open_storage

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory import Inventory


def inventory(settings: Settings) -> "Inventory":
    """Return the inventory, which the process keeps open. Only ``ingest init`` makes one: in an empty inventory in
    place of one whose disk is not mounted, all local ids would be unknown and every ARK would be minted again."""
    return _inventory(settings.inventory, os.getpid())


def storage(settings: Settings, name: str) -> Storage:
    """Return the storage of this name. Raises NotThere, since only ``ingest init`` makes one."""
    return _storage(settings.storage[name], os.getpid())


# Cached by process, since a connection must not be used across a fork.
@lru_cache(maxsize=4)
def _inventory(url: str, _pid: int) -> "Inventory":
    return open_inventory(url)


@lru_cache(maxsize=16)
def _storage(target: Target, _pid: int) -> Storage:
    return open_storage(
        target.url, algorithm=target.algorithm, endpoint=target.endpoint, region=target.region, make=False
    )
