"""The rule by which a file is stored once for all versions that have it unchanged, independent of any database.

A **span** is a run of recorded versions that all have the same file, with no recorded version between them that does
not. It is stored with the widest possible limits: it begins right after the last recorded version before it that does
not have the file, or at ``FIRST``, and ends right before the next that does not, or at ``LAST``. So

* a version takes as many rows as it differs from its neighbours: an object of a thousand versions of a thousand
  files, one of which changes each time, takes two thousand spans;
* versions may be recorded in any order, and the spans are the same in the end;
* a span says nothing about versions that are not recorded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spinney.apps.ingest.inventory.model import File
from spinney.files.digests import ALGORITHMS

FIRST, LAST = 1, 2**31 - 1

Content = tuple[Any, ...]
"""The values by which files are compared: path, size, type, date, digests."""


def content(file: File, digests: Mapping[str, str]) -> Content:
    """Return the content of a file; ``digests`` are checked ones."""
    values = (bytes.fromhex(digests[name]) if name in digests else None for name in ALGORITHMS)
    return (file.path, file.size_bytes, file.mime_type, file.modified, *values)


def stored_part(content: Content) -> Content:
    """Return the part of a content that the storage has: path, size and digests. Type and date are only described."""
    path, size_bytes, _, _, *digests = content
    return (path, size_bytes, *digests)


@dataclass(frozen=True, slots=True)
class Span:
    """A file and the range of versions that have it. ``id``: that of its row."""

    id: int
    first: int
    """The first version number within its limits; it need not be recorded (see the module)."""
    last: int
    content: Content


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of spans that one version makes; a span is never removed, since it has a recorded version
    on one side.

    ``narrowed``: (row, first, last) of rows to update. ``added``: (content, first, last) of rows to insert.
    """

    narrowed: list[tuple[int, int, int]]
    added: list[tuple[Content, int, int]]


def span_changes(
    spans: Iterable[Span], files: Iterable[Content], version: int, before: int | None, after: int | None
) -> Changes:
    """Return the changes of an object's spans when a version with these files is recorded.

    ``spans``: all that contain ``version``. ``before``, ``after``: the nearest recorded versions, None where
    there is none. A span whose file the version has stays as it is. Any other is cut at the version: its row
    is narrowed to the side that has recorded versions, and if both sides have some, the later side becomes a
    new span. Files without a span get one between the neighbours.
    """
    missing = dict.fromkeys(files)
    narrowed: list[tuple[int, int, int]] = []
    added: list[tuple[Content, int, int]] = []
    for span in spans:
        if span.content in missing:
            del missing[span.content]
            continue
        is_before = before is not None and span.first <= before
        is_after = after is not None and span.last >= after
        if is_before:
            narrowed.append((span.id, span.first, version - 1))
            if is_after:
                added.append((span.content, version + 1, span.last))
        else:
            narrowed.append((span.id, version + 1, span.last))
    first = FIRST if before is None else before + 1
    last = LAST if after is None else after - 1
    added.extend((content, first, last) for content in missing)
    return Changes(narrowed, added)
