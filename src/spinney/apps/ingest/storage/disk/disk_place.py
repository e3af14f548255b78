"""A storage root on a file system; the protocol is in the package's docstring."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from spinney.apps.ingest.storage.disk.disk_put import DiskPut, locked
from spinney.apps.ingest.storage.layout import STAGING, staging
from spinney.apps.ingest.storage.model import NoSuchObject
from spinney.apps.ingest.storage.place import Claim, Document, Place, Step
from spinney.files import disk_space
from spinney.files.copies import sync_together
from spinney.files.durable import make_folders, place_durably
from spinney.files.paths import NotAdmitted, opened_beneath, shown


class DiskPlace(Place):
    """A `place.Place` in a folder of a file system; nothing outside of it is read, whatever links it holds."""

    __slots__ = ("_on_step", "_root")

    def __init__(self, root: Path, on_step: Step) -> None:
        self._root, self._on_step = root, on_step

    @property
    def where(self) -> str:
        return str(self._root)

    def establish(self, documents: Mapping[str, bytes]) -> None:
        # A missing folder is made; several processes may do this at once.
        self._root.mkdir(parents=True, exist_ok=True)
        begun = {name.partition("/")[0] for name in documents}
        for entry in self._root.iterdir():
            if entry.name not in begun and not entry.name.endswith(".new"):
                raise NotAdmitted(
                    f"'{shown(self.where)}' has '{shown(entry.name)}' in it and is no OCFL storage root; "
                    f"name an empty folder"
                )
        for name, raw in documents.items():
            target = self._root / name
            changed = make_folders(target.parent)
            place_durably(target, raw)
            sync_together([*changed, self._root])

    def read(self, path: str) -> Document | None:
        try:
            with opened_beneath(self._root, path) as file:
                return Document(raw=file.read())
        except NotAdmitted:
            if os.path.lexists(self._root / path):
                raise
            return None

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        if not os.path.lexists(self._root / path):
            raise NoSuchObject(f"'{shown(path)}' is not in the storage; restore it from a copy")
        with opened_beneath(self._root, path) as file:
            yield file

    def url(self, path: str) -> str:
        return (self._root / path).absolute().as_uri()

    def sizes(self, root: str) -> Callable[[str], int | None]:
        top = self._root / root

        def size_of(path: str) -> int | None:
            try:
                status = (top / path).lstat()
            except (FileNotFoundError, NotADirectoryError):
                return None
            return status.st_size if stat.S_ISREG(status.st_mode) else None

        return size_of

    def walk(self, root: str) -> Iterator[str]:
        top = self._root / root
        for folder, folders, files in os.walk(top):
            relative_folder = Path(folder).relative_to(top)
            links = [f for f in folders if (Path(folder) / f).is_symlink()]
            for name in (*files, *links):
                yield (relative_folder / name).as_posix()
            if not folders and not files:
                yield f"{relative_folder.as_posix()}/"

    @contextmanager
    def begin_put(self, claim: Claim) -> Iterator[DiskPut]:
        folder = self._root / STAGING / staging(claim.object_id)
        with locked(folder, claim.object_id) as descriptor:
            room = DiskPut(self.read, self._root / claim.root, folder, descriptor, claim, self._on_step)
            try:
                room.claim()
                yield room
            except BaseException as error:
                # After any error: a full disk must not stay full of staged files. Only a process that dies leaves
                # the staged content for the next put.
                room.clear()
                if isinstance(error, OSError) and disk_space.is_full(error):
                    raise disk_space.no_room(self._root, room.needed_bytes) from error
                raise
            room.clear()
