"""The payload, fetched whole and checked."""

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path
from typing import Any

from spinney import Defer, Job
from spinney.apps.ingest import fetching
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.deposits.orders import ObjectOrder, Sum
from spinney.apps.ingest.fetching import Stopped, Wanted
from spinney.apps.ingest.files import copies, disk_space
from spinney.apps.ingest.files.digests import Sums
from spinney.apps.ingest.files.paths import NotAdmitted, folded, kept_apart, shown
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.objects import silent_hosts
from spinney.apps.ingest.objects.provisioning import disk, release, renew
from spinney.apps.ingest.objects.work import (
    FETCHED,
    PAYLOAD,
    WANTED,
    Work,
    algorithms,
    read_list,
    work,
    write_list,
)
from spinney.apps.ingest.space_waits import FULL_S
from spinney.errors import BadName, UsageError
from spinney.jobs import names

SHOW_S = 0.5
_TRIED = 10
"""Pairs of names that are tried on the disk: it treats others alike."""


def downloading(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Fetch what is missing or wrong, several files at once; each host is asked by so many over all nodes."""
    at = work(job, order)
    rows = list(read_list(at.folder / WANTED, "estimating"))
    wanted = [_wanted(row) for row in rows if row["url"]]
    renew(at, _here_bytes(at))
    with admission():
        _require_apart(at, rows)
        found = _fetched(at, wanted) if wanted else []
        found += [_held(at, row) for row in rows if not row["url"]]
    write_list(at.folder / FETCHED, found, sync=at.syncs)
    total = sum(row["size"] for row in found)
    release(at, total if order.payload.kind is PayloadKind.CONTAINER else 0)
    return {"files": len(found), "bytes": total, "verified": sum(1 for row in rows if row["digest"])}


def _require_apart(at: Work, rows: list[dict[str, Any]]) -> None:
    """Raise NotAdmitted where two names are equal but for case or accents, and the disk takes them for one."""
    found: dict[str, str] = {}
    names_ = (row["name"] for row in rows)
    near = ((found[key], name) for name in names_ if found.setdefault(key := folded(name), name) != name)
    for one, other in islice(near, _TRIED):
        parts = zip(one.split("/"), other.split("/"), strict=True)
        if not any(kept_apart(at.folder, a, b) for a, b in parts if a != b):
            raise NotAdmitted(
                f"'{shown(one)}' and '{shown(other)}' are one file on the disk of {shown(str(at.folder))}, since "
                f"upper and lower case or accents do not count there; rename one, or have the working folder on "
                f"another file system"
            )


def host_lock(host: str) -> str:
    """The lock whose capacity is how many connections a host gets; IPv6 addresses without their brackets. A host that
    no lock can be called after goes by a hash."""
    plain = f"download:{host.replace('[', '').replace(']', '')}"
    try:
        return names.lock_name(plain)
    except BadName:
        return f"download:{hashlib.sha256(host.encode()).hexdigest()[:32]}"


def _hosts_locked(at: Work, wanted: list[Wanted]) -> int:
    """Take a lock for each host; returns how many connections may be made at once."""
    downloads = at.settings.downloads
    at_once = downloads.at_once
    for host, files in sorted(Counter(h for w in wanted for h in fetching.hosts_of([w.url])).items()):
        most = min(files, downloads.at_once, downloads.host_limit)
        taken = _locked(at.job, host_lock(host), most, downloads.host_limit)
        at_once = at_once if taken == min(files, downloads.at_once) else min(at_once, taken)
    return at_once


def _locked(job: Job, lock: str, most: int, capacity: int) -> int:
    """Take so much of a lock, or as much as there is of it: operators may have set less than this job would take."""
    while True:
        try:
            job.lock(lock, amount=most, capacity=capacity)
        except UsageError:
            if most == 1:
                raise
            most //= 2
        else:
            return most


def _here_bytes(at: Work) -> int:
    """What has been fetched by attempts before."""
    folder = at.folder / PAYLOAD
    whole = (Path(top, name) for top, _, files in os.walk(folder) for name in files)
    return sum(path.lstat().st_size for path in chain(whole, fetching.aside_of(folder).glob("*.part")))


def _wanted(row: dict[str, Any]) -> Wanted:
    given = None if row["digest"] is None else Sum.model_validate(row["digest"]).digest()
    return Wanted(url=row["url"], name=row["name"], digest=given, size_bytes=row["size"])


def _fetched(at: Work, wanted: list[Wanted]) -> list[dict[str, Any]]:
    job = at.job
    is_full = _watch(at)
    try:
        with silent_hosts.watched(at, fetching.hosts_of(w.url for w in wanted), silent_hosts.FILES) as watch:
            at_once = _hosts_locked(at, wanted)
            found = fetching.fetch_all(
                watch.wanted(wanted),
                at.folder / PAYLOAD,
                watch.rules,
                at_once=at_once,
                tries=at.settings.downloads.tries,
                algorithms=algorithms(at),
                sync=at.syncs,
                progress=_progress(job),
                stopped=lambda: job.cancelled or is_full(),
                answered=watch.answered,
            )
    except disk_space.NoRoom as error:
        raise disk_space.no_room(
            at.folder, max(0, job.results["estimating"]["bytes"] - _here_bytes(at))
        ) from error
    except Stopped:
        job.check_cancelled()
        full = disk(at.folder).full(at.settings.working)
        raise Defer(FULL_S, f"{full}; what has come is kept, the rest waits: make room") from None
    return [{"name": f.name, "size": f.size_bytes, "sums": dict(f.sums)} for f in found]


def _watch(at: Work) -> Callable[[], bool]:
    """Whether the disk is above the warning mark, looked at now and then; only files of unknown size, for which nothing
    could be promised, have to stop there."""
    unknown, looked_s, over = at.job.results["estimating"]["unknown"], -SHOW_S, False

    def is_full() -> bool:
        nonlocal looked_s, over
        if unknown and time.monotonic() - looked_s > SHOW_S:
            looked_s, over = time.monotonic(), disk(at.folder).is_over_warning(at.settings.working)
        return over

    return is_full


def _held(at: Work, row: dict[str, Any]) -> dict[str, Any]:
    """What the batch holds itself is copied, and checked on its way."""
    source = at.held()
    if source is None or not source.is_file():
        raise NotAdmitted(
            f"the payload '{shown(row['name'])}' is gone from its batch's folder; submit it again"
        )
    target = at.folder / PAYLOAD / row["name"]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    given = None if row["digest"] is None else Sum.model_validate(row["digest"]).digest()
    sums = Sums([*algorithms(at), *([given.algorithm] if given else [])])
    size = _copied(source, target, at, sums)
    if given is not None and sums.values()[given.algorithm] != given.value:
        raise NotAdmitted(
            f"'{shown(row['name'])}' has the {given.algorithm} {sums.values()[given.algorithm]}, not {given.value} as "
            f"was given; submit it again"
        )
    return {"name": row["name"], "size": size, "sums": sums.values()}


def _copied(source: Path, target: Path, at: Work, sums: Sums) -> int:
    # Where no name that a depositor chooses can be too long by ours, or meet it.
    folder = at.folder / PAYLOAD
    beside = fetching.aside_of(folder) / "held"
    beside.parent.mkdir(exist_ok=True)
    beside.unlink(missing_ok=True)
    with source.open("rb") as file:
        size = copies.copy(file, beside, sums, sync=at.syncs)
    beside.replace(target)
    if at.syncs:
        copies.sync_together([above for above in target.parents if above.is_relative_to(folder)])
    return size


def _progress(job: Job) -> Any:
    """Shows how far it is, now and then."""
    total = job.results["estimating"]["bytes"]
    came, shown_s = 0, time.monotonic()

    def progress(size_bytes: int) -> None:
        nonlocal came, shown_s
        came += size_bytes
        if total and time.monotonic() - shown_s > SHOW_S:
            shown_s = time.monotonic()
            job.progress(min(1.0, came / total), f"{came:,} of {total:,} bytes")

    return progress
