"""What a container holds, unpacked once and hashed.

    content-N/          the files, N being the fence of the attempt that unpacked them
    unpacked.jsonl      of which container, where, then a line a file with its digests

A stage that waits for a lock begins anew, and finds what it unpacked before. Not so when the container is another, or
when the machine was started since: nothing here is synced, so that files may have lost what was written. A folder of
its own for each attempt, since one that was given up may still clear away after itself.
"""

import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from spinney.apps.ingest import containers
from spinney.apps.ingest.containers import Limits, Member
from spinney.apps.ingest.files.digests import Sums
from spinney.apps.ingest.files.paths import NotAdmitted, opened_beneath, shown
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
from spinney.host import boot_id


def unpacked(at: Work, container: dict[str, Any]) -> list[Incoming]:
    """The files of a container that was fetched (``container``: its row). Raises NotAdmitted."""
    of = {"container": container["sums"]["sha256"], "boot": boot_id()}
    if not _stands(at, of):
        _unpack(at, container, of)
    rows = read_list(at.folder / UNPACKED, "downloading")
    into = at.folder / next(rows)["folder"]
    return [
        Incoming(path=r["path"], source=into / r["path"], size_bytes=r["size"], sums=r["sums"]) for r in rows
    ]


def modified(at: Work) -> dict[str, str | None]:
    """When the files in the container that was unpacked were last changed."""
    rows = read_list(at.folder / UNPACKED, "downloading")
    next(rows)
    return {row["path"]: row.get("modified") for row in rows}


def warning(at: Work) -> str | None:
    """What is worth a word about the names in the container that was unpacked."""
    if at.order.payload.kind is not PayloadKind.CONTAINER:
        return None
    near = next(read_list(at.folder / UNPACKED, "downloading")).get("near")
    if not near:
        return None
    pairs = ", ".join(f"'{shown(one)}' and '{shown(other)}'" for one, other in near)
    return (
        f"names differ in upper and lower case or the encoding of accents only: {pairs}; all are kept, and readers "
        f"with other file systems may see one"
    )


def _stands(at: Work, of: dict[str, str]) -> bool:
    if not (at.folder / UNPACKED).exists():
        return False
    head = next(read_list(at.folder / UNPACKED, "downloading"))
    return {name: head[name] for name in of} == of and (at.folder / head["folder"]).is_dir()


def _unpack(at: Work, container: dict[str, Any], of: dict[str, str]) -> None:
    clear(at)
    folder = f"{CONTENT}-{at.job.fence}"
    working = at.settings.working
    near: list[tuple[str, str]] = []
    members = containers.unpack(
        at.folder / PAYLOAD / container["name"],
        at.folder / folder,
        name=at.order.payload.name,
        limits=Limits(total_bytes=working.unpacked_bytes, ratio=working.ratio),
        between=lambda _: at.job.check_cancelled(),
        near=lambda one, other: near.append((one, other)),
    )
    if not members:
        raise NotAdmitted(
            f"container '{shown(at.order.payload.name)}': it holds no file; pack the files again"
        )
    rows = chain([{**of, "folder": folder, "near": near}], _hashed(at, at.folder / folder, members))
    write_list(
        at.folder / UNPACKED, rows, sync=True
    )  # read before the engine syncs it, by a run after this one


def _hashed(at: Work, into: Path, members: list[Member]) -> Iterator[dict[str, Any]]:
    for member in members:
        sums = Sums(algorithms(at))
        with opened_beneath(into, member.path) as file:
            sums.read(file, lambda _: at.job.check_cancelled())
        yield {
            "path": member.path,
            "size": member.size_bytes,
            "sums": sums.values(),
            "modified": member.modified,
        }


def clear(at: Work) -> None:
    """What was unpacked is no longer needed. The list goes first: without its files it would mislead."""
    (at.folder / UNPACKED).unlink(missing_ok=True)
    for folder in at.folder.glob(f"{CONTENT}-*"):
        shutil.rmtree(folder, ignore_errors=True)
