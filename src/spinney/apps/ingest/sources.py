"""What is to be deposited: the objects of a folder or of a manifest, and the files of an object.

In a folder every top-level entry is one object. A manifest is a text file of JSON lines, an object
a line::

    {"object": "letters-1907",
     "files": [{"url": "file:///scans/p1.tif", "path": "p1.tif", "sha256": "9f86…", "size": 4711}]}

``path`` is where the file goes within its object; digests are optional and may be several.
Symbolic links and special files are left out with a note; what cannot be named is refused by name.
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from spinney.apps.ingest import paths
from spinney.apps.ingest.paths import NotAdmitted, shown

DIGEST_LENGTHS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}
"""Hexadecimal digits of the digests that a manifest may give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One file to be deposited."""

    path: str
    """Within its object."""
    source: str
    """Below the listing's root."""
    size_bytes: int
    digests: Mapping[str, str] = field(default_factory=dict)
    """Algorithm to hexadecimal digest, as the submitter gave them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of one object, and what was left out."""

    root: str
    payloads: tuple[Payload, ...]
    skipped: tuple[str, ...] = ()
    """A sentence each."""

    @property
    def size_bytes(self) -> int:
        return sum(p.size_bytes for p in self.payloads)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Listing":
        return cls(
            root=value["root"],
            payloads=tuple(Payload(**p) for p in value["payloads"]),
            skipped=tuple(value["skipped"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The top level of a source folder."""

    names: tuple[str, ...]
    """One object each, in order of name."""
    skipped: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Entries that ought to be objects and cannot be: a sentence each."""


def read_folder(root: Path, leave_out: Collection[str] = ()) -> Entries:
    """The objects of a folder: every top-level entry that is a folder or a regular file."""
    names: list[str] = []
    skipped: list[str] = []
    refused: list[str] = []
    with os.scandir(root) as entries:
        for entry in sorted(entries, key=lambda e: os.fsencode(e.name)):
            if entry.name in leave_out:
                continue
            if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                skipped.append(_note(entry))
                continue
            try:
                names.append(paths.component(entry.name))
            except NotAdmitted as error:
                refused.append(str(error))
    return Entries(names=tuple(names), skipped=tuple(skipped), refused=tuple(refused))


def list_entry(root: Path, name: str, leave_out: Collection[str] = ()) -> Listing:
    """The files of the object that a top-level entry of a folder makes.

    Raises NotAdmitted when the entry is gone or a name in it is not UTF-8.
    """
    paths.component(name)
    top = root / name
    if top.is_symlink() or not top.exists():
        raise NotAdmitted(f"'{shown(str(top))}' is not there (any more); put it back and retry")
    if not top.is_dir():
        with paths.opened_beneath(root, name) as file:
            size = os.fstat(file.fileno()).st_size
        return Listing(root=str(root), payloads=(Payload(path=name, source=name, size_bytes=size),))
    skipped: list[str] = []
    found = sorted(_walk(top, frozenset(leave_out), skipped))
    return Listing(
        root=str(root),
        payloads=tuple(Payload(path=p, source=f"{name}/{p}", size_bytes=size) for p, size in found),
        skipped=tuple(skipped),
    )


def _walk(top: Path, leave_out: Collection[str], skipped: list[str]) -> Iterator[tuple[str, int]]:
    below = [""]
    while below:
        prefix = below.pop()
        empty = True
        with os.scandir(top / prefix) as entries:
            for entry in entries:
                empty = False
                if entry.name in leave_out:
                    continue
                if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                    skipped.append(_note(entry))
                    continue
                path = paths.relative(prefix + entry.name)
                if entry.is_dir():
                    below.append(f"{path}/")
                else:
                    yield path, entry.stat(follow_symlinks=False).st_size
        if empty and prefix:
            skipped.append(f"empty folder left out: {shown(prefix)}")


def _note(entry: os.DirEntry[str]) -> str:
    kind = "symbolic link" if entry.is_symlink() else "special file"
    return f"{kind} left out: {shown(entry.path)}"


# --- manifests ---------------------------------------------------------------------------------


def read_manifest(manifest: Path, within: Path) -> Iterator[tuple[str, Listing]]:
    """The objects of a manifest in its order: (name, listing).

    Every payload must be a regular file below ``within``. Raises NotAdmitted, which names the line
    and what to mend; sizes and digests that are given are compared with the file later, when it
    is copied.
    """
    seen: set[str] = set()
    with manifest.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                name, listing = _object(line, within)
                if name in seen:
                    raise NotAdmitted(f"the object '{shown(name)}' is there twice; name each once")
            except NotAdmitted as error:
                raise NotAdmitted(f"{shown(str(manifest))} line {number}: {error}") from None
            seen.add(name)
            yield name, listing


def _object(line: bytes, within: Path) -> tuple[str, Listing]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise NotAdmitted(f"this is no JSON ({error}); write one object a line") from None
    if not isinstance(value, dict) or not isinstance(value.get("object"), str):
        raise NotAdmitted('the line has no name; write {"object": "NAME", "files": […]}')
    files = value.get("files")
    if not isinstance(files, list) or not files:
        raise NotAdmitted('the object has no files; write "files": [{"url": …, "path": …}]')
    payloads = tuple(_payload(f, within) for f in files)
    _no_clash([p.path for p in payloads])
    return paths.component(value["object"]), Listing(root=str(within), payloads=payloads)


def _payload(value: Any, within: Path) -> Payload:
    if not isinstance(value, dict) or not isinstance(value.get("url"), str):
        raise NotAdmitted('a file has no url; write {"url": "file:///…", "path": "…"}')
    unknown = sorted(set(value) - {"url", "path", "size", *DIGEST_LENGTHS})
    if unknown:
        raise NotAdmitted(
            f"a file has an unknown field '{shown(unknown[0])}'; "
            f"there are url, path, size, {', '.join(DIGEST_LENGTHS)}"
        )
    source = _below(value["url"], within)
    path = value.get("path", source.rpartition("/")[2])
    if not isinstance(path, str):
        raise NotAdmitted(f"the path {path!r} is no text; mend it")
    with paths.opened_beneath(within, source) as file:
        size = os.fstat(file.fileno()).st_size
    given = value.get("size", size)
    if type(given) is not int or given < 0:
        raise NotAdmitted(f"the size {given!r} of '{shown(path)}' is no number of bytes; mend it")
    return Payload(
        path=paths.relative(path),
        source=source,
        size_bytes=given,
        digests={a: _digest(a, value[a]) for a in DIGEST_LENGTHS if a in value},
    )


def _below(url: str, within: Path) -> str:
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise NotAdmitted(f"'{shown(url)}' is no file on this machine; write file:///the/whole/path")
    if parts.query or parts.fragment:
        raise NotAdmitted(f"'{shown(url)}' has a '?' or '#'; write them as %3F and %23")
    path = os.fsdecode(unquote_to_bytes(parts.path))
    paths.relative(path.lstrip("/"))
    # Links above the file are lawful as long as they stay inside; the file itself may be none.
    real = Path(path).parent.resolve() / Path(path).name
    if not real.is_relative_to(within):
        raise NotAdmitted(
            f"'{shown(path)}' does not lie in '{shown(str(within))}'; move it there, or name another folder"
        )
    return paths.relative(str(real.relative_to(within)))


def _digest(algorithm: str, value: Any) -> str:
    length = DIGEST_LENGTHS[algorithm]
    if not isinstance(value, str) or len(value) != length or set(value.lower()) - set("0123456789abcdef"):
        raise NotAdmitted(f"{value!r} is no {algorithm}: that has {length} hexadecimal digits")
    return value.lower()


def _no_clash(found: list[str]) -> None:
    taken = set(found)
    if len(taken) < len(found):
        twice = next(p for p in found if found.count(p) > 1)
        raise NotAdmitted(f"two files go to '{shown(twice)}'; give each a path of its own")
    for path in found:
        above = path.rpartition("/")[0]
        while above:
            if above in taken:
                raise NotAdmitted(f"'{shown(above)}' is a file and a folder at once; rename one")
            above = above.rpartition("/")[0]
