"""A storage root in S3; the protocol is in the package's docstring."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from spinney.apps.ingest.storage.model import Busy, Late
from spinney.apps.ingest.storage.place import Claim, Step
from spinney.apps.ingest.storage.s3.bucket import Bucket, connect
from spinney.apps.ingest.storage.s3.s3_put import AT_ONCE, S3Put
from spinney.files.disk_space import NoRoom
from spinney.files.paths import NotAdmitted, shown


class S3Place(Bucket):
    """A prefix of a bucket as a `place.Place`."""

    def __init__(
        self, name: str, prefix: str, endpoint: str | None, region: str | None, on_step: Step
    ) -> None:
        """Connect to the bucket, as `connect` does."""
        super().__init__(connect(name, endpoint, region, AT_ONCE + 2), name, prefix)
        self._on_step = on_step

    def establish(self, documents: Mapping[str, bytes]) -> None:
        """Make an empty prefix a storage root, as `place.Place.establish` says."""
        other = next((entry.path for entry in self.list("") if entry.path not in documents), None)
        if other is not None:
            raise NotAdmitted(
                f"{shown(self.where)} has '{shown(other)}' in it and is no OCFL storage root; name an empty prefix"
            )
        for path, raw in documents.items():
            self.put(path, raw)

    def sizes(self, root: str) -> Callable[[str], int | None]:
        """Return the sizes of the files, as `place.Place.sizes` says, from one listing: a request for each would take
        a hundred times as long."""
        return {entry.path: entry.size_bytes for entry in self.list(root)}.get

    def walk(self, root: str) -> Iterator[str]:
        """Yield the files, as `place.Place.walk` says."""
        return (entry.path for entry in self.list(root))

    @contextmanager
    def begin_put(self, claim: Claim) -> Iterator[S3Put]:
        """Begin a put, as `place.Place.begin_put` says."""
        room = S3Put(self, claim, self._on_step)
        room.claim()
        try:
            yield room
        except (Busy, Late):  # the files there are another writer's
            raise
        except NoRoom as error:
            room.give_up()
            raise NoRoom(
                f"s3://{self.name} has no room ({error}): {room.needed_bytes:,} bytes are needed; make room or "
                f"raise the quota, and it goes on by itself"
            ) from error
        except (NotAdmitted, OSError):
            room.give_up()
            raise
        room.clear()
