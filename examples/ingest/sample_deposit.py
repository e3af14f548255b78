"""A folder as a deposit: every top-level entry is an object with a manifest, and a batch manifest lists them all."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from spinney.apps.ingest.manifests import NOTHING, About, PayloadKind, Row, write, write_json
from spinney.errors import UsageError
from spinney.files.digests import digest
from spinney.files.paths import NotAdmitted, relative, shown

BATCH = "batch.checkm"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleObject:
    """One object of the sample deposit: an entry of the source folder with its files."""

    name: str
    """The name of the entry that it is made of."""
    files: tuple[str, ...]
    """The paths relative to the source, '/' between folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The files to serve, and their manifest."""

    batch: Path
    served: dict[str, Path]
    """The file for each path of a URL."""
    objects: tuple[SampleObject, ...]
    damaged: SampleObject
    damage: str
    """The path of the URL whose file has a wrong byte."""


def find(source: Path, leave_out: frozenset[str]) -> tuple[tuple[SampleObject, ...], list[str]]:
    """Return the objects of a folder, in the order of their names as bytes, and a sentence for each entry that is left
    out: links, special files, empty folders and names that are not UTF-8. Names in ``leave_out`` are left out without
    one. Raises OSError for a folder that cannot be read."""
    objects: list[SampleObject] = []
    left_out: list[str] = []
    for entry in _sorted(source):
        if entry.name in leave_out:
            continue
        if files := sorted(_files(source, entry, leave_out, left_out)):
            objects.append(SampleObject(name=entry.name, files=tuple(files)))
    return tuple(objects), left_out


def offer(source: Path, objects: tuple[SampleObject, ...], folder: Path, base: str) -> Offer:
    """Write the manifests of these objects into ``folder``, which must not exist, and return what is to be
    served.

    URLs begin with ``base``, which ends in a slash. Each file is read once, for its digest. The batch
    manifest names the objects' manifests by URL, so that these are served, too. Raises UsageError where
    nothing can be deposited, or nothing be damaged.
    """
    folder.mkdir()
    served: dict[str, Path] = {}

    def serve(file: Path, name: str, place: str, about: About = NOTHING) -> Row:
        path = quote(place)
        served[path] = file
        with file.open("rb") as opened:
            sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
            size = opened.tell()
        return Row(
            url=f"{base}{path}", name=name, digest=digest("sha256", sha256), size_bytes=size, about=about
        )

    rows: list[Row] = []
    for number, sample in enumerate(objects, 1):
        # The name of a file in a folder begins below the folder; a single file keeps its own.
        names = {file: file.removeprefix(f"{sample.name}/") for file in sample.files}
        files = [serve(source / file, name, f"files/{file}") for file, name in names.items()]
        manifest = folder / f"{number:04d}.checkm"
        _write(manifest, PayloadKind.OBJECT_MANIFEST, files)
        # A name with unprintable characters is escaped in the title, and is no local id.
        title = shown(sample.name)
        about = About(title=title, local_ids=(title,) if title == sample.name else ())
        rows.append(serve(manifest, manifest.name, f"manifests/{manifest.name}", about))
    if not rows:
        raise UsageError(f"{source} has no file that can be deposited; name another with SOURCE=/some/folder")
    batch = folder / BATCH
    _write(batch, PayloadKind.BATCH_MANIFEST, rows)
    damaged, file = _damageable(source, objects)
    return Offer(batch=batch, served=served, objects=objects, damaged=damaged, damage=quote(f"files/{file}"))


def _sorted(folder: Path) -> list["os.DirEntry[str]"]:
    """Return the entries of a folder, sorted by the bytes of their names, which are the same in any
    locale."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: os.fsencode(entry.name))


def _files(
    source: Path, entry: "os.DirEntry[str]", leave_out: frozenset[str], left_out: list[str]
) -> Iterator[str]:
    """Yield the files of an entry, by their paths; adds a sentence to ``left_out`` for what cannot be deposited."""
    path = Path(entry.path)
    if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
        left_out.append(f"{shown(str(path))} is {'a link' if entry.is_symlink() else 'a special file'}")
        return
    if entry.is_dir():
        below = [inner for inner in _sorted(path) if inner.name not in leave_out]
        if not below:
            left_out.append(f"{shown(str(path))} is empty")
        for inner in below:
            yield from _files(source, inner, leave_out, left_out)
        return
    try:
        yield relative(str(path.relative_to(source)))
    except NotAdmitted as error:
        left_out.append(str(error))


def _write(manifest: Path, kind: PayloadKind, rows: Sequence[Row]) -> None:
    """Write a manifest as Checkm, or as JSON where a name requires it."""
    try:
        with manifest.open("wb") as out:
            write(rows, kind, out)
    except NotAdmitted:  # a name with a '|' or a line break, which Checkm cannot represent
        with manifest.open("wb") as out:
            write_json(rows, kind, out)


def _damageable(source: Path, objects: tuple[SampleObject, ...]) -> tuple[SampleObject, str]:
    """Return a file that has a byte to damage, and its object, beginning with the middle one."""
    middle = len(objects) // 2
    for sample in (*objects[middle:], *objects[:middle]):
        for file in sample.files:
            if (source / file).stat().st_size:
                return sample, file
    raise UsageError(
        f"all files of {source} are empty, and none can be damaged; name another with SOURCE=/some/folder"
    )
