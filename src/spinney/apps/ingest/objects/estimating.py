"""What is to be fetched, and how much space it needs."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from spinney import Fail, Job, Warn
from spinney.apps.ingest import fetching, manifests, priorities
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.fetching import FetchFailed, Stopped, Wanted
from spinney.apps.ingest.inventory import admitting
from spinney.apps.ingest.manifests import PayloadKind, Row, fields
from spinney.apps.ingest.objects.work import MANIFEST, WANTED, Work, work, write_list
from spinney.apps.ingest.orders import ObjectOrder, Sum
from spinney.apps.ingest.paths import shown

UNKNOWN_SHOWN = 5
_MANIFEST_MAX_BYTES = 1 << 30


def estimating(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Ask every server what its payload weighs; the sum is the space that is needed."""
    at = work(job, order)
    with admission():
        rows = [_admitted(row) for row in _rows(at)]
        unsized = [row.url for row in rows if row.url and row.size_bytes is None]
        try:
            asked = {e.url: e for e in fetching.estimate(
                unsized, at.rules, at_once=at.settings.downloads.estimates_at_once, stopped=lambda: job.cancelled
            )}  # fmt: skip
        except Stopped:
            job.check_cancelled()
            raise Fail("estimating was called off") from None
    write_list(at.folder / WANTED, map(_line, rows))
    sizes = (r.size_bytes if r.size_bytes is not None or r.url not in asked else asked[r.url].size_bytes for r in rows)
    needed = sum(size or 0 for size in sizes)
    if needed > fields.SIZE_MAX_BYTES:
        raise Fail(f"its files weigh {needed} bytes together, as is said; mend the sizes", retryable=False)
    if at.profile.priority is None:
        in_batch = _in_batch(job)
        mine = priorities.of_object(in_batch, needed)
        if mine != in_batch:
            job.prioritise(mine)
    unknown = [e for e in asked.values() if e.size_bytes is None]
    value = {"files": len(rows), "bytes": needed, "unknown": len(unknown)}
    if unknown:
        named = "; ".join(e.problem or f"'{row_name(rows, e.url)}' has no length" for e in unknown[:UNKNOWN_SHOWN])
        raise Warn(f"the size of {len(unknown)} of {len(rows)} files is not known: {named}", value=value)
    return value


def row_name(rows: list[Row], url: str) -> str:
    """How a file is called, for a message: its URL may hold a signature."""
    return shown(next(row.name for row in rows if row.url == url))


def _admitted(row: Row) -> Row:
    """Here, since what is stored must be recordable. Raises NotAdmitted."""
    if row.mime_type is not None:
        admitting.name("MIME type", row.mime_type)
    return row


def _in_batch(job: Job) -> int:
    parent = job.parent
    return priorities.of_batch(1) if parent is None else int(parent.data.get("priority", priorities.of_batch(1)))


def _rows(at: Work) -> Iterator[Row]:
    """The files of the object. What the batch holds itself is a row without a URL."""
    payload, held = at.order.payload, at.held()
    if payload.kind is not PayloadKind.OBJECT_MANIFEST:
        given = None if payload.digest is None else payload.digest.digest()
        yield Row(
            url=payload.url or "", name=payload.name, digest=given, size_bytes=payload.size_bytes,
            mime_type=payload.mime_type,
        )  # fmt: skip
        return
    manifest = held or _fetched_manifest(at)
    yield from manifests.read(manifest, PayloadKind.OBJECT_MANIFEST).rows


def _fetched_manifest(at: Work) -> Any:
    payload = at.order.payload
    wanted = Wanted(
        url=payload.url or "", name=payload.name, size_bytes=payload.size_bytes,
        digest=None if payload.digest is None else payload.digest.digest(),
    )  # fmt: skip
    folder = at.folder / MANIFEST
    # One that stands would do for who asks again, and it may be the one that could not be read.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        fetching.fetch_all(
            [wanted], folder, replace(at.rules, largest_bytes=_MANIFEST_MAX_BYTES),
            tries=at.settings.downloads.tries, stopped=lambda: at.job.cancelled,
        )  # fmt: skip
    except FetchFailed as error:
        raise Fail(f"the object manifest {error}", retryable=error.retryable) from error
    return folder / payload.name


def _line(row: Row) -> dict[str, Any]:
    """With the size that the depositor has given, which what comes must have; a server's is a guess."""
    found = Sum.of(row.digest)
    return {
        "url": row.url, "name": row.name, "size": row.size_bytes,
        "digest": None if found is None else found.model_dump(), "mime_type": row.mime_type,
    }  # fmt: skip
