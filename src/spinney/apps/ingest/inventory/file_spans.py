"""A file is kept once for all versions that have it unchanged: the rule, apart from any database.

A **span** is a run of recorded versions that all have the same file, with nothing between them that has not. It is kept
as wide as no recorded version says otherwise: it begins right behind the last recorded version before it that has not
the file, or at ``FIRST``, and ends right before the next that has not, or at ``LAST``. So

* a version costs what differs from its neighbours, not what it has: an object of a thousand versions of a thousand
  files, one of which changes each time, takes two thousand spans;
* versions may come in any order, and the spans are the same in the end;
* what a span says of a version that is not recorded means nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

FIRST, LAST = 1, 2**31 - 1

Content = tuple[object, ...]
"""All that makes a file the same: path, size, kind, date, digests."""


@dataclass(frozen=True, slots=True)
class Span:
    """``id``: of its row."""

    id: int
    first: int
    last: int
    content: Content


@dataclass(frozen=True, slots=True)
class Changes:
    """``narrowed``: (row, first, last). ``added``: (content, first, last)."""

    narrowed: list[tuple[int, int, int]]
    added: list[tuple[Content, int, int]]


def entered(
    spans: Iterable[Span], files: Iterable[Content], version: int, before: int | None, after: int | None
) -> Changes:
    """What changes when a version is recorded that has just these files.

    ``spans``: all that reach over ``version``. ``before``, ``after``: the nearest recorded versions, None where there
    is none.
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
