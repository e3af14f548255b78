"""Opens the storage that a target names."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from spinney.apps.ingest.storage.layout import Layout
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
    text = str(target)
    if text.startswith("s3:"):
        place, layout = _open_s3(text, endpoint, region, make, on_step)
    else:
        from spinney.apps.ingest.storage.disk.disk_place import open_disk

        place, layout = open_disk(_folder(text), make, on_step)
    return Storage(place, layout, algorithm)


def _folder(text: str) -> Path:
    """Return the folder that a target names. Raises NotAdmitted for a relative path, and for a URL with a
    host or a query."""
    if not text.startswith("file:"):
        path = Path(text)
    else:
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise NotAdmitted(f"'{shown(text)}' is no folder of this machine; write file:///folder")
        path = Path(unquote(parts.path))
    if not path.is_absolute() or "\0" in str(path):
        raise NotAdmitted(f"the storage '{shown(text)}' is not absolute; give the complete path")
    return path


def _open_s3(
    text: str, endpoint: str | None, region: str | None, make: bool, on_step: Step
) -> tuple[Place, Layout]:
    """Open a place in S3. Raises NotAdmitted for an invalid target, and where botocore is not installed."""
    parts = urlsplit(text)
    if not parts.netloc or parts.netloc != parts.hostname or parts.query or parts.fragment:
        raise NotAdmitted(
            "an S3 storage is named s3://bucket/prefix, without credentials in it; correct the target"
        )
    if endpoint is not None and "@" in urlsplit(endpoint).netloc:
        raise NotAdmitted("the endpoint of an S3 storage has credentials in it; set them in the environment")
    prefix = unquote(parts.path).strip("/")
    if prefix:
        relative(prefix)
    try:
        # Loaded here: a storage on a file system needs no botocore.
        from spinney.apps.ingest.storage.s3.s3_place import open_s3
    except ImportError as error:
        raise NotAdmitted(
            f"an s3: storage needs botocore ({error}); install spinney with its s3 extra"
        ) from None
    return open_s3(parts.netloc, prefix, endpoint, region, make, on_step)
