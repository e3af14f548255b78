"""Checks the files of a put before anything is copied. No I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spinney.apps.ingest.files.digests import digest
from spinney.apps.ingest.files.paths import NotAdmitted, relative, shown
from spinney.apps.ingest.storage.contract import Incoming


def files_by_path(files: Iterable[Incoming]) -> dict[str, Incoming]:
    """Return the files by their paths, their sums in canonical form. Raises NotAdmitted for an invalid path."""
    by_path: dict[str, Incoming] = {}
    for file in files:
        path = relative(file.path)
        if path in by_path:
            raise NotAdmitted(f"'{shown(path)}' is given twice; give each path once")
        checked = [digest(a, v) for a, v in file.sums.items()]
        by_path[path] = replace(file, sums={d.algorithm: d.value for d in checked})
    return by_path


def require_apart(paths: Iterable[str]) -> None:
    """Raise NotAdmitted when one path is a file and a folder at once (OCFL 1.1 E095)."""
    files = set(paths)
    folders: set[str] = set()
    for path in files:
        above = path.rpartition("/")[0]
        while above and above not in folders:
            if above in files:
                raise NotAdmitted(
                    f"'{shown(above)}' is a file, and '{shown(path)}' takes it for a folder; rename one of them"
                )
            folders.add(above)
            above = above.rpartition("/")[0]


def next_state(before: Mapping[str, str], new: Mapping[str, str], *, merge: bool) -> dict[str, str]:
    """Return the state of the new version."""
    return {**before, **new} if merge else dict(new)
