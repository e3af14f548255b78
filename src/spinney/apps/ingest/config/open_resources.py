"""What a process opens once and keeps: the inventory and the storages, which cost more to open than to use."""

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from spinney.apps.ingest.config.settings import Settings, Target
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.storage import Storage, open_storage

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory import Inventory


def inventory(settings: Settings) -> "Inventory":
    """The inventory, which the process keeps open. Only ``ingest init`` makes one: in an empty one that took the place
    of the right one, whose disk is away, no local id would be known and every ARK would be minted again."""
    return _inventory(settings.inventory, os.getpid())


def storage(settings: Settings, name: str) -> Storage:
    """The storage of this name. Raises NotThere: only ``ingest init`` makes one."""
    return _storage(settings.storage[name], os.getpid())


# By process, for a connection must not cross a fork.
@lru_cache(maxsize=4)
def _inventory(url: str, _pid: int) -> "Inventory":
    return open_inventory(url)


@lru_cache(maxsize=16)
def _storage(target: Target, _pid: int) -> Storage:
    return open_storage(
        target.url, algorithm=target.algorithm, endpoint=target.endpoint, region=target.region, make=False
    )
