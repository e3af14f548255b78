"""Files that arrive: taken apart, checked, and stored by receiver.

Each step may be repeated after a kill: a folder is filled anew, a file that is stored already is not stored again.
Archives come from people, so they are unpacked within limits (``spinney.containers``), and nothing follows a link."""

import fcntl
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson

from spinney.apps.receivers.database.receiver_database import sha256_of
from spinney.apps.receivers.detection import contents
from spinney.apps.receivers.detection.source_files import source_file
from spinney.containers import Limits, Meter, unpack
from spinney.containers.formats import kind_of_name
from spinney.files import copies
from spinney.files.paths import NotAdmitted, shown

DEPTH = 3
"""Archives within archives are taken apart down to here; deeper ones stay files, and are put aside for their
names."""


class BadFile(NamedTuple):
    """A file that is put aside."""

    path: str
    """Below the folder of what arrived; what cannot be printed in it is escaped."""
    reason: str
    """Half a sentence for the uploader."""


def copy_files(source: Path, into: Path) -> None:
    """Copy a file, or the files below a folder, into a new folder, with their times. Hidden files, links, and
    what is neither file nor folder are not copied. Raises OSError, also where ``into`` exists."""
    into.mkdir(parents=True)
    for path in _files(source) if source.is_dir() else [source]:
        target = into / (path.relative_to(source) if path != source else path.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def take_apart(
    source: Path, into: Path, limits: Limits, between: Callable[[int], None], *, leave_out: Path | None = None
) -> list[BadFile]:
    """Fill a new folder with the files of a folder: what archives contain, and all others as they are. Return
    the archives that are refused or damaged, with the reasons; nothing of them is kept.

    An archive ``a.zip`` becomes a folder ``a.zip.d``. Hidden files, and those below ``leave_out``, are not
    taken. An archive and those in it share the limits. ``between`` is called again and again with a number of
    bytes, so that a long unpacking can be ended by what it raises.

    Raises OSError, also where the disk is full. After any error the new folder has been removed."""
    bad: list[BadFile] = []

    def place(path: Path, target: Path, name: Path, depth: int = 0, meter: Meter | None = None) -> None:
        """Take over one file into its place, or unpack an archive there, and the archives in it. ``name``: its
        path below what arrived, for people. ``depth``: how many archives it is in; a file within one is there
        already. ``meter``: what the archive around it has used of the limits."""
        if kind_of_name(path.name) is None or depth >= DEPTH:
            target.parent.mkdir(parents=True, exist_ok=True)
            if depth == 0:
                _link_or_copy(path, target)
            between(path.stat().st_size)
            return
        folder = _free_folder(path, target)
        meter = meter or Meter(limits, container_bytes=path.stat().st_size, into=folder)
        try:
            unpack(path, folder, name=path.name, limits=limits, meter=meter, between=between)
        except NotAdmitted as error:
            bad.append(BadFile(shown(str(name)), str(error)))
            return
        for inner in list(_files(folder)):
            if kind_of_name(inner.name) is not None and depth + 1 < DEPTH:
                place(inner, inner, name / inner.relative_to(folder), depth + 1, meter)
                inner.unlink()

    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    try:
        for path in _files(source):
            if leave_out is None or not path.is_relative_to(leave_out):
                name = path.relative_to(source)
                place(path, into / name, name)
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)
        raise
    return bad


def _free_folder(path: Path, target: Path) -> Path:
    """Return the folder for what is in an archive: its name with ``.d``, and a number where that is taken.
    Nothing has its name yet, nor will get it from the folder that the archive is in."""
    names = (f"{target.name}.d{number or ''}" for number in itertools.count())
    return next(
        target.with_name(name)
        for name in names
        if not any(os.path.lexists(each.with_name(name)) for each in (path, target))
    )


def put_aside(folder: Path, aside: Path, listed: Path) -> None:
    """Move files that cannot be raw files from a folder into another, ``aside``. Each gets a line in the file
    ``listed``, a JSON list of its path and the reason, before it is moved, so that an attempt that is
    repeated has them all; a line may then stand there twice. One that a full disk has cut off is removed: its file has
    not been moved. Raises OSError."""
    with listed.open("a+b") as lines:
        lines.seek(0)
        lines.truncate(lines.read().rfind(b"\n") + 1)
        for path in list(_files(folder)):
            reason = _fault(path)
            if reason is not None:
                name = path.relative_to(folder)
                lines.write(orjson.dumps([shown(str(name)), reason]) + b"\n")
                lines.flush()
                target = aside / name
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)


def _fault(path: Path) -> str | None:
    """Return why a file cannot be used; None for a good one. Its whole content is read, since a gzip file shows only
    then whether it is whole, and one of nothing but zeros has the right name and length."""
    if source_file(path) is None:
        return "its name is not that of a raw file of a receiver"
    if path.stat().st_size == 0:
        return "it is empty"
    try:
        with contents.opened(path) as file:
            content = False
            while piece := file.read(contents.CHUNK_BYTES):
                content = content or piece.count(0) < len(piece)
    except contents.DAMAGES as error:
        return f"it is a damaged gzip file ({error})"
    return None if content else "it has nothing but zeros"


def store(folder: Path, destination: Callable[[str], Path]) -> dict[str, list[str]]:
    """Copy the raw files of a folder to where those of their receivers are kept, and return the paths by
    receiver, both in order. All copies are durable at the return.

    ``destination`` returns the folder of a receiver, in which each boot session has its own. A file that is
    there with the same content stays as it is; one with another content and the same name is stored beside
    it, in a folder named after the content. Files whose names are no raw file's are passed over. Several
    processes may store at once. Raises OSError."""
    by_receiver: dict[str, list[str]] = {}
    written: list[Path] = []
    folders: set[Path] = set()
    for path in _files(folder):
        source = source_file(path)
        if source is None:
            continue
        own = destination(source.receiver)
        session = own / f"{source.session:06d}"
        target = session / path.name
        # The digest decides, since a damaged copy may have the same name and size.
        with _locked(own):
            if target.exists() and sha256_of(target) != sha256_of(path):
                target = session / sha256_of(path)[:16] / path.name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                copies.copy_atomically(path, target)
                written.append(target)
        # Also where the file was there: an attempt that was killed may have copied it without syncing its name.
        folders |= {target.parent, session, own, own.parent}
        by_receiver.setdefault(source.receiver, []).append(str(target))
    copies.sync_together([*written, *folders])
    return {receiver: sorted(paths) for receiver, paths in sorted(by_receiver.items())}


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, which is made where it is missing: two uploads may bring different files of one name. The lock
    ends with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _files(folder: Path) -> Iterator[Path]:
    """Yield the plain files below a folder, in order, without hidden ones and what links lead to."""
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(directory, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _link_or_copy(path: Path, target: Path) -> None:
    """Give a file a second name, which takes no space, or copy it where the file system cannot."""
    try:
        # Both names have one content from here on, so nothing may write into either; all steps move or copy.
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
