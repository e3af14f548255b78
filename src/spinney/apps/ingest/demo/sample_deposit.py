"""A folder as a deposit: every top-level entry an object, each with a manifest, and a batch manifest of them all."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from spinney.apps.ingest.files.digests import digest
from spinney.apps.ingest.files.paths import NotAdmitted, relative, shown
from spinney.apps.ingest.manifests import About, PayloadKind, Row, write, write_json
from spinney.errors import UsageError

BATCH = "batch.checkm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """An object of the deposit."""

    name: str
    """Of the entry that it is made of."""
    files: tuple[str, ...]
    """Relative to the source, '/' between folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What is offered for download, and the manifest that says so."""

    batch: Path
    served: dict[str, Path]
    """Path of a URL, as it is asked for, to the file."""
    things: tuple[Thing, ...]
    damaged: Thing
    damage: str
    """The path of the URL under which a byte is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a folder has to offer."""

    things: tuple[Thing, ...]
    left_out: tuple[str, ...]
    """A sentence each."""


def find(source: Path, leave_out: frozenset[str]) -> Found:
    """The objects of a folder. Links, special files, empty folders and names that are no UTF-8 are left out."""
    things: list[Thing] = []
    left_out: list[str] = []
    for entry in _sorted(source):
        if entry.name in leave_out:
            continue
        if files := sorted(_files(source, entry, leave_out, left_out)):
            things.append(Thing(name=entry.name, files=tuple(files)))
    return Found(things=tuple(things), left_out=tuple(left_out))


def offer(source: Path, things: tuple[Thing, ...], folder: Path, base: str) -> Offer:
    """Write the manifests of these objects into ``folder``; URLs begin with ``base``, which ends in a slash. Raises
    UsageError where nothing can be deposited, or nothing be damaged."""
    folder.mkdir()
    served: dict[str, Path] = {}
    rows: list[Row] = []
    for number, thing in enumerate(things, 1):
        manifest = folder / f"{number:04d}.checkm"
        _write(
            manifest,
            PayloadKind.OBJECT_MANIFEST,
            [_row(source, thing, file, base, served) for file in thing.files],
        )
        rows.append(
            _offered(manifest, manifest.name, f"manifests/{manifest.name}", base, served, _about(thing))
        )
    if not rows:
        raise UsageError(f"{source} has no file that can be deposited; name another with SOURCE=/some/folder")
    batch = folder / BATCH
    _write(batch, PayloadKind.BATCH_MANIFEST, rows)
    damaged, file = _fragile(source, things)
    return Offer(batch=batch, served=served, things=things, damaged=damaged, damage=_path(f"files/{file}"))


def _sorted(folder: Path) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: os.fsencode(entry.name))


def _files(
    source: Path, entry: "os.DirEntry[str]", leave_out: frozenset[str], left_out: list[str]
) -> Iterator[str]:
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


def _row(source: Path, thing: Thing, file: str, base: str, served: dict[str, Path]) -> Row:
    # Of a folder's files the name begins below the folder; a file alone keeps its own.
    name = file.removeprefix(f"{thing.name}/")
    return _offered(source / file, name, f"files/{file}", base, served)


def _offered(
    file: Path, name: str, place: str, base: str, served: dict[str, Path], about: About | None = None
) -> Row:
    path = _path(place)
    served[path] = file
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256")
        size = opened.tell()
    return Row(
        url=f"{base}{path}",
        name=name,
        digest=digest("sha256", found.hexdigest()),
        size_bytes=size,
        about=about or About(),
    )


def _about(thing: Thing) -> About:
    # What is not printable is told as it is shown, and then it is no name to find the object by.
    told = shown(thing.name)
    return About(title=told, local_ids=(told,) if told == thing.name else ())


def _path(place: str) -> str:
    return quote(place)


def _write(manifest: Path, kind: PayloadKind, rows: Iterable[Row]) -> None:
    rows = list(rows)
    try:
        with manifest.open("wb") as out:
            write(rows, kind, out)
    except NotAdmitted:  # a name with a '|' or a line break, which Checkm cannot tell
        with manifest.open("wb") as out:
            write_json(rows, kind, out)


def _fragile(source: Path, things: tuple[Thing, ...]) -> tuple[Thing, str]:
    """A file that has a byte to be damaged, and its object: from the middle on."""
    middle = len(things) // 2
    for thing in (*things[middle:], *things[:middle]):
        for file in thing.files:
            if (source / file).stat().st_size:
                return thing, file
    raise UsageError(
        f"all files of {source} are empty, and none can be damaged; name another with SOURCE=/some/folder"
    )
