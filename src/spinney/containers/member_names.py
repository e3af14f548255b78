"""The rules for a member's name, and for all names of one container together."""

import re

from spinney.containers.limits import Meter
from spinney.files import paths
from spinney.files.paths import PATH_MAX_BYTES, NotAdmitted, folded, shown

NAMES_MAX_BYTES = 256 << 20
"""The maximum length of all paths of a container together, which are kept in memory while it is unpacked."""

_DRIVE = re.compile(r"[A-Za-z]:")


def within(name: str, *, depth: int) -> str:
    """Return the path of a member's name below the top folder; '' is the top folder itself.

    ``./`` before a name, which tar writes, and one ``/`` after it, which marks a folder, are removed. Raises
    NotAdmitted for anything else that is no plain relative path.
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


class Tree:
    """The files and folders of one container so far: each path is unique, no file is a folder too, and pairs
    that some file systems treat as one are recorded. All paths are kept in memory, within
    ``NAMES_MAX_BYTES``."""

    NEAR_MOST = 5
    """How many pairs ``near`` has at most."""

    def __init__(self, meter: Meter, *, depth: int) -> None:
        """``depth``: the maximum depth of folders."""
        self._meter, self._depth = meter, depth
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._folded: dict[str, str] = {}
        """The first of the paths that differ only in case and accents, by folded path; files and folders alike."""
        self._names_bytes = 0
        self.near: list[tuple[str, str]] = []
        """The first pairs of paths that differ only in case and accents."""

    def admit_file(self, name: str) -> str:
        """Return the path of a new file. Raises NotAdmitted when its name is invalid or used already."""
        path = within(name, depth=self._depth)
        if not path:
            raise NotAdmitted("its name is that of the top folder; give the file a name")
        self._admit_folders(path.rpartition("/")[0])
        if path in self._folders:
            raise NotAdmitted(f"'{shown(path)}' is a folder too; rename one of them")
        if path in self._files:
            raise NotAdmitted("it is in the archive twice; pack it once")
        self._count(path)
        self._files.add(path)
        return path

    def near_to(self, path: str) -> str | None:
        """Return another path that some file systems treat as this one, or as a folder above it; None: there
        is none. It explains why a file could not be made."""
        while path:
            other = self._folded.get(folded(path), path)
            if other != path:
                return other
            path = path.rpartition("/")[0]
        return None

    def admit_folder(self, name: str) -> str:
        """Return the path of a folder, which may have been named before; '' for the top folder. Raises
        NotAdmitted when its name is invalid or that of a file."""
        path = within(name, depth=self._depth)
        self._admit_folders(path)
        return path

    def _admit_folders(self, path: str) -> None:
        """Enter a folder and those above it. Raises NotAdmitted where one of them is a file."""
        # From the bottom up: where a folder is known, so are those above it.
        while path:
            if path in self._files:
                raise NotAdmitted(f"'{shown(path)}' is a file too; rename one of them")
            if path in self._folders:
                return
            self._count(path)
            self._folders.add(path)
            path = path.rpartition("/")[0]

    def _count(self, path: str) -> None:
        """Count a new path against the limits, and record whether it differs from another in case or accents only."""
        self._names_bytes += len(path)
        self._meter.member()
        if self._names_bytes > NAMES_MAX_BYTES:
            raise NotAdmitted("its names are too many and too long; send it in parts")
        other = self._folded.setdefault(folded(path), path)
        if other != path and len(self.near) < self.NEAR_MOST:
            self.near.append((other, path))
