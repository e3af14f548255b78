"""Where a member may go: the rules for its name, and for all names of one container together."""

import re
import unicodedata

from spinney.apps.ingest import paths
from spinney.apps.ingest.containers.limits import Limits
from spinney.apps.ingest.paths import NotAdmitted, shown

PATH_MAX_BYTES = 2048
"""Of a member's path, so that it can be opened below the folder of a job (Linux: 4096 in all)."""
NAMES_MAX_BYTES = 256 << 20
"""Of all paths of a container together: they are held in memory while it is unpacked."""

_DRIVE = re.compile(r"[A-Za-z]:")


def within(name: str, *, depth: int) -> str:
    """The path below the top that a member's name leads to; '' is the top itself.

    ``./`` before a name, which tar writes, and one ``/`` behind it, which marks a folder, are taken
    off. Anything else that is no plain relative path raises NotAdmitted.
    """
    if "\\" in name:
        raise NotAdmitted("its name has a backslash in it; pack it with plain '/' between folders")
    if _DRIVE.match(name):
        raise NotAdmitted("its name begins with a drive letter; pack it with relative names")
    path = name
    while path.startswith("./"):
        path = path[2:]
    if path in ("", ".") and name:
        return ""
    path = path.removesuffix("/")
    paths.relative(path)
    if path.count("/") > depth:
        raise NotAdmitted(f"it lies more than {depth} folders deep; flatten it")
    if len(path.encode()) > PATH_MAX_BYTES:
        raise NotAdmitted(f"its path is longer than {PATH_MAX_BYTES} bytes; shorten it")
    return path


def folded(path: str) -> str:
    """What a path becomes where neither case nor the form of an accent counts."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


class Tree:
    """The files and folders of one container so far, so that no two can be one on any file system."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._names_bytes = 0

    def admit_file(self, name: str) -> str:
        """The path of a new file; raises NotAdmitted when its name or its place is not free."""
        path = within(name, depth=self._limits.depth)
        if not path:
            raise NotAdmitted("its name is that of the top folder; give the file a name")
        self._admit_folders(path.rpartition("/")[0])
        key = folded(path)
        if key in self._folders:
            raise NotAdmitted(f"'{shown(self._folders[key])}' is a folder too; rename one of them")
        if key in self._files:
            raise NotAdmitted(self._clash(path, self._files[key]))
        self._count(path)
        self._files[key] = path
        return path

    def admit_folder(self, name: str) -> str:
        """The path of a folder, which may have been named before; '' for the top itself."""
        path = within(name, depth=self._limits.depth)
        self._admit_folders(path)
        return path

    def _admit_folders(self, path: str) -> None:
        # From the bottom up: where a folder is known, so are those above it.
        while path:
            key = folded(path)
            if key in self._files:
                raise NotAdmitted(f"'{shown(self._files[key])}' is a file too; rename one of them")
            known = self._folders.get(key)
            if known == path:
                return
            if known is not None:
                raise NotAdmitted(self._clash(path, known))
            self._count(path)
            self._folders[key] = path
            path = path.rpartition("/")[0]

    def _count(self, path: str) -> None:
        self._names_bytes += len(path)
        if len(self._files) + len(self._folders) >= self._limits.members:
            raise NotAdmitted(
                f"it makes more than {self._limits.members} files and folders; send it in parts, or have the "
                f"limit raised"
            )
        if self._names_bytes > NAMES_MAX_BYTES:
            raise NotAdmitted("its names are too many and too long; send it in parts")

    @staticmethod
    def _clash(path: str, other: str) -> str:
        if path == other:
            return "it is there twice; pack it once"
        return f"it clashes with '{shown(other)}' where case or accents do not count; rename one of them"
