"""A put on a file system: built in its staging folder, then moved in by one rename."""

import fcntl
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage import object_reader, sources
from spinney.apps.ingest.storage.layout import OBJECT_DECLARATION, OBJECT_DECLARED
from spinney.apps.ingest.storage.model import Busy, Damaged, Incoming
from spinney.apps.ingest.storage.object_inventory import NAME, Shape
from spinney.apps.ingest.storage.place import Claim, Kept, Loaded, Put, Read, Step
from spinney.files import copies, disk_space, trees
from spinney.files.durable import move_durably, sync_tree
from spinney.files.paths import NotAdmitted, shown

LOCK = "lock"
"""The file in the staging folder that a put has locked."""
CLAIM = "claim.json"
"""The claim in the staging folder of an object: the key and the fence of the put that began last."""


class DiskPut(Put):
    """A put as a `place.Put`. The caller holds the flock from the first to the last call.

    staging/lock, claim.json, partial                 the lock, the claim, and the file that is being copied
    staging/object/<version>/<content>/<digest>       complete contents
    staging/object/…                                  the rest of the version, once it is built
    """

    def __init__(
        self, read: Read, object_root: Path, staging: Path, descriptor: int, claim: Claim, on_step: Step
    ) -> None:
        """``read`` is that of the place; ``descriptor`` is that of a file in ``staging``, opened before anything is
        written there."""
        self._descriptor: int | None = descriptor
        self._read, self._claim, self._on_step = read, claim, on_step
        self._object, self._staging = object_root, staging
        self._build = staging / "object"
        self._partial = staging / "partial"
        self._shape = Shape(version="v1", content="content", algorithm="sha512")
        self._content = self._build
        self._staged: frozenset[str] = frozenset()
        """The digests of the contents that a killed put staged."""
        self.needed_bytes = 0
        """The space for the new contents, once they are known."""

    def claim(self) -> None:
        """Write the claim of this put. Raises Late, and then changes nothing."""
        path = self._staging / CLAIM
        self._claim.refuse_late(path.read_bytes() if path.exists() else None)
        # Not synced: it refuses a late process, and after a power cut there is none.
        beside = self._staging / f"{CLAIM}.new"
        beside.write_bytes(self._claim.document())
        beside.replace(path)
        self._on_step("claimed")

    def newest(self) -> Loaded | None:
        loaded = object_reader.load(self._read, self._claim.root, self._claim.object_id)
        if loaded is None:
            if self._object.exists() and any(self._object.iterdir()):
                raise Damaged(
                    f"the folder of {shown(self._claim.object_id)} has no {NAME} and is not empty; "
                    f"restore it from a copy"
                )
            return None
        ahead = self._object / loaded.inventory.name(loaded.inventory.head + 1)
        if ahead.exists():
            raw = self._finished(ahead, loaded.inventory.algorithm)
        elif loaded.has_sidecar:
            return loaded
        else:
            raw = loaded.document.raw
        trees.remove(self._build)
        self._build.mkdir()
        self._replace_root(raw, loaded.inventory.algorithm)
        return object_reader.load(self._read, self._claim.root, self._claim.object_id)

    def begin(self, shape: Shape) -> None:
        self._shape = shape
        self._content = self._build / shape.version / shape.content
        trees.remove_all_but(self._staging, LOCK, CLAIM, self._build.name)
        self._content.mkdir(parents=True, exist_ok=True)
        trees.remove_all_but(self._build, shape.version)
        trees.remove_all_but(self._content.parent, shape.content)

    def keep(self, files: Sequence[Incoming], have: Collection[str]) -> Iterator[Kept]:
        self._staged = frozenset(path.name for path in self._content.iterdir())
        self.needed_bytes = self._needed(files, have)
        # Rather than fill a disk with an incomplete version.
        disk_space.require(self._staging, self.needed_bytes)
        for file in files:
            yield self._keep(file, have)

    def commit(self, inventory: bytes, contents: Collection[str]) -> None:
        first = not self._object.exists() or not any(self._object.iterdir())
        version = self._content.parent
        trees.remove_all_but(self._content, *contents)
        if not contents:
            self._content.rmdir()  # OCFL 1.1 section 3.3.1, W003 and E024
        self._on_step("content")
        for folder in (version, self._build):
            self._write_inventory(folder, inventory, self._shape.algorithm)
        if first:
            (self._build / OBJECT_DECLARATION).write_bytes(OBJECT_DECLARED)
        sync_tree(self._build, self._descriptor)
        self._on_step("built")
        if first:
            move_durably(self._build, self._object)
            self._on_step("moved")
        else:
            move_durably(version, self._object / version.name)
            self._on_step("moved")
            self._move_root(self._shape.algorithm)

    def forget(self) -> None:
        trees.remove(self._build)

    def clear(self) -> None:
        """Remove the staged files; the lock is left to its holder."""
        trees.remove_all_but(self._staging, LOCK)
        self._on_step("cleared")

    def _finished(self, ahead: Path, algorithm: str) -> bytes:
        """Return the inventory of a version that a killed put moved in and did not declare; its files are synced."""
        root = f"{self._claim.root}/{ahead.name}"
        document = self._read(f"{root}/{NAME}")
        promised = object_reader.sidecar_digest(self._read, root, algorithm)
        if document is None or inventories.sum_of(document.raw, algorithm) != promised:
            raise Damaged(
                f"'{ahead.name}' of {shown(self._claim.object_id)} is beyond its inventory and no put left it so; "
                f"move that folder away, then try again"
            )
        inventories.parse(document.raw, self._claim.object_id)
        return document.raw

    def _needed(self, files: Iterable[Incoming], have: Collection[str]) -> int:
        """Return the space for the new contents in whole blocks."""
        block = os.statvfs(self._staging).f_frsize
        sizes = {file.sums.get(self._shape.algorithm, file.path): file.size_bytes for file in files}
        coming = (n for value, n in sizes.items() if value not in have and value not in self._staged)
        return sum(-(-n // block) * block for n in coming)

    def _keep(self, file: Incoming, have: Collection[str]) -> Kept:
        """Store one content, hashed while it is copied, and name it by its digest.

        The name is given after size and digests were compared. Content that the object has already is copied
        all the same, because it had no digest that would have told, and is then dropped.
        """
        expected = file.sums.get(self._shape.algorithm)
        if expected in self._staged and (kept := self._kept_before(file, expected)) is not None:
            return kept
        sums = sources.sums_for(file, self._shape.algorithm)
        with sources.opened(file) as source:
            size = copies.copy(source, self._partial, sums, sync=False)
        values = sources.compare(file, size, sums.values())
        value = values[self._shape.algorithm]
        added = value not in have
        if added:
            self._partial.replace(self._content / value)
            self._on_step("kept")
        else:
            self._partial.unlink()
        return Kept(digest=value, size_bytes=size, sums=values, added=added)

    def _kept_before(self, file: Incoming, value: str) -> Kept | None:
        """Return the content that a killed put staged if it has the right digest, which a power cut may have
        damaged."""
        staged = self._content / value
        with sources.opened(file):
            pass
        try:
            values = sources.hashed(replace(file, source=staged), self._shape.algorithm)
        except NotAdmitted:
            return None
        self._descriptor = None  # the content was written before the descriptor was opened
        return Kept(digest=value, size_bytes=file.size_bytes, sums=values, added=True)

    def _replace_root(self, raw: bytes, algorithm: str) -> None:
        """Write this inventory as the root's, with its sidecar: what an interrupted put had left to do."""
        self._write_inventory(self._build, raw, algorithm)
        sync_tree(self._build)
        self._move_root(algorithm)

    def _write_inventory(self, folder: Path, raw: bytes, algorithm: str) -> None:
        """Write an inventory and its sidecar into a folder; the caller syncs them."""
        (folder / NAME).write_bytes(raw)
        (folder / f"{NAME}.{algorithm}").write_bytes(inventories.sidecar(raw, algorithm))

    def _move_root(self, algorithm: str) -> None:
        """Replace the root's inventory and then its sidecar, each by a rename; readers accept either order of
        reading them."""
        move_durably(self._build / NAME, self._object / NAME)
        self._on_step("inventory")
        move_durably(self._build / f"{NAME}.{algorithm}", self._object / f"{NAME}.{algorithm}")
        self._on_step("sidecar")


# --- one put of an object at a time ---------------------------------------------------------


@contextmanager
def locked(folder: Path, object_id: str) -> Iterator[int]:
    """Make ``folder`` and lock it, and yield a descriptor of its lock file; an empty folder is removed
    afterwards.

    It does not wait: it raises Busy when another put holds the lock. The lock is of the open file, and the
    kernel releases it when the process dies.
    """
    handle = _hold(folder, object_id)
    try:
        yield handle
    finally:
        if [p.name for p in folder.iterdir()] == [LOCK]:
            _remove_folder(folder)
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _hold(folder: Path, object_id: str) -> int:
    """Return the descriptor of the locked file.

    The previous holder may remove file and folder between the opening and the lock: a lock on a file without
    a name would exclude nobody, so that this begins again.
    """
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # the previous holder has just removed the folder
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise Busy(f"another put of {shown(object_id)} is under way; try again later") from None
        if _is_current(folder / LOCK, handle):
            return handle
        os.close(handle)


def _is_current(path: Path, handle: int) -> bool:
    """Return whether the locked file still has that name: the previous holder may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _remove_folder(folder: Path) -> None:
    """Remove the lock file and the folder, while the lock is still held."""
    (folder / LOCK).unlink()
    # A folder is not empty when another put of this object, or of another, has begun meanwhile.
    with suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()
