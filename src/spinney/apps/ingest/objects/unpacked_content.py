"""The content of a container, unpacked once and hashed.

    content-N/          the files, N being the fence of the attempt that unpacked them
    unpacked.jsonl      a head line with the container's digest and the folder, then a line a file with its digests

A stage that has waited for a lock starts again and reuses the files that it unpacked. It unpacks again when the
container has changed, or when the machine was restarted: the files are not synced and may have lost content. Each
attempt has its own folder, since an abandoned attempt may still be removing its files.
"""

import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from spinney import containers
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.objects.work import (
    CONTENT,
    PAYLOAD,
    UNPACKED,
    Work,
    algorithms,
    read_list,
    write_list,
)
from spinney.apps.ingest.storage import Incoming
from spinney.containers import Limits, Member
from spinney.files.digests import Sums
from spinney.files.paths import NotAdmitted, opened_beneath, shown
from spinney.host.boot import boot_id


def unpacked(work: Work, container: dict[str, Any]) -> list[Incoming]:
    """Return the files of a container that was fetched (``container``: its row), unpacked. Raises NotAdmitted."""
    source = {"container": container["sums"]["sha256"], "boot": boot_id()}
    if not _is_unpacked(work, source):
        _unpack(work, container, source)
    rows = read_list(work.folder / UNPACKED, "downloading")
    into = work.folder / next(rows)["folder"]
    return [
        Incoming(path=r["path"], source=into / r["path"], size_bytes=r["size"], sums=r["sums"]) for r in rows
    ]


def modified(work: Work) -> dict[str, str | None]:
    """Return the dates of last change of the files in the unpacked container, by path."""
    rows = read_list(work.folder / UNPACKED, "downloading")
    next(rows)
    return {row["path"]: row.get("modified") for row in rows}


def warning(work: Work) -> str | None:
    """Return a warning about similar names in the unpacked container, or None."""
    if work.order.payload.kind is not PayloadKind.CONTAINER:
        return None
    similar = next(read_list(work.folder / UNPACKED, "downloading")).get("near")
    if not similar:
        return None
    pairs = ", ".join(f"'{shown(name)}' and '{shown(other)}'" for name, other in similar)
    return (
        f"names differ in upper and lower case or the encoding of accents only: {pairs}; all are kept, and readers "
        f"with other file systems may see one"
    )


def _is_unpacked(work: Work, source: dict[str, str]) -> bool:
    """Return whether this container was unpacked since the machine was started, and its folder still
    exists."""
    if not (work.folder / UNPACKED).exists():
        return False
    head = next(read_list(work.folder / UNPACKED, "downloading"))
    return {name: head[name] for name in source} == source and (work.folder / head["folder"]).is_dir()


def _unpack(work: Work, container: dict[str, Any], source: dict[str, str]) -> None:
    """Unpack the container into a folder of this attempt, and list its files. Raises NotAdmitted for an empty
    container, or one that exceeds the limits."""
    clear(work)
    folder = f"{CONTENT}-{work.job.fence}"
    working = work.settings.working
    similar: list[tuple[str, str]] = []
    members = containers.unpack(
        work.folder / PAYLOAD / container["name"],
        work.folder / folder,
        name=work.order.payload.name,
        limits=Limits(
            total_bytes=working.unpacked_bytes,
            ratio=working.ratio,
            total_advice="send it in parts, or have working.unpacked_bytes raised",
            ratio_advice="send the files unpacked, or have working.ratio raised",
        ),
        between=lambda _: work.job.check_cancelled(),
        near=lambda name, other: similar.append((name, other)),
    )
    if not members:
        raise NotAdmitted(
            f"container '{shown(work.order.payload.name)}': it holds no file; pack the files again"
        )
    rows = chain(
        [{**source, "folder": folder, "near": similar}], _hashed(work, work.folder / folder, members)
    )
    write_list(
        work.folder / UNPACKED, rows, sync=True
    )  # a later run reads it before the engine has synced it


def _hashed(work: Work, into: Path, members: list[Member]) -> Iterator[dict[str, Any]]:
    """Yield a line for each unpacked file, with its digests; ends the attempt when the job is cancelled."""
    for member in members:
        sums = Sums(algorithms(work))
        with opened_beneath(into, member.path) as file:
            sums.read(file, lambda _: work.job.check_cancelled())
        yield {
            "path": member.path,
            "size": member.size_bytes,
            "sums": sums.values(),
            "modified": member.modified,
        }


def clear(work: Work) -> None:
    """Remove the unpacked files. The list is removed first: without its files it would mislead."""
    (work.folder / UNPACKED).unlink(missing_ok=True)
    for folder in work.folder.glob(f"{CONTENT}-*"):
        shutil.rmtree(folder, ignore_errors=True)
