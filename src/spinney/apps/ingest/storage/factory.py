"""Opens the storage that a target names."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spinney.apps.ingest.storage.disk.disk_place import DiskPlace
from spinney.apps.ingest.storage.layout import ROOT_DECLARATION, documents, read_layout
from spinney.apps.ingest.storage.model import NotThere
from spinney.apps.ingest.storage.object_inventory import ADDRESSING
from spinney.apps.ingest.storage.ocfl import Storage
from spinney.apps.ingest.storage.place import Place, Step
from spinney.files.paths import NotAdmitted, relative, shown


def open_storage(
    target: str | Path,
    *,
    algorithm: str = "sha512",
    endpoint: str | None = None,
    region: str | None = None,
    make: bool = True,
    on_step: Step = lambda step: None,
) -> Storage:
    """Open the storage root at ``target``; a place that is empty or does not exist (a bucket has to) is made one.

    ``make`` False prevents that: an empty folder may be a disk that is not mounted, and a new archive in its place
    would receive the versions that belong into the old one.

    ``target``: an absolute path, ``file:///archive`` or ``s3://bucket/prefix``. ``algorithm`` (sha512, sha256)
    addresses the content of objects that are new. ``endpoint`` and ``region`` are for S3; credentials come from where
    AWS's own tools find them (environment, profile, role) and from nowhere else. ``on_step`` is called after each step
    of a put.

    Raises NotAdmitted for an invalid target, NotThere, OSError when the system or the service fails.
    """
    if algorithm not in ADDRESSING:
        raise NotAdmitted(f"content cannot be addressed by '{shown(algorithm)}'; choose sha512 or sha256")
    where = location(str(target))
    place = _place(where, endpoint, region, on_step)
    if place.read(ROOT_DECLARATION) is None:
        if not make:
            # A root made in the mount point of a disk that is not mounted would get what belongs into the archive, and
            # be hidden with it as soon as the disk is mounted.
            remedy = "mount its disk" if isinstance(where, Path) else "make one there first"
            raise NotThere(f"{shown(place.where)} is no storage root now; {remedy}, or correct its URL")
        place.establish(documents())
    return Storage(place, read_layout(place.read, place.where), algorithm)


def _place(where: "Path | BucketPrefix", endpoint: str | None, region: str | None, on_step: Step) -> Place:
    """Return the place at a location. Raises NotAdmitted, and NotThere for a bucket that does not exist."""
    if isinstance(where, Path):
        if not where.is_absolute() or "\0" in str(where):
            raise NotAdmitted(f"the storage '{shown(str(where))}' is not absolute; give the complete path")
        return DiskPlace(where, on_step)
    if endpoint is not None and "@" in urlsplit(endpoint).netloc:
        raise NotAdmitted("the endpoint of an S3 storage has credentials in it; set them in the environment")
    try:
        # Loaded here: a storage on a file system needs no botocore.
        from spinney.apps.ingest.storage.s3.s3_place import S3Place
    except ImportError as error:
        raise NotAdmitted(
            f"an s3: storage needs botocore ({error}); install spinney with its s3 extra"
        ) from None
    return S3Place(where.bucket, where.prefix, endpoint, region, on_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPrefix:
    """A bucket of S3, and the path in it below which a storage is; empty: the whole bucket."""

    bucket: str
    prefix: str


def location(target: str) -> Path | BucketPrefix:
    """Return the place that a target names: a folder, which may be relative, or a prefix of a bucket. Raises
    NotAdmitted for another URL, and for one with credentials, a query, or a host that is not this machine."""
    parts = urlsplit(target)
    if parts.scheme == "s3":
        if not parts.netloc or parts.netloc != parts.hostname or parts.query or parts.fragment:
            raise NotAdmitted(
                "the URL of an S3 storage is s3://bucket/prefix, without credentials; correct it"
            )
        prefix = unquote(parts.path).strip("/")
        return BucketPrefix(bucket=parts.netloc, prefix=relative(prefix) if prefix else "")
    if parts.scheme == "file":
        is_here = parts.netloc in ("", "localhost") and parts.path.startswith("/")
        if not is_here or parts.query or parts.fragment:
            raise NotAdmitted("the URL of a storage on this machine is file:///folder; correct it")
        return Path(unquote(parts.path))
    if "://" in target:
        raise NotAdmitted(
            "objects are stored in a folder, at file:///folder or at s3://bucket/prefix; name one of these"
        )
    return Path(target)
