"""BagIt bags (RFC 8493): written into the archive atomically, and verified.

A bag is built below ``.building`` on the archive's own file system, synced file by file and folder
by folder, and then renamed to its place: it is there whole, or not at all. What is in the archive
is never overwritten. When a stage runs again after its node died, it finds its own bag and is
content; another's bag in the same place is refused.

Why not the library ``bagit``: see docs/decisions/0006-ingest-writes-its-own-bags.md.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spinney.apps.ingest import copying
from spinney.apps.ingest.paths import NotAdmitted, shown

DECLARATION = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
BUILDING = ".building"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A file of the payload, with the digest that was taken when it was first read."""

    path: str
    size_bytes: int
    sha256: str


def place_bag(
    payload: Path,
    files: Iterable[Stored],
    target: Path,
    *,
    archive: Path,
    builder: str,
    info: Mapping[str, str],
    between: Callable[[int], None] = lambda copied: None,
) -> bool:
    """Copy ``payload`` into a bag and put it at ``target`` (below ``archive``).

    ``builder`` names this attempt, so that two of them never build in one place. Each file is
    hashed once more while it is copied. Returns False when the same bag stood there already.
    Raises NotAdmitted when a file is not what ``files`` says, or when another bag has the place.
    """
    wanted = sorted(files, key=lambda f: f.path)
    if target.exists():
        _require_same(target, wanted)
        return False
    building = archive / BUILDING / builder
    _fresh(building)
    _write(building, payload, wanted, info, between)
    target.parent.mkdir(parents=True, exist_ok=True)
    copying.sync_folder(target.parent.parent)
    try:
        building.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(building)
        _require_same(target, wanted)
        return False
    copying.sync_folder(target.parent)
    return True


def sweep_builders(archive: Path, prefix: str, but: str) -> None:
    """Remove what earlier attempts of the same job left half built."""
    for left in (archive / BUILDING).glob(f"{prefix}*"):
        if left.name != but:
            shutil.rmtree(left, ignore_errors=True)


def _fresh(building: Path) -> None:
    if building.exists():
        shutil.rmtree(building)
    (building / "data").mkdir(parents=True)


def _write(
    building: Path,
    payload: Path,
    wanted: list[Stored],
    info: Mapping[str, str],
    between: Callable[[int], None],
) -> None:
    for file in wanted:
        goal = building / "data" / file.path
        goal.parent.mkdir(parents=True, exist_ok=True)
        with (payload / file.path).open("rb", buffering=0) as source:
            size, sums = copying.copy_hashed(source, goal, ("sha256",), durable=True, between=between)
        if sums["sha256"] != file.sha256:
            raise NotAdmitted(
                f"the working copy of '{shown(file.path)}' has changed since it was made "
                f"({size} bytes now); rerun this job from its stage 'downloading'"
            )
    told = {**info, "Payload-Oxum": f"{sum(f.size_bytes for f in wanted)}.{len(wanted)}"}
    tags = {
        "bagit.txt": DECLARATION,
        "bag-info.txt": "".join(f"{k}: {_one_line(v)}\n" for k, v in told.items()),
        "manifest-sha256.txt": _manifest(wanted),
    }
    for name, text in tags.items():
        copying.write_durably(building / name, text)
    listed = "".join(f"{copying.digest(building / name)}  {name}\n" for name in sorted(tags))
    copying.write_durably(building / "tagmanifest-sha256.txt", listed)
    copying.sync_folders(building)


def _manifest(files: Iterable[Stored]) -> str:
    return "".join(f"{f.sha256}  {encode_path('data/' + f.path)}\n" for f in files)


def _one_line(value: str) -> str:
    return " ".join(value.split())


def _require_same(target: Path, wanted: list[Stored]) -> None:
    try:
        there = (target / "manifest-sha256.txt").read_text(encoding="utf-8")
    except OSError:
        there = None
    if there != _manifest(wanted):
        raise NotAdmitted(
            f"'{shown(str(target))}' is in the archive with other content, and the archive is never "
            f"overwritten; move it away, or deposit this as a new batch"
        )


# --- paths in manifests, and verifying ---------------------------------------------------------


def encode_path(path: str) -> str:
    """RFC 8493, 2.1.3: percent sign, line feed and carriage return are percent-encoded; only those."""
    return path.replace("%", "%25").replace("\n", "%0A").replace("\r", "%0D")


def decode_path(text: str) -> str:
    for code, plain in (("%0A", "\n"), ("%0a", "\n"), ("%0D", "\r"), ("%0d", "\r"), ("%25", "%")):
        text = text.replace(code, plain)
    return text


def read_manifest_entries(manifest: Path) -> Iterator[tuple[str, str]]:
    """(path, digest) of each line. Lines are divided at line feeds only, as names may have others."""
    for line in manifest.read_bytes().decode().split("\n"):
        if line:
            found, _, path = line.partition("  ")
            yield decode_path(path), found


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What verifying a bag found."""

    digests: int
    faults: tuple[str, ...]


def verify_bag(bag: Path) -> Verified:
    """Hash every file that the manifests of a bag name, and look for files that they do not."""
    faults: list[str] = []
    checked = 0
    named: set[str] = set()
    for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        if not (bag / manifest).is_file():
            faults.append(f"{shown(str(bag))}: {manifest} is missing")
            continue
        for path, wanted in read_manifest_entries(bag / manifest):
            named.add(path)
            file = bag / path
            if not file.is_file():
                faults.append(f"{shown(str(file))} is missing")
                continue
            checked += 1
            if copying.digest(file) != wanted:
                faults.append(f"{shown(str(file))} does not have the digest that the manifest gives")
    for at, _, files in os.walk(bag / "data"):
        strays = (str((Path(at) / f).relative_to(bag)) for f in files)
        faults.extend(f"{shown(s)} is in no manifest of {shown(str(bag))}" for s in strays if s not in named)
    return Verified(digests=checked, faults=tuple(faults))
