"""What is to be fetched, and how much space it needs."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from spinney import Fail, Job, Warn
from spinney.apps.ingest import fetching, manifests
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.deposits import early_checks, priorities
from spinney.apps.ingest.deposits.orders import ObjectOrder, Sum
from spinney.apps.ingest.fetching import Estimate, Stopped, Wanted
from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.manifests import PayloadKind, Row, Warnings
from spinney.apps.ingest.objects import silent_hosts, work_places
from spinney.apps.ingest.objects.work import MANIFEST, WANTED, Work, work, write_list

SHOWN = 5
"""Files that a message names."""


def estimating(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Ask servers what their payload weighs; the sum is the space that is needed. Where the depositor has given a size
    that counts, for nothing else is admitted, and no server is asked: that it has something else shows in the download.
    Where it is known all the same, by another row or on this machine, it is told, and fails nothing: many servers
    answer HEAD otherwise than GET."""
    at = work(job, order)
    with admission():
        noted = Warnings()
        rows = wanted_rows(at, noted)
        urls = list(
            dict.fromkeys(
                row.url for row in rows if row.url and (row.size_bytes is None or _is_here(row.url))
            )
        )
        try:
            asked = _asked(at, urls)
        except Stopped:
            job.check_cancelled()
            raise Fail("estimating was called off") from None
    write_wanted(at, rows)
    work_places.leave(at)
    there = [(row, asked[row.url].size_bytes if row.url in asked else None) for row in rows]
    needed = sum(found or 0 if row.size_bytes is None else row.size_bytes for row, found in there)
    with admission():
        early_checks.require_weight(needed)
    if at.profile.priority is None and needed > priorities.LARGE_BYTES:
        in_batch = _in_batch(job)
        mine = priorities.of_object(in_batch, needed)
        if mine != in_batch:
            job.prioritise(mine)
    unknown = [row for row, found in there if row.url and row.size_bytes is None and found is None]
    value = {"files": len(rows), "bytes": needed, "unknown": len(unknown)}
    if said := [*_unknown(unknown, asked, len(rows)), *_otherwise(there), *_noted(noted)]:
        raise Warn("; ".join(said), value=value)
    return value


def wanted_rows(at: Work, noted: Warnings | None = None) -> list[Row]:
    """The files of the object; ``noted``: where to note warnings of its manifest. Raises NotAdmitted, Fail."""
    return [_admitted(row) for row in _rows(at, noted)]


def write_wanted(at: Work, rows: list[Row]) -> None:
    """List what is to be fetched."""
    write_list(at.folder / WANTED, map(_line, rows), sync=at.syncs)


def _asked(at: Work, urls: list[str]) -> dict[str, Estimate]:
    with silent_hosts.watched(at, _hosts_of(urls), silent_hosts.SIZES, forgiving=True) as watch:
        found = fetching.estimate(
            urls,
            watch.rules,
            at_once=at.settings.downloads.estimates_at_once,
            unasked=watch.unasked,
            stopped=lambda: at.job.cancelled,
            answered=watch.answered,
        )
    return {estimate.url: estimate for estimate in found}


def _hosts_of(urls: list[str]) -> Iterator[str]:
    for url in urls:
        with suppress(NotAdmitted):  # what may not be asked is told by its estimate
            yield from fetching.hosts_of([url])


def _is_here(url: str) -> bool:
    """To look how large a file of this machine is costs nothing."""
    return url[:5].lower() == "file:"


# Files go by their names in messages: a URL may hold a signature.


def _unknown(unknown: list[Row], asked: Mapping[str, Estimate], files: int) -> Iterator[str]:
    if unknown:
        told = (asked[row.url].problem or f"'{shown(row.name)}' has no length" for row in unknown[:SHOWN])
        yield f"the size of {len(unknown)} of {files} files is not known: {'; '.join(told)}"


def _otherwise(there: list[tuple[Row, int | None]]) -> Iterator[str]:
    found = [
        f"'{shown(row.name)}' has {size} bytes there, not {row.size_bytes}"
        for row, size in there
        if None not in (size, row.size_bytes) and size != row.size_bytes
    ]
    if found:
        yield f"{len(found)} of {len(there)} files are not as large as was said: {'; '.join(found[:SHOWN])}"


def _noted(warnings: Warnings) -> Iterator[str]:
    """Of the manifest."""
    if warnings.count:
        yield warnings.told(SHOWN)


def _admitted(row: Row) -> Row:
    """Here, since what is stored must be recordable. Raises NotAdmitted."""
    early_checks.require_file(row)
    return row


def _in_batch(job: Job) -> int:
    parent = job.parent
    return (
        priorities.of_batch(1) if parent is None else int(parent.data.get("priority", priorities.of_batch(1)))
    )


def _rows(at: Work, noted: Warnings | None) -> Iterator[Row]:
    """The files of the object. What the batch holds itself is a row without a URL."""
    payload, held = at.order.payload, at.held()
    if payload.kind is not PayloadKind.OBJECT_MANIFEST:
        given = None if payload.digest is None else payload.digest.digest()
        yield Row(
            url=at.url,
            name=payload.name,
            digest=given,
            size_bytes=payload.size_bytes,
            mime_type=payload.mime_type,
            modified=payload.modified,
        )
        return
    manifest = held or _fetched_manifest(at)
    found = manifests.read(manifest, PayloadKind.OBJECT_MANIFEST, noted)
    yield from found.rows
    if held is None:
        _remove_manifest(at.folder / MANIFEST)  # what is in it is listed from here on


def _fetched_manifest(at: Work) -> Any:
    payload = at.order.payload
    wanted = Wanted(
        url=at.url,
        name=payload.name,
        size_bytes=payload.size_bytes,
        digest=None if payload.digest is None else payload.digest.digest(),
    )
    folder = at.folder / MANIFEST
    # One that stands would do for who asks again, and it may be the one that could not be read.
    _remove_manifest(folder)
    with silent_hosts.watched(at, _hosts_of([at.url]), silent_hosts.MANIFEST) as watch:
        fetching.fetch_all(
            watch.wanted([wanted]),
            folder,
            replace(
                watch.rules, largest_bytes=early_checks.MANIFEST_MAX_BYTES, if_larger="divide the object"
            ),
            tries=at.settings.downloads.tries,
            stopped=lambda: at.job.cancelled,
            answered=watch.answered,
            sync=False,  # this stage reads it, and no other
        )
    return folder / payload.name


def _remove_manifest(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(fetching.aside_of(folder), ignore_errors=True)


def _line(row: Row) -> dict[str, Any]:
    """With the size that the depositor has given, which what comes must have; a server's is a guess."""
    found = Sum.of(row.digest)
    return {
        "url": row.url,
        "name": row.name,
        "size": row.size_bytes,
        "digest": None if found is None else found.model_dump(),
        "mime_type": row.mime_type,
        "modified": row.modified,
    }
