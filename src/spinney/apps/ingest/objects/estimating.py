"""The stage that lists the files to fetch, and estimates the space that they need."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from spinney import Fail, Job, Warn
from spinney.apps.ingest import fetch, manifests
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.deposits import early_checks, priorities
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.fetch import Estimate, RemoteFile, Stopped
from spinney.apps.ingest.manifests import PayloadKind, Row, Warnings
from spinney.apps.ingest.manifests.model import DESCRIBED
from spinney.apps.ingest.objects import unresponsive_hosts, work_places
from spinney.apps.ingest.objects.work import MANIFEST, WANTED, Work, load_work, write_list
from spinney.files.paths import NotAdmitted, shown

SHOWN = 5
"""How many files a message names."""


def estimating(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Ask the servers for the sizes of the files; the sum is the space that is needed.

    A size that the depositor gave counts, since no other is admitted, and its server is not asked: a difference fails
    the download. Where the server's size is known all the same, from another row or as a file of this machine, a
    difference is only a warning: many servers answer HEAD differently from GET.

    The value: ``files``, ``bytes`` (the known sizes), and how many sizes are ``unknown``.

    Files are there only when an operator has requeued the object from here: they are removed first, since the source
    may have changed, and their space is to be promised anew.
    """
    work = load_work(job, order)
    work_places.clear_fetched(work)
    with admission():
        warnings = Warnings()
        rows = payload_rows(work, warnings)
        urls = list(
            dict.fromkeys(
                row.url for row in rows if row.url and (row.size_bytes is None or _is_local(row.url))
            )
        )
        try:
            estimates = _request_sizes(work, urls)
        except Stopped:
            job.check_cancelled()
            raise Fail("the request for sizes was stopped") from None
    write_file_list(work, rows)
    work_places.clear_others(work)
    sizes = [(row, estimates[row.url].size_bytes if row.url in estimates else None) for row in rows]
    needed = sum(size or 0 if row.size_bytes is None else row.size_bytes for row, size in sizes)
    with admission():
        early_checks.require_total_size(needed)
    if work.profile.priority is None and needed > priorities.LARGE_BYTES:
        in_batch = _in_batch(job)
        priority = priorities.of_object(in_batch, needed)
        if priority != in_batch:
            job.prioritise(priority)
    unknown = [row for row, size in sizes if row.url and row.size_bytes is None and size is None]
    value = {"files": len(rows), "bytes": needed, "unknown": len(unknown)}
    if messages := [
        *_unknown_sizes(unknown, estimates, len(rows)),
        *_size_differences(sizes),
        *([warnings.summary(SHOWN)] if warnings.count else []),
    ]:
        raise Warn("; ".join(messages), value=value)
    return value


def payload_rows(work: Work, warnings: Warnings | None = None) -> list[Row]:
    """Return the files of the object. ``warnings``: collects warnings about its manifest. Raises NotAdmitted, Fail."""
    rows = []
    for row in _rows(work, warnings):
        # At this stage already, since every file that is stored must be recordable.
        early_checks.require_file(row)
        rows.append(row)
    return rows


def write_file_list(work: Work, rows: list[Row]) -> None:
    """Write the list of the files to fetch."""
    write_list(work.folder / WANTED, map(_line, rows), sync=work.syncs)


def _request_sizes(work: Work, urls: list[str]) -> dict[str, Estimate]:
    """Return the estimates by URL. A host that has not answered for too long is skipped: its sizes are unknown."""
    with unresponsive_hosts.watched(work, _hosts_of(urls), unresponsive_hosts.SIZES, forgiving=True) as watch:
        estimates = fetch.estimate(
            urls,
            watch.rules,
            at_once=work.settings.downloads.estimates_at_once,
            skipped_hosts=watch.skipped,
            stopped=lambda: work.job.cancelled,
            answered=watch.answered,
        )
    return {estimate.url: estimate for estimate in estimates}


def _hosts_of(urls: list[str]) -> Iterator[str]:
    """Yield the hosts of these URLs; those of URLs that may not be used are left out."""
    for url in urls:
        with suppress(NotAdmitted):  # its estimate reports a URL that may not be used
            yield from fetch.hosts_of([url])


def _is_local(url: str) -> bool:
    """Return whether the file is on this machine, where looking up its size costs nothing."""
    return url[:5].lower() == "file:"


# Messages give names of files, not URLs, which may hold a signature.


def _unknown_sizes(unknown: list[Row], estimates: Mapping[str, Estimate], files: int) -> Iterator[str]:
    """Yield a warning about files whose size is not known, with the reasons for the first of them."""
    if unknown:
        problems = (
            estimates[row.url].problem or f"'{shown(row.name)}' has no length" for row in unknown[:SHOWN]
        )
        yield f"the size of {len(unknown)} of {files} files is not known: {'; '.join(problems)}"


def _size_differences(sizes: list[tuple[Row, int | None]]) -> Iterator[str]:
    """Yield a warning about files of which the server gives another size than the depositor."""
    differences = [
        f"'{shown(row.name)}' has {size} bytes at its server, not {row.size_bytes}"
        for row, size in sizes
        if None not in (size, row.size_bytes) and size != row.size_bytes
    ]
    if differences:
        yield f"{len(differences)} of {len(sizes)} files do not have the given size: {'; '.join(differences[:SHOWN])}"


def _in_batch(job: Job) -> int:
    """Return the priority of an object of usual size in this job's batch."""
    usual = priorities.of_batch(1)
    return usual if job.parent is None else int(job.parent.data.get("priority", usual))


def _rows(work: Work, warnings: Warnings | None) -> Iterator[Row]:
    """Yield the files of the object. A file that the batch has in its folder is a row without a URL."""
    payload, held = work.order.payload, work.held()
    if payload.kind is not PayloadKind.OBJECT_MANIFEST:
        yield Row(url=work.url, **{name: getattr(payload, name) for name in DESCRIBED})
        return
    manifest = held or _fetch_manifest(work)
    yield from manifests.read(manifest, PayloadKind.OBJECT_MANIFEST, warnings)
    if held is None:
        work_places.remove_fetched(work.folder / MANIFEST)  # what is in it is listed from here on


def _fetch_manifest(work: Work) -> Path:
    """Fetch the object's manifest anew, and return its path. Raises what ``watched`` raises."""
    payload = work.order.payload
    remote_file = RemoteFile(
        url=work.url, name=payload.name, size_bytes=payload.size_bytes, digest=payload.digest
    )
    folder = work.folder / MANIFEST
    # A manifest of an earlier attempt would not be fetched again, and may be the one that could not be read.
    work_places.remove_fetched(folder)
    with unresponsive_hosts.watched(work, _hosts_of([work.url]), unresponsive_hosts.MANIFEST) as watch:
        fetch.fetch_all(
            watch.with_tries([remote_file]),
            folder,
            replace(
                watch.rules,
                largest_bytes=early_checks.MANIFEST_MAX_BYTES,
                too_large_advice="divide the object",
            ),
            tries=work.settings.downloads.tries,
            stopped=lambda: work.job.cancelled,
            answered=watch.answered,
            sync=False,  # this stage reads it, and no other
        )
    return folder / payload.name


def _line(row: Row) -> dict[str, Any]:
    """Return the line of a file, with the size that the depositor gave, which is required; a server's size is only an
    estimate."""
    line = {name: getattr(row, name) for name in ("url", *DESCRIBED)}
    return {name.removesuffix("_bytes"): value for name, value in line.items()}
