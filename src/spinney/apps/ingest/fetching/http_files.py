"""One try of one file over HTTP, beginning where the last one broke off if that can be."""

import contextlib
from collections.abc import Callable

from spinney.apps.ingest.fetching import partial_files, response_headers
from spinney.apps.ingest.fetching.errors import Trouble
from spinney.apps.ingest.fetching.http_client import Answer, Asker, refused
from spinney.apps.ingest.fetching.partial_files import Head, Part, Place
from spinney.apps.ingest.fetching.size_checks import Measure
from spinney.apps.ingest.files import paths


def downloaded(
    asker: Asker, place: Place, source: str, url: str, measure: Measure, heard: Callable[[int], None]
) -> Part:
    """A part with all the bytes that the server has to give.

    Raises Trouble and OSError, Halted when called off; what has come by then is marked, for the next try.
    """
    part = partial_files.kept(place, source)
    if part is not None and part.size_bytes == part.head.size_bytes:
        return part
    try:
        with asker.ask("GET", url, _question(part)) as answer:
            if part is not None and answer.status in (206, 416):
                _must_continue(part, answer, place)
            else:
                part = _begun(part, answer, place, source, measure)
            if answer.status != 416:
                _take(part, answer, measure, heard)
    except BaseException:
        if part is not None:
            _put_by(part)
        raise
    return part


def _question(part: Part | None) -> dict[str, str]:
    if part is None or part.head.condition is None:
        return {}
    # RFC 9110 section 13.1.5: the rest if the file is still the same, else all of it.
    return {"Range": f"bytes={part.size_bytes}-", "If-Range": part.head.condition}


def _must_continue(part: Part, answer: Answer, place: Place) -> None:
    """Raises Trouble, with the part gone, unless the answer begins where the part ends."""
    span = response_headers.span_of(answer.headers)
    condition = response_headers.condition_of(answer.headers)
    fits = (
        span is not None
        and response_headers.encoding_of(answer.headers) is None
        and condition in (None, part.head.condition)
        and (part.head.size_bytes is None or span.whole_bytes in (None, part.head.size_bytes))
    )
    # 416 with the very length we have: nothing is left to ask for.
    begins = span is not None and part.size_bytes == (
        span.whole_bytes if answer.status == 416 else span.first
    )
    if fits and begins:
        return
    partial_files.dropped(place)
    raise Trouble("the server does not go on where it broke off; try again later", retryable=True)


def _begun(part: Part | None, answer: Answer, place: Place, source: str, measure: Measure) -> Part:
    if answer.status != 200:
        raise refused(answer, place.rules)
    coding = response_headers.encoding_of(answer.headers)
    if coding is not None:
        raise Trouble(
            f"the server sends it coded as '{paths.shown(coding[:40])}' though it was asked not to; "
            f"have it send the file as it is",
            retryable=False,
        )
    size_bytes = response_headers.length_of(answer.headers)
    measure.total(size_bytes)
    if part is not None:
        part.close()
    modified = response_headers.date_of(answer.headers, "last-modified")
    return partial_files.begun(
        place,
        Head(
            source=source,
            condition=response_headers.condition_of(answer.headers),
            size_bytes=size_bytes,
            modified=modified.isoformat() if modified else None,
        ),
    )


def _take(part: Part, answer: Answer, measure: Measure, heard: Callable[[int], None]) -> None:
    for chunk in answer.chunks:
        measure.so_far(part.size_bytes + len(chunk))
        part.write(chunk)
        heard(len(chunk))
    if part.head.size_bytes not in (None, part.size_bytes):
        raise Trouble(
            f"it broke off after {part.size_bytes:,} of {part.head.size_bytes:,} bytes; try again later",
            retryable=True,
        )


def _put_by(part: Part) -> None:
    # What went wrong before is told; that it could not be marked costs bytes only.
    with contextlib.suppress(OSError):
        part.mark()
    part.close()
