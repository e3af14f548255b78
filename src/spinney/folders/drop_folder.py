"""The folder of an inbox: what lies there, and the ways of a drop into a job's folder and into ``rejected``.

**Names.** What begins with a dot, ends in ``.part`` or ``.tmp``, or is called ``rejected`` is passed over.
``NAME.ready`` beside NAME says that NAME is whole, and goes with it.

**The way into a job's folder.** A drop is first renamed to ``.spinney-ID`` where it lies (ID: its arrival), so that
nobody who writes the same name anew can meet it half-way, and looked at again. Then it is renamed into the job's
folder. Where that cannot be, as on another file system, it is copied under a hidden name, synced, read back, compared
with the digest in the store and only then given its name; then the original is removed. Every method may be called
again after a crash at any point, and goes on from what it finds on the disk.

**Trust.** Whoever may drop files may also swap them. No link is followed, neither at the end of a path nor on the way
through a dropped folder, and nothing but files and folders is opened.
"""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from spinney.files import trees
from spinney.files.copies import sync_folder, write_all
from spinney.files.paths import shown
from spinney.folders.dropped_files import look_at, opened, owner, raise_error
from spinney.folders.rejected_drops import REJECTED, move_to_rejected
from spinney.model.settings.inboxes import Arrival, Drop, Kind

READY = ".ready"
_PASSED_OVER = (".part", ".tmp", READY)
"""The ends of names that are no drops: files that are still being written, and marks."""
_CHUNK = 1 << 20
"""How many bytes are read at a time; between two reads long work can be stopped."""
_ELSEWHERE = (errno.EXDEV, errno.EACCES, errno.EPERM)
"""Why a rename may fail where a copy works: another file system, or a folder that belongs to somebody else."""


class Stopped(Exception):
    """The node ends: a step that takes long, such as copying a file, raises this to stop."""


class DropFolder:
    """The folder of one inbox. Methods raise OSError where the folder, or the job's, cannot be worked with.
    They block, for as long as files are large and file systems slow, so they are called in threads."""

    def __init__(self, path: Path, stopped: Callable[[], bool] = lambda: False) -> None:
        """``stopped``: whether long work is to end with ``Stopped``."""
        self.path, self._stopped = path, stopped

    # --- reading --------------------------------------------------------------------------

    def problem(self) -> str | None:
        """Return what keeps this process from taking drops out of the folder; None: nothing does."""
        if os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            return None
        return f"{self.path} is not writable for the user of the node, {owner(os.geteuid())}; change its permissions"

    def names(self) -> list[str]:
        """Return the names of what was dropped, as the system has them."""
        return sorted(path.name for path in self.path.iterdir() if not _is_passed_over(path.name))

    def is_ready(self, name: str) -> bool:
        """Return whether a file beside the drop says that the drop is complete. A folder of that name does not: only
        a file can be removed with the drop."""
        try:
            return not stat.S_ISDIR((self.path / (name + READY)).lstat().st_mode)
        except OSError:  # there is none; beside a long name there can be none
            return False

    def look(self, name: str) -> Drop | None:
        """Return what lies under a name in the folder, without reading it; None: it is gone, or changes at this
        moment."""
        try:
            return look_at(self.path / name, name)
        except FileNotFoundError:
            return None

    def hashed(self, name: str, drop: Drop) -> Drop | None:
        """Return the drop with the digest of its bytes, which are on the disk then; None: somebody writes to it, or it
        has changed meanwhile. What cannot be read gets a fault. Raises Stopped."""
        try:
            drop = replace(drop, sha256=self._digest(self.path / name, drop.kind))
        except (BlockingIOError, FileNotFoundError):
            return None
        except PermissionError:
            drop = replace(drop, fault="it cannot be read: its permissions do not let the node read it")
        again = self.look(name)
        return drop if again is not None and again.identity == drop.identity else None

    def _digest(self, path: Path, kind: Kind) -> str:
        """Return the digest of a file or folder, and sync it. Raises BlockingIOError while somebody writes to it."""
        if kind is Kind.FILE:
            with opened(path) as fd:
                return self._digest_of_file(fd)
        lines = []
        for top, _, names, directory in os.fwalk(path, onerror=raise_error, follow_symlinks=False):
            for name in names:
                with opened(name, directory) as fd:
                    lines.append((os.path.relpath(Path(top, name), path), self._digest_of_file(fd)))
            os.fsync(directory)
        digest = hashlib.sha256()
        for below, sha256 in sorted(lines):
            digest.update(f"{sha256}  {below}\n".encode())
        return digest.hexdigest()

    def _digest_of_file(self, fd: int) -> str:
        """Return the SHA-256 of an open file, and sync the file. Raises Stopped."""
        digest = hashlib.sha256()
        while chunk := self._read(fd):
            digest.update(chunk)
        os.fsync(fd)
        return digest.hexdigest()

    def _read(self, fd: int) -> bytes:
        """Return the next bytes of a file; empty at its end. Raises Stopped."""
        if self._stopped():
            raise Stopped
        return os.read(fd, _CHUNK)

    # --- moving -----------------------------------------------------------------------------

    def place(self, arrival: Arrival, folder: Path) -> bool:
        """Move the drop of this arrival into the job's folder, durably, and remove its ``NAME.ready``; return whether
        it is there. False: it was removed or changed before, and stays where it is. Raises Stopped."""
        claimed, target = self._claimed(arrival), folder / arrival.name
        was_there = os.path.lexists(target) or self._has_claim(arrival)
        if not was_there and not self._claim(arrival):
            return False
        self._remove_ready(arrival.name)
        if not os.path.lexists(target) and not self._move(arrival, claimed, target):
            return False
        if was_there and not self._is_whole(arrival, target):
            self._set_aside(arrival)
            shutil.move(target, claimed)  # from where ``reject`` takes it
            return False
        trees.remove(claimed)
        return True

    def reject(self, arrival: Arrival) -> None:
        """Move the drop of this arrival into ``rejected``, with a text beside it that says why. Nothing is moved when
        it is gone or has changed. Raises OSError."""
        source = self._claimed(arrival)
        if not os.path.lexists(source):
            name = self._name_of(arrival)
            if name is None:
                return
            source = self.path / name
            self._remove_ready(name)
        move_to_rejected(self.path, source, arrival)

    def _remove_ready(self, name: str) -> None:
        """Remove the mark that says that a drop is whole."""
        if self.is_ready(name):
            (self.path / (name + READY)).unlink(missing_ok=True)

    def _claimed(self, arrival: Arrival) -> Path:
        """Return the path under which the drop of an arrival is, once it is claimed."""
        return self.path / f".spinney-{arrival.id}"

    def _claim(self, arrival: Arrival) -> bool:
        """Rename what lies there to the name that only this arrival has; False: it is gone or was changed."""
        drop = self.look(arrival.name)
        if drop is None or not _is_of(arrival, drop):
            return False
        claimed = self._claimed(arrival)
        try:
            (self.path / arrival.name).rename(claimed)
        except FileNotFoundError:
            return False
        if not _is_of(arrival, look_at(claimed, arrival.name)):
            self._put_back(arrival)
            return False
        return True

    def _has_claim(self, arrival: Arrival) -> bool:
        """Return whether the arrival was claimed before. Something else may have been planted under its name, which is
        set aside."""
        claimed = self._claimed(arrival)
        if not os.path.lexists(claimed):
            return False
        if _is_of(arrival, look_at(claimed, arrival.name)):
            return True
        self._set_aside(arrival)
        return False

    def _set_aside(self, arrival: Arrival) -> None:
        """Free the name of the claim: a link is removed, and what has bytes gets the name of the drop or, if that is
        taken, is rejected."""
        claimed = self._claimed(arrival)
        if not os.path.lexists(claimed):
            return
        drop = look_at(claimed, arrival.name)
        if drop.kind is Kind.OTHER:
            claimed.unlink()
        elif os.path.lexists(self.path / arrival.name):
            reason = f"it had the name {claimed.name!r}, which only the node may use; give it another name"
            move_to_rejected(self.path, claimed, replace(arrival, owner=drop.owner, reason=reason))
        else:
            self._put_back(arrival)

    def _is_whole(self, arrival: Arrival, target: Path) -> bool:
        """Return whether what is in the job's folder is what arrived, by its bytes."""
        drop = look_at(target, arrival.name)
        if drop.kind is not arrival.kind or drop.fault is not None:
            return False
        return self._digest(target, arrival.kind) == arrival.sha256

    def _put_back(self, arrival: Arrival) -> None:
        """Give a claimed drop its own name again, unless something else has it by now."""
        if not os.path.lexists(self.path / arrival.name):  # else it is rejected, and the new one counts
            self._claimed(arrival).rename(self.path / arrival.name)

    def _name_of(self, arrival: Arrival) -> str | None:
        """Return the name, as the system has it, of the drop of an arrival; None: it is gone or has changed."""
        if self._is_at(arrival, arrival.name):
            return arrival.name
        # Where it had to be escaped, its own name is another. The folder is listed only then, since it may be long, and
        # so may be the list of what is rejected.
        return next(
            (name for name in self.names() if shown(name) == arrival.name and self._is_at(arrival, name)),
            None,
        )

    def _is_at(self, arrival: Arrival, name: str) -> bool:
        """Return whether the drop of an arrival, unchanged, has this name, which may be too long for the system."""
        drop = self.look(name) if os.path.lexists(self.path / name) else None
        return drop is not None and drop.identity == arrival.identity

    def _move(self, arrival: Arrival, claimed: Path, target: Path) -> bool:
        """Move a claimed drop to its place: by a rename where possible, which is durable when this returns,
        else by a copy. Return False as ``_copy`` does."""
        try:
            claimed.rename(target)
        except OSError as error:
            if error.errno not in _ELSEWHERE:
                raise
            return self._copy(arrival, claimed, target)
        sync_folder(target.parent)
        sync_folder(self.path)
        return True

    def _copy(self, arrival: Arrival, claimed: Path, target: Path) -> bool:
        """Copy and compare; False: it was changed since its digest was taken, and is back under its name."""
        draft = target.with_name(claimed.name)
        trees.remove(draft)
        if arrival.kind is Kind.FILE:
            with opened(claimed) as fd:
                self._copy_file(fd, draft)
        else:
            for top, _, files, directory in os.fwalk(claimed, onerror=raise_error, follow_symlinks=False):
                below = draft / os.path.relpath(top, claimed)
                below.mkdir(mode=0o700, exist_ok=True)
                for name in files:
                    with opened(name, directory) as fd:
                        self._copy_file(fd, below / name)
        if self._digest(draft, arrival.kind) != arrival.sha256:
            trees.remove(draft)
            if self._digest(claimed, arrival.kind) == arrival.sha256:
                raise OSError(errno.EIO, "its copy differs from it; see the disk")
            self._put_back(arrival)
            return False
        draft.rename(target)
        sync_folder(target.parent)
        return True

    def _copy_file(self, fd: int, target: Path) -> None:
        """Copy an open file to a new path, with its times, and with no rights for others than the owner.
        Raises Stopped."""
        status = os.fstat(fd)
        with target.open("xb", buffering=0) as copy:
            os.fchmod(copy.fileno(), 0o600 | (status.st_mode & 0o100))
            while chunk := self._read(fd):
                write_all(copy, chunk)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _is_of(arrival: Arrival, drop: Drop) -> bool:
    """Return whether the entry is the file that arrived, as far as can be told without reading it, and may be taken."""
    return drop.fault is None and (drop.kind, drop.identity) == (arrival.kind, arrival.identity)


def _is_passed_over(name: str) -> bool:
    """Return whether what has this name is no drop."""
    return name.startswith(".") or name.endswith(_PASSED_OVER) or name == REJECTED
