"""What the tests of storage begin with, and the judge they end with."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import ocfl

from spinney.apps.ingest.storage import Incoming, NoSuchObject, Storage, Stored
from spinney.apps.ingest.storage.layout import STAGING, Layout

ARK = "ark:/99999/fk4abc"
WHEN = datetime(2024, 2, 29, 12, 0, tzinfo=UTC)


def incoming(folder: Path, path: str, raw: bytes, *algorithms: str, **sums: str) -> Incoming:
    """A file of the given content with its true sums by ``algorithms``, and whatever ``sums`` claims."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / hashlib.sha256(path.encode() + raw).hexdigest()
    source.write_bytes(raw)
    true = {a: hashlib.new(a, raw).hexdigest() for a in algorithms}
    return Incoming(path=path, source=source, size_bytes=len(raw), sums={**true, **sums})


def put(
    storage: Storage,
    *files: Incoming,
    key: str = "jid-1",
    merge: bool = False,
    fence: int = 1,
    object_id: str = ARK,
) -> Stored:
    return storage.put(
        object_id,
        files,
        key=key,
        message="A deposit",
        user="Ada Lovelace <ada@example.org>",
        created=WHEN,
        merge=merge,
        fence=fence,
    )


def is_stored(storage: Storage) -> bool:
    """Whether the object has a version."""
    try:
        return bool(storage.versions(ARK))
    except NoSuchObject:
        return False


def contents(storage: Storage, version: int | None = None) -> dict[str, bytes]:
    """What a reader gets of a version, by path."""
    complaints = {}
    for file in storage.files(ARK, version):
        with storage.opened(ARK, file) as content:
            complaints[file.path] = content.read()
        assert len(complaints[file.path]) == file.size_bytes
    return complaints


def at_rest(root: Path) -> bool:
    """Whether ocfl-py finds nothing wrong or doubtful, and nobody has left anything half done."""
    return (complaints(root), leftovers(root)) == ([], [])


def complaints(root: Path) -> list[str]:
    """What ocfl-py finds wrong or doubtful with a storage root and its objects."""
    judge = ocfl.StorageRoot(root=str(root))
    sound = judge.validate(log_warnings=True, log_errors=True)
    errors = [message for _, message in judge.errors]
    if judge.good_objects != judge.num_objects or not sound:
        errors.append(
            f"{judge.good_objects} of {judge.num_objects} objects are good: {judge.log.status_str()}"
        )
    return errors


def where(object_id: str = ARK) -> str:
    """An object's root below the storage root."""
    return Layout().path(object_id)


def leftovers(root: Path) -> list[str]:
    """What is not at rest in a storage root: staging, and files that were to replace others."""
    return [str(p.relative_to(root)) for p in [*root.glob(f"{STAGING}/**/*"), *root.glob("**/*.new")]]
