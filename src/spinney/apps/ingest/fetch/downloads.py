"""One try to fetch a file: over HTTP, resumed where the last try broke off if possible, or from this machine."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path

from spinney.apps.ingest.fetch import partial_files, response_headers
from spinney.apps.ingest.fetch.errors import TryFailed
from spinney.apps.ingest.fetch.http_client import Answer, HttpClient, status_error
from spinney.apps.ingest.fetch.partial_files import Head, Part, WantedFile
from spinney.errors import UsageError
from spinney.files import copies, paths


def download(client: HttpClient, wanted: WantedFile) -> Part:
    """Fetch a file over HTTP, and return a part with all its bytes, open; its digest is left to the caller.

    Raises TryFailed and OSError, Halted when aborted; the bytes received until then are marked for the next
    try, and the part is closed.
    """
    part = partial_files.load_part(wanted)
    if part is not None and part.size_bytes == part.head.size_bytes:
        return part
    try:
        with client.request("GET", wanted.file.url, _range_headers(part)) as answer:
            if part is not None and answer.status in (206, 416):
                _require_continuation(part, answer, wanted)
            else:
                part = _begin(part, answer, wanted)
            if answer.status != 416:
                _receive(part, answer)
    except BaseException:
        if part is not None:
            _save(part)
        raise
    return part


def _range_headers(part: Part | None) -> dict[str, str]:
    """Return the headers that request what a part lacks; none, for the whole file, without a part or where it
    cannot be known that the file is unchanged."""
    if part is None or part.head.condition is None:
        return {}
    # RFC 9110 section 13.1.5: the rest if the file is unchanged, else the whole file.
    return {"Range": f"bytes={part.size_bytes}-", "If-Range": part.head.condition}


def _require_continuation(part: Part, answer: Answer, wanted: WantedFile) -> None:
    """Raise TryFailed, and remove the part, unless the answer begins where the part ends. The size of the whole file is
    kept, for the answer may end before it: where the file can be compared with nothing, the size must be known."""
    span = response_headers.span_of(answer.headers)
    condition = response_headers.condition_of(answer.headers)
    if (
        span is not None
        # 416 with the length of the part: nothing is left to request.
        and part.size_bytes == (span.whole_bytes if answer.status == 416 else span.first)
        and response_headers.encoding_of(answer.headers) is None
        and condition in (None, part.head.condition)
        and (part.head.size_bytes is None or span.whole_bytes in (None, part.head.size_bytes))
    ):
        if part.head.size_bytes is None:
            part.head = replace(part.head, size_bytes=span.whole_bytes)
        if part.head.size_bytes is not None or wanted.compares:
            return
    partial_files.remove_part(wanted)
    raise TryFailed("the server does not resume the interrupted download; try again later", retryable=True)


def _begin(part: Part | None, answer: Answer, wanted: WantedFile) -> Part:
    """Return a new part for a whole file, in place of an older one. Raises TryFailed where the answer cannot be the
    file: another status, an encoded body, another size than given."""
    if answer.status != 200:
        raise status_error(answer, wanted.rules)
    coding = response_headers.encoding_of(answer.headers)
    if coding is not None:
        raise TryFailed(
            f"the server sends it with the encoding '{paths.shown(coding[:40])}' although the request did not "
            f"allow that; have it send the file as it is"
        )
    size_bytes = response_headers.length_of(answer.headers)
    wanted.check_announced(size_bytes)
    if part is not None:
        part.close()
    condition = response_headers.condition_of(answer.headers)
    head = Head(source=wanted.source, condition=condition, size_bytes=size_bytes)
    return partial_files.new_part(wanted, head)


def _receive(part: Part, answer: Answer) -> None:
    """Add the body to the part. Raises TryFailed where it is too long, or ends before the announced size."""
    for chunk in answer.chunks:
        part.write(chunk)
    if part.head.size_bytes not in (None, part.size_bytes):
        raise TryFailed(
            f"it broke off after {part.size_bytes:,} of {part.head.size_bytes:,} bytes; try again later",
            retryable=True,
        )


def _save(part: Part) -> None:
    """Mark and close a part, for the next try to continue it."""
    # The first error is raised; without a mark the bytes are only fetched again.
    with contextlib.suppress(OSError):
        part.mark()
    part.close()


# --- files of this machine -------------------------------------------------------------------


def size_of(root: Path, path: str) -> int:
    """Return the size of the file ``path`` below ``root``, in bytes. Raises NotAdmitted for a link or special
    file, UsageError while the root is not there, OSError."""
    _require_root(root, path)
    with paths.opened_beneath(root, path) as file:
        return os.fstat(file.fileno()).st_size


def copy_file(wanted: WantedFile, root: Path, path: str) -> Part:
    """Copy a file of this machine, and return a part with all its bytes, open.

    The file is copied rather than linked, since its owner may change it later; a change while it is read is
    detected by size and time. Raises TryFailed, NotAdmitted, OSError; UsageError while the root is not there; Halted
    when aborted. The part is closed then, and begun anew by the next try.
    """
    _require_root(root, path)
    with paths.opened_beneath(root, path) as file:
        before = os.fstat(file.fileno())
        wanted.check_announced(before.st_size)
        # Without a condition: copying again is quicker than checking whether the file is unchanged.
        head = Head(source=wanted.source, condition=None, size_bytes=before.st_size)
        part = partial_files.new_part(wanted, head)
        try:
            while chunk := file.read(copies.CHUNK_BYTES):
                part.write(chunk)
            after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise TryFailed("it was changed while it was read; retry when it is complete", retryable=True)
        except BaseException:
            part.close()
            raise
    return part


def _require_root(root: Path, path: str) -> None:
    """Raise UsageError where a file is missing since its whole root is missing or empty, as when a disk is not
    mounted."""
    if os.path.lexists(root / path):
        return
    with contextlib.suppress(FileNotFoundError), os.scandir(root) as entries:
        if next(entries, None) is not None:
            return
    raise UsageError(
        f"{paths.shown(str(root))}, a folder of payloads, is missing or empty; mount its disk, or correct file_roots"
    )
