"""The report as files in a folder of its own, with any number of objects, a line for each object.

    report.json                   the complete report
    completed.json, failed.json   the lists that may be attached to a mail
    report.txt, report.html       the report for people
    comparison.jsonl              the part with which the next report is compared

The lists are written object by object, so that a report of a hundred thousand objects is never one text in
memory. A file that exists is replaced by the same bytes when an interrupted report is written again.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from spinney.apps.ingest.report.builder import PreviousReport, Report, values
from spinney.apps.ingest.report.facts import ObjectEnd
from spinney.apps.ingest.report.page import html
from spinney.apps.ingest.report.text import text
from spinney.files import copies

COMPARISON = "comparison.jsonl"
PAGE_OBJECTS = 500
"""How many objects of one list the page in the folder shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file of a report that was written, with its size and digest."""

    path: Path
    size_bytes: int
    sha256: str


def write(report: Report, folder: Path) -> dict[str, Written]:
    """Write the files, and return them by name; durable on return. The folder is made if it does not exist.
    Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    contents: dict[str, Iterable[bytes]] = {
        "report.json": _whole(report),
        "completed.json": _list(report.completed),
        "failed.json": _list(report.failed),
        "report.txt": [text(report, all_objects=True).encode()],
        "report.html": [html(report, limit=PAGE_OBJECTS, completed=PAGE_OBJECTS).encode()],
        COMPARISON: _comparison(report),
    }
    written = {name: _write_file(folder / name, chunks) for name, chunks in contents.items()}
    copies.sync_folder(folder)
    copies.sync_folder(folder.parent)
    return written


def read_previous(folder: Path) -> PreviousReport:
    """Read the part of the report in this folder with which the next is compared. Raises FileNotFoundError
    where there is none."""
    completed, failed, versions = dict[str, str](), dict[str, str](), dict[str, int]()
    with (folder / COMPARISON).open("rb") as file:
        number = orjson.loads(next(file))["number"]
        for line in file:
            word, jid, label, *version = orjson.loads(line)  # earlier releases wrote no version
            (completed if word == "completed" else failed)[jid] = label
            if word == "completed" and any(version):
                versions[jid] = version[0]
    return PreviousReport(number=number, completed=completed, failed=failed, versions=versions)


def _whole(report: Report) -> Iterator[bytes]:
    """Yield ``report.json``: its head, and then each list with a line for each object, as one JSON object."""
    yield orjson.dumps(report.head())[:-1]
    for name in ("completed", "failed", "others"):
        yield f',\n"{name}": '.encode()
        yield from _list(getattr(report, name))
    yield b"}\n"


def _list(ends: Iterable[ObjectEnd]) -> Iterator[bytes]:
    """Yield a JSON list with a line for each object."""
    before = b"[\n"
    for end in ends:
        yield before + orjson.dumps(values(end))
        before = b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"


def _comparison(report: Report) -> Iterator[bytes]:
    """Yield ``comparison.jsonl``: the number of the report, then the list, jid, label and version of each object
    that counts."""
    yield orjson.dumps({"number": report.facts.number}) + b"\n"
    for word, ends in (("completed", report.completed), ("failed", report.failed)):
        for end in ends:
            yield orjson.dumps([word, end.jid, end.label, end.version]) + b"\n"


def _write_file(path: Path, chunks: Iterable[bytes]) -> Written:
    """Write a file that is complete or absent, even if the process dies."""
    digest, size = hashlib.sha256(), 0
    with copies.replacing(path) as out:
        for chunk in chunks:
            out.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return Written(path=path, size_bytes=size, sha256=digest.hexdigest())
