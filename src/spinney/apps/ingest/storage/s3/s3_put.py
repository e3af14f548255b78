"""A put in S3: content first, then the inventories, that of the root last, which makes the version count."""

import io
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar, cast

from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage import object_reader, sources
from spinney.apps.ingest.storage.layout import OBJECT_DECLARATION, OBJECT_DECLARED, STAGING, staging
from spinney.apps.ingest.storage.model import Busy, Incoming
from spinney.apps.ingest.storage.object_inventory import NAME, Shape
from spinney.apps.ingest.storage.place import Claim, Kept, Loaded, Put, Step
from spinney.apps.ingest.storage.s3.bucket import Bucket, Listed, Overtaken
from spinney.files.paths import shown

AT_ONCE = 8
"""How many files are uploaded at the same time."""
PART_BYTES = 8 << 20
"""A file that is no larger is uploaded in one request from memory; at most AT_ONCE times this is in memory."""
PARTS_MAX = 9_000
"""The maximum number of parts (S3 allows 10,000); a file beyond 72 GB gets larger parts."""

_T = TypeVar("_T")
_R = TypeVar("_R")


class S3Put(Put):
    """A `place.Put` in S3, where conditional writes let one writer win."""

    def __init__(self, bucket: Bucket, claim: Claim, on_step: Step) -> None:
        self._bucket, self._claim, self._on_step = bucket, claim, on_step
        self._path = f"{STAGING}/{staging(claim.object_id)}/claim.json"
        self._tag = ""
        self._root_tag: str | None = None
        self._shape: Shape | None = None
        self._existing: dict[str, Listed] = {}
        # Parts of one large file at a time: they are held in memory, and may be large ones.
        self._large = Lock()
        self.needed_bytes = 0
        """The size of the files, once they are known; some may be stored already."""

    def claim(self) -> None:
        """Write the claim of this put. Raises Late, or Busy when another put does so at the same time."""
        before = self._bucket.read(self._path)
        self._claim.refuse_late(before.raw if before else None)
        try:
            self._tag = self._bucket.put(
                self._path, self._claim.document(), tag=before.tag if before else None, fresh=before is None
            )
        except Overtaken:
            raise self._busy() from None
        self._on_step("claimed")

    def newest(self) -> Loaded | None:
        loaded = object_reader.load(self._bucket.read, self._claim.root, self._claim.object_id)
        if loaded is None:
            return None
        self._root_tag = loaded.document.tag
        if not loaded.has_sidecar:
            self._put_sidecar("", loaded.document.raw, loaded.inventory.algorithm)
        return loaded

    def begin(self, shape: Shape) -> None:
        self._shape = shape
        self._existing = {entry.path: entry for entry in self._bucket.list(self._below(shape.version))}
        self._bucket.abandon_uploads(self._below(shape.version))

    def keep(self, files: Sequence[Incoming], have: Collection[str]) -> Iterator[Kept]:
        self.needed_bytes = sum(file.size_bytes for file in files)
        return _ahead(lambda file: self._keep(file, have), files)

    def commit(self, inventory: bytes, contents: Collection[str]) -> None:
        shape = self._planned()
        self._on_step("content")
        existing = self._existing.get(NAME)
        self._put_once(f"{shape.version}/{NAME}", inventory, existing.tag if existing else None)
        self._put_sidecar(f"{shape.version}/", inventory, shape.algorithm)
        self._on_step("built")
        astray = self._astray(shape, contents)
        if self._root_tag is None:
            self._bucket.put(self._below(OBJECT_DECLARATION), OBJECT_DECLARED)
            self._on_step("declared")
        # From here nothing of this version may be removed again: when the next request fails, it is unknown
        # whether the service has carried it out.
        self._shape = None
        self._put_once(NAME, inventory, self._root_tag)
        self._on_step("inventory")
        self._put_sidecar("", inventory, shape.algorithm)
        self._on_step("sidecar")
        self._bucket.delete(astray)
        self._on_step("swept")

    def forget(self) -> None:
        if self._shape is None or not self._holds_claim():
            return
        version = self._below(self._shape.version)
        self._bucket.delete([f"{version}/{entry.path}" for entry in self._bucket.list(version)])
        if self._root_tag is None:
            self._bucket.delete([self._below(OBJECT_DECLARATION)])

    def give_up(self) -> None:
        """Remove the contents that were kept as far as the service allows; the next put removes the rest."""
        with suppress(OSError):
            self.forget()
            self.clear()

    def clear(self) -> None:
        """Remove the claim, unless another put has taken it over."""
        if self._holds_claim():
            self._bucket.delete([self._path])
        self._on_step("cleared")

    def _keep(self, file: Incoming, have: Collection[str]) -> Kept:
        """Store one content under its digest, if the object does not have it. Called in several threads at
        once."""
        if file.size_bytes <= PART_BYTES:
            return self._keep_small(file, have)
        algorithm = self._planned().algorithm
        value = file.sums.get(algorithm)
        if value is None or self._has(value, file.size_bytes):
            # The digest is the name, needed before the first byte is uploaded; a killed put's content is reused.
            sums = sources.hashed(file, algorithm)
            value = sums[algorithm]
            if value in have or self._has(value, file.size_bytes):
                return Kept(digest=value, size_bytes=file.size_bytes, sums=sums, added=value not in have)
        with self._large:
            sums = self._upload(file, value)
        return Kept(digest=value, size_bytes=file.size_bytes, sums=sums, added=True)

    def _keep_small(self, file: Incoming, have: Collection[str]) -> Kept:
        """Store a content that fits into memory: it is hashed before it is sent, in one request."""
        algorithm = self._planned().algorithm
        sums = sources.sums_for(file, algorithm)
        with sources.opened(file) as source:
            raw = source.read()
        sums.update(raw)
        values = sources.compare(file, len(raw), sums.values())
        value = values[algorithm]
        if value not in have and not self._has(value, len(raw)):
            self._bucket.put(self._content(value), raw, sha256=values.get("sha256"))
        self._on_step("kept")
        return Kept(digest=value, size_bytes=len(raw), sums=values, added=value not in have)

    def _upload(self, file: Incoming, value: str) -> dict[str, str]:
        """Upload a file in parts under its expected digest; the upload is completed only if the digest is right."""
        algorithm = self._planned().algorithm
        promised = replace(file, sums={**file.sums, algorithm: value})
        sums = sources.sums_for(promised, algorithm)
        length = max(PART_BYTES, -(-file.size_bytes // PARTS_MAX))

        def parts() -> Iterator[bytes]:
            size = 0
            with sources.opened(promised) as raw, io.BufferedReader(cast(Any, raw), length) as source:
                while part := source.read(length):
                    sums.update(part)
                    size += len(part)
                    yield part
                    self._on_step("part")
            sources.compare(promised, size, sums.values())

        self._bucket.put_parts(self._content(value), parts())
        return sums.values()

    def _has(self, value: str, size: int) -> bool:
        """Return whether a killed put left the content, complete: an object of that name and size."""
        existing = self._existing.get(f"{self._planned().content}/{value}")
        return existing is not None and existing.size_bytes == size

    def _astray(self, shape: Shape, contents: Collection[str]) -> list[str]:
        """Return the files that a killed put left in the version. Raises Busy when a file of the version is missing."""
        belongs = {f"{shape.content}/{value}" for value in contents}
        existing = {entry.path for entry in self._bucket.list(self._below(shape.version))}
        if not belongs <= existing:
            raise self._busy()
        expected = belongs | {NAME, f"{NAME}.{shape.algorithm}"}
        return [self._below(f"{shape.version}/{path}") for path in existing - expected]

    def _put_once(self, path: str, raw: bytes, tag: str | None) -> None:
        """Write a document over the state with this tag (None: over none). Raises Busy when another put has
        changed it."""
        try:
            self._bucket.put(self._below(path), raw, tag=tag, fresh=tag is None)
        except Overtaken:
            # A request whose answer was lost is sent again by the client, and then finds its own result.
            document = self._bucket.read(self._below(path))
            if document is None or document.raw != raw:
                raise self._busy() from None

    def _put_sidecar(self, folder: str, raw: bytes, algorithm: str) -> None:
        self._bucket.put(self._below(f"{folder}{NAME}.{algorithm}"), inventories.sidecar(raw, algorithm))

    def _holds_claim(self) -> bool:
        """Return whether the claim is still that of this put."""
        claim = self._bucket.read(self._path)
        return claim is not None and claim.tag == self._tag

    def _content(self, value: str) -> str:
        shape = self._planned()
        return self._below(f"{shape.version}/{shape.content}/{value}")

    def _planned(self) -> Shape:
        """Return the shape of the version that has been begun. Raises RuntimeError, an error of the caller,
        without one."""
        if self._shape is None:
            raise RuntimeError("a put keeps and commits after it has begun a version; call begin() first")
        return self._shape

    def _below(self, path: str) -> str:
        return f"{self._claim.root}/{path}"

    def _busy(self) -> Busy:
        return Busy(f"another put of {shown(self._claim.object_id)} came first; try again later")


def _ahead(act: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
    """Call ``act`` on each item, several at once, and yield the results in order; few items are read ahead."""
    under_way: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="spinney-s3") as pool:
        try:
            for item in items:
                if len(under_way) >= AT_ONCE:
                    yield under_way.popleft().result()
                under_way.append(pool.submit(act, item))
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()
