"""The stage that fetches the whole payload and checks it."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from spinney import Defer, Job
from spinney.apps.ingest import fetch
from spinney.apps.ingest.admission import FULL_S, admission
from spinney.apps.ingest.byte_progress import SHOW_S, byte_progress
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.fetch import RemoteFile, Stopped
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.objects import unresponsive_hosts, work_places
from spinney.apps.ingest.objects.provisioning import disk, promise, renew
from spinney.apps.ingest.objects.work import (
    FETCHED,
    PAYLOAD,
    WANTED,
    Work,
    algorithms,
    load_work,
    read_list,
    write_list,
)
from spinney.errors import BadName, UsageError
from spinney.files import copies, disk_space
from spinney.files.digests import Digest, Sums
from spinney.files.paths import NotAdmitted, distinguishes_names, folded, shown
from spinney.jobs import names

_TRIED = 10
"""Pairs of names that are tried on the disk, which treats all others the same."""


def downloading(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Fetch the files that are missing or wrong, several at once; a lock limits the connections to each host
    over all nodes.

    The value: ``files``, ``bytes``, and how many of the files had a digest (``verified``). Files that an
    earlier attempt fetched are kept. Where ``processing`` has begun since, an operator has requeued the object from
    here or before: then those are kept whose digest was given and is right. The promise of space is renewed first,
    since a job that failed has lost it, and reduced to what a container still needs at the end.
    """
    work = load_work(job, order)
    rows = list(read_list(work.folder / WANTED, "estimating"))
    remote_files = [_remote_file(row) for row in rows if row["url"]]
    work_places.clear_complete_download(work)
    renew(work, work_places.present_bytes(work))
    with admission():
        _require_apart(work, rows)
        files = _fetch(work, remote_files) if remote_files else []
        files += [_copy_held(work, row) for row in rows if not row["url"]]
    total = sum(row["size"] for row in files)
    promise(work, total if order.payload.kind is PayloadKind.CONTAINER else 0)
    # Last, since the list says that the download is complete.
    write_list(work.folder / FETCHED, files, sync=work.syncs)
    return {"files": len(files), "bytes": total, "verified": sum(1 for row in rows if row["digest"])}


def _require_apart(work: Work, rows: list[dict[str, Any]]) -> None:
    """Raise NotAdmitted where two names differ only in case or accents, and the disk treats them as one."""
    by_folded: dict[str, str] = {}
    names_ = (row["name"] for row in rows)
    similar = (
        (by_folded[key], name) for name in names_ if by_folded.setdefault(key := folded(name), name) != name
    )
    for name_, other in islice(similar, _TRIED):
        parts = zip(name_.split("/"), other.split("/"), strict=True)
        if not any(distinguishes_names(work.folder, a, b) for a, b in parts if a != b):
            raise NotAdmitted(
                f"'{shown(name_)}' and '{shown(other)}' are one file on the disk of {shown(str(work.folder))}, since "
                f"upper and lower case or accents do not count there; rename one, or have the working folder on "
                f"another file system"
            )


def host_lock(host: str) -> str:
    """Return the name of the lock whose capacity is the number of connections to a host.

    IPv6 addresses lose their brackets; a host that is no valid name of a lock is hashed.
    """
    plain = f"download:{host.replace('[', '').replace(']', '')}"
    try:
        return names.lock_name(plain)
    except BadName:
        return f"download:{hashlib.sha256(host.encode()).hexdigest()[:32]}"


def _lock_hosts(work: Work, remote_files: list[RemoteFile]) -> int:
    """Take a lock for each host, in alphabetical order, and return how many connections may be made at once.

    No more of a lock is taken than there are files on its host.
    """
    downloads = work.settings.downloads
    at_once = downloads.at_once
    for host, files in sorted(Counter(h for w in remote_files for h in fetch.hosts_of([w.url])).items()):
        most = min(files, downloads.at_once, downloads.host_limit)
        amount = _lock(work.job, host_lock(host), most, downloads.host_limit)
        at_once = at_once if amount == min(files, downloads.at_once) else min(at_once, amount)
    return at_once


def _lock(job: Job, lock: str, most: int, capacity: int) -> int:
    """Take up to ``most`` of a lock, and return the amount.

    ``capacity``: that of the lock where operators have set none. They may have set a smaller one, beyond
    which any request is refused: then half as much is requested, down to 1. Raises UsageError where even that
    is refused.
    """
    while True:
        try:
            job.lock(lock, amount=most, capacity=capacity)
        except UsageError:
            if most == 1:
                raise
            most //= 2
        else:
            return most


def _remote_file(row: dict[str, Any]) -> RemoteFile:
    return RemoteFile(url=row["url"], name=row["name"], digest=_digest(row), size_bytes=row["size"])


def _digest(row: dict[str, Any]) -> Digest | None:
    return None if row["digest"] is None else Digest(**row["digest"])


def _fetch(work: Work, remote_files: list[RemoteFile]) -> list[dict[str, Any]]:
    """Fetch the files, and return their lines for ``FETCHED``.

    Raises NoRoom where the disk is full, Defer where it is above the warning mark and sizes are unknown, and
    what ``watched`` raises.
    """
    job = work.job
    is_full = _disk_watch(work)
    try:
        with unresponsive_hosts.watched(
            work, fetch.hosts_of(w.url for w in remote_files), unresponsive_hosts.FILES
        ) as watch:
            at_once = _lock_hosts(work, remote_files)
            files = fetch.fetch_all(
                watch.with_tries(remote_files),
                work.folder / PAYLOAD,
                watch.rules,
                at_once=at_once,
                tries=work.settings.downloads.tries,
                algorithms=algorithms(work),
                sync=work.syncs,
                progress=byte_progress(job, job.results["estimating"]["bytes"], checks_cancel=False),
                stopped=lambda: job.cancelled or is_full(),
                answered=watch.answered,
            )
    except disk_space.NoRoom as error:
        raise disk_space.no_room(
            work.folder, max(0, job.results["estimating"]["bytes"] - work_places.present_bytes(work))
        ) from error
    except Stopped:
        job.check_cancelled()
        full = disk(work.folder).full(work.settings.working)
        raise Defer(FULL_S, f"{full}; the received bytes are kept, and the rest waits: make room") from None
    return [{"name": f.name, "size": f.size_bytes, "sums": dict(f.sums)} for f in files]


def _disk_watch(work: Work) -> Callable[[], bool]:
    """Return a function that tells whether to stop since the disk is above the warning mark, measured now and then.

    Only files of unknown size, for which no space could be promised, have to stop there.
    """
    unknown, looked_s, is_over = work.job.results["estimating"]["unknown"], -SHOW_S, False

    def is_full() -> bool:
        nonlocal looked_s, is_over
        if unknown and time.monotonic() - looked_s > SHOW_S:
            looked_s, is_over = time.monotonic(), disk(work.folder).is_over_warning(work.settings.working)
        return is_over

    return is_full


def _copy_held(work: Work, row: dict[str, Any]) -> dict[str, Any]:
    """Copy a payload that the batch has in its folder, and check its digest."""
    source = work.held()
    if source is None or not source.is_file():
        raise NotAdmitted(
            f"the payload '{shown(row['name'])}' is no longer in its batch's folder; submit it again"
        )
    target = work.folder / PAYLOAD / row["name"]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    digest = _digest(row)
    sums = Sums([*algorithms(work), *([digest.algorithm] if digest else [])])
    size = _copy(source, target, work, sums)
    sums.require(digest, row["name"])
    return {"name": row["name"], "size": size, "sums": sums.values()}


def _copy(source: Path, target: Path, work: Work, sums: Sums) -> int:
    """Copy a file so that it is whole or absent under its name; return its size."""
    # Beside the payload, where the temporary name cannot clash with a name that a depositor chose, or make it too long.
    folder = work.folder / PAYLOAD
    beside = fetch.aside_of(folder) / "held"
    beside.parent.mkdir(exist_ok=True)
    beside.unlink(missing_ok=True)
    with source.open("rb") as file:
        size = copies.copy(file, beside, sums, sync=work.syncs)
    beside.replace(target)
    if work.syncs:
        copies.sync_together([above for above in target.parents if above.is_relative_to(folder)])
    return size
