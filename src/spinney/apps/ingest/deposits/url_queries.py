"""The query strings of URLs, kept in the batch's folder and out of the parameters of jobs.

A query may be a signature, with which anyone can read the file; parameters are shown to all who may see a job, by
``spinney show``, pages and API. So a job has the URL up to its '?', and the place of the rest in this file: a JSON
string in each line, rewritten with the same content whenever the payload is read again.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import orjson

from spinney.files.paths import NotAdmitted

FILE = "queries"
Put = Callable[[str], tuple[str, int | None]]
"""Stores the query of a URL; returns the URL without it, and the place of the query, if it has one."""


@contextmanager
def writing(folder: Path) -> Iterator[Put]:
    """Write queries into a batch's folder: yields a function that stores the query of a URL and returns the
    URL without it.

    The file is made with the first query, and replaces an earlier one; places are offsets in bytes, and the
    same each time. The engine syncs it with the folder. A URL with an empty query after '?' has one, too.
    """
    with ExitStack() as stack:
        out: BinaryIO | None = None

        def put(url: str) -> tuple[str, int | None]:
            nonlocal out
            plain, mark, query = url.partition("?")
            if not mark:
                return url, None
            if out is None:
                out = stack.enter_context((folder / FILE).open("wb"))
            place = out.tell()
            out.write(orjson.dumps(query) + b"\n")
            return plain, place

        yield put


def whole(folder: Path, plain: str, place: int | None) -> str:
    """Return the URL with its query, which is at ``place`` in the batch's file; None: it has none. Raises NotAdmitted
    when the query is gone."""
    if place is None:
        return plain
    try:
        with (folder / FILE).open("rb") as file:
            file.seek(place)
            return f"{plain}?{orjson.loads(file.readline())}"
    except (FileNotFoundError, ValueError):
        raise NotAdmitted(
            f"the query of {plain} is no longer in the batch's folder; submit the batch again"
        ) from None
