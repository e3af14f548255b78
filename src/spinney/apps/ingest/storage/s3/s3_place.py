"""A storage root in S3; the protocol is in the package's docstring."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from spinney.apps.ingest.storage.layout import ROOT_DECLARATION, Layout, documents, read_layout
from spinney.apps.ingest.storage.model import Busy, Late, NoSuchObject, NotThere
from spinney.apps.ingest.storage.place import Claim, Document, Place, Step
from spinney.apps.ingest.storage.s3.bucket import Bucket, connect
from spinney.apps.ingest.storage.s3.s3_put import AT_ONCE, S3Put
from spinney.files.disk_space import NoRoom
from spinney.files.paths import NotAdmitted, shown


class S3Place:
    """A prefix of a bucket as a `place.Place`."""

    __slots__ = ("_bucket", "_on_step")

    def __init__(self, bucket: Bucket, on_step: Step) -> None:
        self._bucket, self._on_step = bucket, on_step

    def read(self, path: str) -> Document | None:
        """See `place.Place.read`."""
        return self._bucket.get(path)

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """See `place.Place.opened`."""
        with self._bucket.stream(path) as file:
            if file is None:
                raise NoSuchObject(f"'{shown(path)}' is not in the storage; restore it from a copy")
            yield file

    def url(self, path: str) -> str:
        """See `place.Place.url`."""
        return self._bucket.url(path)

    def sizes(self, root: str) -> Callable[[str], int | None]:
        """See `place.Place.sizes`: one listing, since a request for each file would take a hundred times as long."""
        return {entry.path: entry.size_bytes for entry in self._bucket.list(root)}.get

    def walk(self, root: str) -> Iterator[str]:
        """See `place.Place.walk`."""
        return (entry.path for entry in self._bucket.list(root))

    @contextmanager
    def begin_put(self, claim: Claim) -> Iterator[S3Put]:
        """See `place.Place.begin_put`."""
        room = S3Put(self, self._bucket, claim, self._on_step)
        room.claim()
        try:
            yield room
        except (Busy, Late):  # the files there are another writer's
            raise
        except NoRoom as error:
            room.give_up()
            raise NoRoom(
                f"s3://{self._bucket.name} has no room ({error}): {room.needed_bytes:,} bytes are needed; make room or "
                f"raise the quota, and it goes on by itself"
            ) from error
        except (NotAdmitted, OSError):
            room.give_up()
            raise
        room.clear()


def open_s3(
    name: str, prefix: str, endpoint: str | None, region: str | None, make: bool, on_step: Step
) -> tuple[Place, Layout]:
    """Open the place at ``prefix``; ``make`` makes it a storage root when it is empty. Raises NotAdmitted, NotThere,
    OSError."""
    bucket = connect(name, prefix, endpoint, region, AT_ONCE + 2)
    where = f"s3://{name}/{prefix}"
    if bucket.get(ROOT_DECLARATION) is None:
        if not make:
            raise NotThere(f"{shown(where)} is no storage root now; correct the URL, or make one there first")
        _establish(bucket, where)
    return S3Place(bucket, on_step), read_layout(bucket.get, where)


def _establish(bucket: Bucket, where: str) -> None:
    """Make an empty prefix a storage root: its documents are written, the declaration last."""
    plan = documents()
    other = next((entry.path for entry in bucket.list("") if entry.path not in plan), None)
    if other is not None:
        raise NotAdmitted(
            f"{shown(where)} has '{shown(other)}' in it and is no OCFL storage root; name an empty prefix"
        )
    for path, raw in plan.items():
        bucket.put(path, raw)
