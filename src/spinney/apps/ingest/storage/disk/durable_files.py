"""Files and folders that are on disk when the call returns."""

import os
import shutil
from pathlib import Path
from uuid import uuid4

from spinney import filesystem
from spinney.apps.ingest.files.copies import sync_folder, sync_together


def sync_tree(top: Path, descriptor: int | None = None) -> None:
    """Make a folder and everything below it durable. ``descriptor``: of a file of the same disk, opened before anything
    below was written."""
    paths = [p for at, _, names in os.walk(top) for p in (Path(at), *(Path(at) / n for n in names))]
    if descriptor is None or not filesystem.synced_whole(descriptor, top.stat().st_dev, len(paths)):
        sync_together(paths)


def place_durably(path: Path, raw: bytes) -> None:
    """Write a file that is whole or not there; two may do so at once."""
    beside = path.with_name(f"{path.name}.{uuid4().hex}.new")
    beside.write_bytes(raw)
    sync_together([beside])
    beside.replace(path)
    sync_folder(path.parent)


def move_durably(source: Path, target: Path) -> None:
    """Rename a file over another, or a folder to where nothing is, in one step; folders above are made."""
    changed = make_folders(target.parent)
    source.rename(target)
    sync_together([*changed, target.parent])


def make_folders(path: Path) -> list[Path]:
    """Make a folder and those above it that are missing; answers the folders that have new entries, unsynced."""
    if path.is_dir():
        return []
    above = make_folders(path.parent)
    path.mkdir(exist_ok=True)
    return [*above, path.parent]


def remove(path: Path) -> None:
    """Remove a file or a tree, if it is there; a link is removed and not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_all_but(folder: Path, *names: str) -> None:
    """Empty a folder of everything else."""
    for entry in list(folder.iterdir()):
        if entry.name not in names:
            remove(entry)
