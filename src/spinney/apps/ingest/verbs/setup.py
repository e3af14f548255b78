"""Prepare an ingest service for its first batch: folders, tables, storage roots. A repetition changes nothing."""

from collections.abc import Iterator

from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.inventory import open_inventory
from spinney.apps.ingest.storage import open_storage
from spinney.config import without_password
from spinney.files import copies


def prepare(settings: Settings) -> Iterator[tuple[str, str]]:
    """Make all that the service needs, and yield the name and the place of each folder, database and storage
    when it exists.

    What was made before an error stays, so that a repetition continues. Raises OSError, NotAdmitted,
    TablesUnusable, and NotThere for a missing storage that has held objects: it is not replaced by an empty
    one.
    """
    folders = {name: getattr(settings, name) for name in ("home", "profiles", "incoming", "held", "packages")}
    folders |= {f"area {name}": area for name, area in settings.areas.items()}
    for name, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        copies.sync_folder(folder.parent)
        yield name, str(folder)
    with open_inventory(settings.inventory) as inventory:
        inventory.init()
        used = inventory.storages()
    yield "inventory", without_password(settings.inventory)
    for name, target in settings.storage.items():
        open_storage(
            target.url,
            algorithm=target.algorithm,
            endpoint=target.endpoint,
            region=target.region,
            make=name not in used,
        )
        yield f"storage {name}", target.url
