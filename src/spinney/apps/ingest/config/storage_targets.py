"""Storage targets by their names in the settings."""

from spinney.apps.ingest.config import open_resources
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.storage import NotThere, Storage
from spinney.apps.ingest.storage.layout import ROOT_DECLARATION
from spinney.errors import UsageError


def open_target(settings: Settings, name: str) -> Storage:
    """Open the storage with this name in the settings. Raises UsageError when there is none, NotThere, NotAdmitted,
    OSError.

    A folder that is no storage root is refused, and not made one: where a disk is not mounted, every object would seem
    to be lost, and a second archive would begin in its place.
    """
    target = settings.storage.get(name)
    if target is None:
        raise UsageError(
            f"the settings have no storage {name!r}, where objects are kept; name it there again"
        )
    folder = target.folder
    if folder is not None and not (folder / ROOT_DECLARATION).exists():
        raise NotThere(
            f"{folder} is no storage root now; mount the disk of storage {name!r}, or mend its url"
        )
    return open_resources.storage(settings, name)
