"""Files that are being uploaded to inboxes: what has come of each, on the disk, until it is in its job's folder.

An upload is a directory ``.uploads/open/ID`` below the folder root: ``upload.json`` says what is to come, ``bytes`` is
what has come, so that its length is where an interrupted upload goes on, and ``lock`` is locked by whoever works on it.
When the upload is done, the directory is renamed to ``.uploads/done/ID`` and keeps only the answer, for an uploader who
has lost it. The inbox's own folder has no part in this: nodes that look there meet no upload.

Each upload goes through the same steps, and a process that dies in any of them leaves something from which whoever
comes next goes on, be it the uploader, a node or a server (``spinney.folders.upload_steps``):

1. all bytes have come and are on the disk (``write``, ``seal``);
2. the store has its arrival and, in the same transaction, a held job; or the reason why it is rejected;
3. ``place``: one rename brings it into the job's folder;
4. the store releases the job, and ``settle`` keeps the answer.
"""

import fcntl
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Self

import orjson

from spinney.files.copies import sync_folder, write_all, write_durably
from spinney.files.disk_space import is_full
from spinney.folders import folders
from spinney.host.ownership import give_to_owner, make_directory
from spinney.model.errors import DiskFull, NoSuch, Refused, StoreUnavailable, StoreUnusable, UsageError
from spinney.model.settings.inboxes import Upload

UPLOADS = ".uploads"
OPEN_MOST = 100
"""How many uploads one user may have open."""
_META, _BYTES, _LOCK = "upload.json", "bytes", "lock"
_ID = re.compile(r"[0-9a-f]{16}")


class UploadFolder:
    """The uploads below one folder root. Every method raises DiskFull where the disk has no room, and StoreUnusable
    where it does not allow it for another cause."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._open, self._done = root / UPLOADS / "open", root / UPLOADS / "done"

    def begin(self, upload: Upload, *, is_here: bool = False) -> Upload:
        """Return the open upload of the same file, which goes on, or make this one, under a new id. The
        directory is durable then, so that the id can be given out. Raises Refused when the user has
        ``OPEN_MOST`` uploads open.

        ``is_here``: its bytes are on the disk of the root already, so that no further room is needed."""
        own = self.opened_by(upload.by)
        begun = next(filter(upload.is_of_same_file, own), None)
        missing = 0 if is_here else upload.size - (begun.received if begun else 0)
        folders.require_room(self.root, f"{upload.name!r} cannot be taken: ", missing)
        if begun is not None:
            return self.get(begun.id, upload.by)
        if len(own) >= OPEN_MOST:
            raise Refused(
                f"{upload.by} has {OPEN_MOST} uploads open; finish or withdraw some, or wait until the oldest are "
                f"removed"
            )
        upload = replace(upload, id=secrets.token_hex(8))
        place = self._open / upload.id
        with _usable(self.root):
            folders.require_marked(self.root)
            for directory in (self._open.parent, self._open, self._done, place):
                make_directory(directory, like=self.root)
            for file in (place / _LOCK, place / _BYTES):
                file.touch(mode=0o600)
                give_to_owner(file, like=self.root)
            _write(place, upload)
            for directory in (self._open, self._open.parent, self.root):
                sync_folder(directory)
        return upload

    def opened_by(self, by: str) -> list[Upload]:
        """Return the open uploads of this user, by id."""
        uploads = map(_read, _entries(self._open))
        return [upload for upload in uploads if upload and not upload.is_done and upload.by == by]

    def get(self, upload_id: str, by: str) -> Upload:
        """Return an upload of this user as it stands. Raises NoSuch."""
        places = (self._open, self._done) if _ID.fullmatch(upload_id) else ()
        for place in places:
            upload = _read(place / upload_id)
            if upload is not None and upload.by == by:
                return upload
        raise NoSuch(f"{by} has no upload {upload_id[:40]!r}; begin a new one")

    def locked(self, upload_id: str, by: str) -> "OpenUpload | Upload":
        """Return an upload to work on, which is to be closed; or as it stands, when it is done. Raises NoSuch, and
        StoreUnavailable while another request or process works on it."""
        upload = self.get(upload_id, by)
        if upload.is_done:
            return upload
        with _usable(self.root):
            try:
                return OpenUpload(self.root, self._open / upload_id, self._done / upload_id)
            except FileNotFoundError:
                return self.get(upload_id, by)  # it has been done meanwhile
            except BlockingIOError:
                raise StoreUnavailable(
                    f"another request works on the upload of {upload.name!r}; try again in a moment"
                ) from None

    def entries(self) -> Iterator["OpenUpload"]:
        """Yield the open uploads on which nobody works now, locked; each is closed before the next one comes."""
        for place in _entries(self._open):
            with suppress(OSError), OpenUpload(self.root, place, self._done / place.name) as opened:
                yield opened

    def clear(self, *, open_before_s: float, done_before_s: float) -> None:
        """Remove entries that were left before ``open_before_s`` without having become an upload, and the answers of
        uploads that were done before ``done_before_s``. Both are in seconds since 1970."""
        for place in _entries(self._open):
            if _read(place) is None and _changed_s(place) < open_before_s:
                shutil.rmtree(place, ignore_errors=True)
        for place in _entries(self._done):
            if _changed_s(place) < done_before_s:
                shutil.rmtree(place, ignore_errors=True)


class OpenUpload:
    """An upload that this object alone works on until it is closed; leaving ``with`` closes it."""

    def __init__(self, root: Path, place: Path, done: Path) -> None:
        """Raises BlockingIOError when somebody else works on it, FileNotFoundError when it is done or gone."""
        self._root, self._place, self._done = root, place, done
        self._lock = (place / _LOCK).open("r+b")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            upload = _read(place)  # it may have been done before the lock was free
            if upload is None:
                raise FileNotFoundError(place)
        except BaseException:
            self._lock.close()
            raise
        self.upload = upload

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others work on the upload: its lock is released."""
        self._lock.close()

    def require_at(self, offset: int) -> None:
        """Raise Refused unless the next bytes are those from ``offset`` on."""
        if offset != self.upload.received:
            raise Refused(
                f"{self.upload.received} bytes of {self.upload.name!r} have been received, so it cannot "
                f"continue at {offset}; send the bytes after these"
            )

    def write(self, data: bytes) -> None:
        """Append bytes. They are durable only with ``seal``; after a crash fewer may be there, and the
        uploader goes on from ``received``. Raises UsageError for more than were announced, which are not
        kept."""
        if self.upload.received + len(data) > self.upload.size:
            raise UsageError(
                f"more bytes come of {self.upload.name!r} than the {self.upload.size} announced; begin a new upload "
                f"with the size that the file has"
            )
        try:
            with _usable(self._root), (self._place / _BYTES).open("r+b", buffering=0) as file:
                file.seek(self.upload.received)
                write_all(file, data)
        finally:
            self.upload = replace(self.upload, received=_received(self._place, self.upload))

    def adopt(self, file: Path) -> None:
        """Take a whole file of the same file system, in place of what has come."""
        with _usable(self._root):
            file.rename(self._place / _BYTES)
            give_to_owner(self._place / _BYTES, like=self._root)
        self.upload = replace(self.upload, received=_received(self._place, self.upload))

    def seal(self) -> bool:
        """Return whether all bytes are here; they are on the disk then, and ``upload`` has their SHA-256."""
        if self.upload.received < self.upload.size:
            return False
        if self.upload.sha256 is None:
            with _usable(self._root), (self._place / _BYTES).open("rb", buffering=0) as file:
                digest = hashlib.file_digest(file, "sha256")
                os.fsync(file.fileno())
                self._keep(sha256=digest.hexdigest())
        return True

    def place(self, job_id: int) -> None:
        """Rename the file into the job's folder, durably, unless it is there already. It gets the name of the
        upload."""
        folder = folders.make(self._root, job_id)
        with _usable(self._root):
            with suppress(FileNotFoundError):
                (self._place / _BYTES).rename(folder / self.upload.name)
            sync_folder(folder)

    def discard(self) -> None:
        """Remove the upload, which is closed then, with what has come of it. It takes no room on the disk."""
        with _usable(self._root):
            (self._place / _META).unlink()  # the first, so that nobody goes on with what a crash leaves
            shutil.rmtree(self._place)
        self.close()

    def settle(self, job_id: int | None, reason: str | None) -> Upload:
        """Keep the answer, and nothing else of the upload, which is closed then. ``job_id``, ``reason``: the job that
        has its bytes, and why it was rejected; return the upload as it is then."""
        with _usable(self._root):
            self._keep(job_id=job_id, reason=reason)
            (self._place / _BYTES).unlink(missing_ok=True)
            self._place.rename(self._done)
        self.close()
        return self.upload

    def changed_s(self) -> float:
        """Return when bytes came last, in seconds since 1970."""
        return max(_changed_s(self._place), _changed_s(self._place / _BYTES))

    def _keep(self, **fields: str | int | None) -> None:
        """Set fields of the upload, durably."""
        self.upload = replace(self.upload, **fields)  # type: ignore[arg-type]
        _write(self._place, self.upload)


def _entries(folder: Path) -> list[Path]:
    """Return the directories of uploads in this folder, by id; none where the folder is missing. Raises
    StoreUnusable."""
    with _usable(folder):
        try:
            return sorted(place for place in folder.iterdir() if _ID.fullmatch(place.name))
        except FileNotFoundError:
            return []


def _read(place: Path) -> Upload | None:
    """Return the upload there as it stands; None: there is none, or none that this version can read."""
    try:
        upload = Upload(**orjson.loads((place / _META).read_bytes()))
        return replace(upload, received=_received(place, upload))
    except (OSError, TypeError, ValueError):
        return None


def _received(place: Path, upload: Upload) -> int:
    """Return how many bytes have come: the length of the file, while it is here."""
    if upload.sha256 is not None or upload.is_done:
        return upload.received
    return (place / _BYTES).stat().st_size


def _write(place: Path, upload: Upload) -> None:
    """Write what is known of an upload, durably, in place of what was known before."""
    write_durably(place / _META, orjson.dumps(asdict(upload)).decode())
    give_to_owner(place / _META, like=place)


def _changed_s(path: Path) -> float:
    """Return when a path was changed, in seconds since 1970; 0 when it is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@contextmanager
def _usable(place: Path) -> Iterator[None]:
    """Turn an OSError of a step of an upload into DiskFull or StoreUnusable, with what to do."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise DiskFull(
                f"the upload cannot continue: the disk of {place} is full; make room there, and continue it: the "
                f"bytes received are kept"
            ) from error
        raise StoreUnusable(
            f"the upload cannot be kept below {place}: {error.strerror or error}; check that it exists and is writable"
        ) from error
