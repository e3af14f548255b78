"""Job folders: where a job's files live, spread so that no directory grows without bound.

Job 1270 lives in ``00/00/12/000000001270`` below the folder root: at most a hundred entries a
level, ten million jobs without a flat directory. A folder is made when it is first needed and removed by one rename
into ``.trash``: a crash leaves either the whole folder or something in ``.trash``, which ``empty_trash`` clears at the
next start.

Every node of a store must see the same root: ``init`` writes a token into it, a node compares. Where folders are
local, each node has a root on its own host: it writes the token itself, and a mark, by which the root is known.
"""

import contextlib
import logging
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from spinney.files import trees
from spinney.files.copies import sync_folder, sync_together
from spinney.files.disk_space import is_full
from spinney.files.durable import place_durably
from spinney.host.ownership import give_to_owner, make_directory
from spinney.model.errors import DiskFull, StoreUnusable
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.values.paths import HOME_MARK, ROOT_TOKEN, job_folder
from spinney.model.values.paths import OWN as OWN

log = logging.getLogger(__name__)

TRASH = ".trash"
"""The directory in the folder root to which folders are renamed before they are deleted: a rename is atomic, whereas
deleting a tree of files takes long and may be interrupted."""
TOKEN = ROOT_TOKEN
FINGERPRINT_FILE = HOME_MARK

LEAST_ROOM_BYTES = 1024**2
"""With less than this the disk counts as full: the engine's own files of a job (its output, the parameters of a
program) need some room, and a job that finds none would fail for a cause that is not its own."""
_DIRECTORY_MODE = 0o700
_NUMBER = re.compile(r"[0-9]{2,12}")
"""Names of the directories of a level (two digits) and of jobs' folders (twelve)."""
_undeletable: set[Path] = set()
"""What stays in the trash and has been logged."""


LEVELS = 3
"""Directories between the root and a job's folder."""


def path(root: Path, job_id: int) -> Path:
    """Return the path of the job's folder, whether it exists or not. It follows from the id alone, so that no folder
    has to be recorded or searched."""
    return root / job_folder(job_id)


def make(root: Path, job_id: int) -> Path:
    """Return the folder of this job; make it, and its name durable, when it is missing. Two processes may do
    so at once.

    Raises DiskFull; StoreUnusable when the root is missing, not marked or read-only, or when a part of the
    path is no directory."""
    folder = path(root, job_id)
    try:
        if _is_directory(folder):
            return folder
        require_marked(root)
        _make_below(root, folder)
    except OSError as error:
        raise unusable(
            root, error, f"cannot make the folder {folder} of job {job_id}", f"see that {root} exists"
        ) from error
    return folder


def highest_job(root: Path) -> int:
    """Return the highest number of a job whose folder is here; 0: there is none. It is the first number of
    its group where the folders of the highest group are removed already, so that one directory a level is
    read.

    A node compares it with the store at its start: a store that was restored from an older backup would give
    out numbers again whose folders are still here."""
    return _highest_below(root, 0, 0)


def _highest_below(directory: Path, prefix: int, depth: int) -> int:
    """Return the highest number of a job below a directory; 0: there is none. ``prefix``: the number that the
    names of the ``depth`` levels above make together."""
    try:
        with os.scandir(directory) as entries:
            names = {
                int(entry.name): entry.name
                for entry in entries
                if _NUMBER.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            }
    except OSError:  # a directory of another user; a job that needs it fails with what to do
        names = {}
    if depth == LEVELS:
        return max((job_id for job_id in names if job_id // 100 == prefix), default=prefix * 100)
    for number in sorted(names, reverse=True):
        highest = _highest_below(directory / names[number], prefix * 100 + number, depth + 1)
        if 0 < highest <= JOB_ID_MAX:  # else it is a directory that somebody else has put there
            return highest
    return 0


def write_problem(root: Path) -> str | None:
    """Return what keeps jobs from writing below this root, as part of a sentence; None: no problem was detected."""
    try:
        require_room(root, "")
    except StoreUnusable as error:
        return str(error)
    return None


def require_room(root: Path, prefix: str, needed_bytes: int = 0) -> None:
    """Raise DiskFull unless the disk of this root has room for so many bytes, and StoreUnusable for a root that cannot
    be reached or written to. ``prefix``: the beginning of the message, which says what cannot be done."""
    try:
        disk = os.statvfs(root)
    except OSError as error:
        raise StoreUnusable(
            f"{prefix}the folder root {root} cannot be reached: {error.strerror or error}; mount it again"
        ) from error
    if not os.access(root, os.W_OK):
        why = "is read-only" if disk.f_flag & os.ST_RDONLY else "does not let this user write"
        raise StoreUnusable(f"{prefix}the folder root {root} {why}; make it writable")
    free = disk.f_bavail * disk.f_frsize
    if free < LEAST_ROOM_BYTES:
        raise _full(root, prefix)
    if free < LEAST_ROOM_BYTES + needed_bytes:
        raise DiskFull(
            f"{prefix}{needed_bytes:,} bytes are to come, and the disk of the folder root {root} has room for "
            f"{free - LEAST_ROOM_BYTES:,}; make room there, 'spinney keep' says how"
        )
    if disk.f_files and not disk.f_favail:
        raise DiskFull(
            f"{prefix}the disk of the folder root {root} has no room for more files; remove some, "
            "'spinney keep' says how"
        )


def unusable(root: Path, error: OSError, failure: str, remedy: str = "check that it exists") -> StoreUnusable:
    """Return the error for a failed write below this root: DiskFull, or one that says what to look at. ``failure``: the
    beginning of the message, which says what cannot be done."""
    if is_full(error):
        return _full(root, f"{failure}: ")
    return StoreUnusable(f"{failure}: {error.strerror or error}; {remedy} and is writable")


def _full(root: Path, prefix: str) -> DiskFull:
    """Return the error for a disk without room."""
    return DiskFull(
        f"{prefix}the disk of the folder root {root} is full; make room there, 'spinney keep' says how"
    )


def remove(root: Path, job_id: int) -> None:
    """Remove the folder of this job with its contents. Idempotent, and two processes may do so at once: the
    rename into the trash succeeds for one of them.

    Raises StoreUnusable when the root is missing or not marked, or the folder cannot be moved to the trash;
    nothing is lost then."""
    folder = path(root, job_id)
    trash = root / TRASH
    try:
        require_marked(root)
        make_directory(trash, like=root)
        grave = trash / f"{folder.name}.{os.getpid()}.{os.urandom(4).hex()}"
        folder.rename(grave)
        sync_folder(folder.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        places = (place for place in (trash, folder.parent) if os.path.exists(place))  # noqa: PTH110
        refusing = next(
            (place for place in places if not os.access(place, os.W_OK, effective_ids=True)), root
        )
        raise StoreUnusable(
            f"cannot remove the folder {folder} of job {job_id}: {error.strerror or error}; "
            f"see that {refusing} is writable and try again"
        ) from error
    _delete(grave)


def remove_each(
    root: Path, job_ids: Iterable[int], on_failure: Callable[[int, StoreUnusable], None]
) -> list[int]:
    """Remove the folders of these jobs; return the jobs whose folder is removed now. Each other job is passed to
    ``on_failure`` with the error: one folder that cannot be removed does not keep the others."""
    removed = []
    for job_id in job_ids:
        try:
            remove(root, job_id)
        except StoreUnusable as error:
            on_failure(job_id, error)
        else:
            removed.append(job_id)
    return removed


def empty_trash(root: Path) -> int:
    """Finish removals that a crash interrupted; return how many entries the trash still had. Two nodes may do so at the
    same time: an entry that is gone already is no error. A trash that cannot be read is logged, and waits for the next
    start."""
    try:
        entries = list((root / TRASH).iterdir())
    except FileNotFoundError:
        return 0
    except OSError as error:
        log.warning("cannot read %s: %s; what is in it stays until the next start", root / TRASH, error)
        return 0
    for entry in entries:
        _delete(entry)
    return len(entries)


def write_token(root: Path, token: str) -> None:
    """Mark this root as the store's, durably. Raises StoreUnusable when it has another store's token.

    The token is random and is made with the store. It detects the usual mistakes with shared folders: a share that is
    not mounted (an empty directory has no token), and the share of another cluster (it has another token)."""
    try:
        root.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        present = _read(root / TOKEN)
        if present == token:
            return
        if present is not None:
            raise StoreUnusable(
                f"{root} is the folder root of another store; choose another folder for this one"
            )
        place_durably(root / TOKEN, f"{token}\n".encode())
    except OSError as error:
        raise StoreUnusable(
            f"cannot use {root} as folder root: {error.strerror or error}; name a folder that can be written"
        ) from error


def fingerprint(root: Path, *, make: bool) -> str | None:
    """Return the mark of this root; None: it has none, and ``make`` is false. It is random text, by which a
    store knows the root of a host again wherever it is mounted. Nodes that start at the same time agree on
    one. Raises StoreUnusable."""
    file = root / FINGERPRINT_FILE
    try:
        mark = _read(file)
        if mark is None and make:
            draft = root / f"{FINGERPRINT_FILE}.{os.getpid()}.{os.urandom(4).hex()}"
            draft.write_text(os.urandom(16).hex() + "\n")
            sync_together([draft])
            with contextlib.suppress(FileExistsError):
                os.link(draft, file)  # as a rename, but it replaces no other's
            draft.unlink()
            sync_folder(root)
            mark = _read(file)
    except OSError as error:
        raise StoreUnusable(
            f"cannot mark the folder root {root}: {error.strerror or error}; name a folder on a local disk that can be "
            f"written"
        ) from error
    return mark


def check_token(root: Path, token: str) -> None:
    """Raise StoreUnusable unless this root is the one that the store's ``init`` marked."""
    try:
        present = _read(root / TOKEN)
    except OSError as error:
        raise StoreUnusable(
            f"cannot read the folder root {root}: {error.strerror or error}; "
            f"check its permissions and its disk, or name the right folder"
        ) from error
    if present is None:
        raise _unmarked(root)
    if present != token:
        raise StoreUnusable(
            f"{root} is the folder root of another store; name the folder that 'spinney init' "
            f"printed for this one"
        )


def is_marked(root: Path) -> bool:
    """Return whether this is the folder root of some store. Raises OSError when it cannot be read."""
    return (root / TOKEN).exists()


def require_marked(root: Path) -> None:
    """Raise StoreUnusable for a root without a token, such as the mount point of a share that is not mounted: files in
    it would be lost. Raises OSError when it cannot be read."""
    if not is_marked(root):
        raise _unmarked(root)


def _unmarked(root: Path) -> StoreUnusable:
    """Return the error for a root without a token."""
    return StoreUnusable(
        f"{root} is not the folder root of this store (it has no token); "
        f"mount the shared folder there, name the right one (folders in spinney.toml), or run 'spinney init' if the "
        f"store is new"
    )


def _read(file: Path) -> str | None:
    """Return the text of a small file without blanks around it; None: there is no such file."""
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return None


def _make_below(root: Path, folder: Path) -> None:
    """Make each level, and sync its parent so that a power failure cannot remove a recorded folder."""
    level = root
    for part in folder.relative_to(root).parts:
        parent, level = level, level / part
        try:
            level.mkdir(mode=_DIRECTORY_MODE)
        except FileExistsError:
            if not _is_directory(level):
                raise
            continue
        give_to_owner(level, like=root)
        sync_folder(parent)


def _is_directory(place: Path) -> bool:
    """Return whether the path is a directory itself; a link to one would lead out of the root."""
    try:
        return stat.S_ISDIR(place.lstat().st_mode)
    except FileNotFoundError:
        return False


def _delete(entry: Path) -> None:
    """Delete a file or a tree; directories without write permission are made writable first.

    What cannot be deleted, as files in a directory of another user, stays and is logged once: it must neither end the
    node nor keep what else is in the trash."""
    try:
        trees.remove(entry)
    except OSError as error:
        if os.path.lexists(entry) and entry not in _undeletable:
            _undeletable.add(entry)
            log.warning("%s cannot be deleted by this node and stays (%s); remove it by hand", entry, error)
