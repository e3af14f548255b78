"""Operations on files and folders that are durable when the call returns."""

import os
from pathlib import Path
from uuid import uuid4

from spinney.files.copies import sync_folder, sync_together
from spinney.host import filesystem


def sync_tree(top: Path, descriptor: int | None = None) -> None:
    """Make a folder and everything below it durable.

    ``descriptor``: that of a file on the same disk, opened before anything below was written. With it the
    whole file system may be synced at once, where that is quicker than to sync each file. Raises OSError.
    """
    paths = [
        path
        for parent, _, names in os.walk(top)
        for path in (parent, *(f"{parent}/{name}" for name in names))
    ]
    if descriptor is None or not filesystem.synced_whole(descriptor, top.stat().st_dev, len(paths)):
        sync_together([Path(path) for path in paths])


def place_durably(path: Path, raw: bytes) -> None:
    """Write a file that is complete or absent, durable on return; two processes may do so at once, and the
    last one counts."""
    beside = path.with_name(f"{path.name}.{uuid4().hex}.new")
    beside.write_bytes(raw)
    sync_together([beside])
    beside.replace(path)
    sync_folder(path.parent)


def move_durably(source: Path, target: Path) -> None:
    """Rename a file over another, or a folder to a new path, atomically; missing parent folders are made.

    The source must be durable already. Only the folders of the target are synced.
    """
    changed = make_folders(target.parent)
    source.rename(target)
    sync_together([*changed, target.parent])


def make_folders(path: Path) -> list[Path]:
    """Make a folder and its missing parents, and return the folders with new entries, which are not synced."""
    if path.is_dir():
        return []
    above = make_folders(path.parent)
    path.mkdir(exist_ok=True)
    return [*above, path.parent]
