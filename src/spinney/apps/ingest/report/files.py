"""The report as files in a folder of its own: whole, whatever the number of objects, and a line an object.

report.json                   all of it
completed.json, failed.json   the lists that may go with a mail
report.txt, report.html       as people read it
told.jsonl                    what the next report is compared with
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from spinney.apps.ingest.files import copies
from spinney.apps.ingest.report.builder import Report, Told, values
from spinney.apps.ingest.report.facts import ObjectEnd
from spinney.apps.ingest.report.page import html
from spinney.apps.ingest.report.text import text

TOLD = "told.jsonl"
PAGE_OBJECTS = 500
"""Objects of one list that the page in the folder shows."""
_BUFFER_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file of a report."""

    path: Path
    size_bytes: int
    sha256: str


def write(report: Report, folder: Path) -> dict[str, Written]:
    """Write them, durable when this returns; by name. The folder is made when it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    contents: dict[str, Iterable[bytes]] = {
        "report.json": _whole(report),
        "completed.json": _list(report.completed),
        "failed.json": _list(report.failed),
        "report.txt": [text(report, all_objects=True).encode()],
        "report.html": [html(report, limit=PAGE_OBJECTS, completed=PAGE_OBJECTS).encode()],
        TOLD: _told(report),
    }
    written = {name: _written(folder / name, chunks) for name, chunks in contents.items()}
    copies.sync_folder(folder)
    copies.sync_folder(folder.parent)
    return written


def read_told(folder: Path) -> Told:
    """What a report in this folder told, read a line at a time."""
    completed, failed = dict[str, str](), dict[str, str]()
    with (folder / TOLD).open("rb") as file:
        number = orjson.loads(next(file))["number"]
        for line in file:
            word, jid, label = orjson.loads(line)
            (completed if word == "completed" else failed)[jid] = label
    return Told(number=number, completed=completed, failed=failed)


def _whole(report: Report) -> Iterator[bytes]:
    yield orjson.dumps(report.head())[:-1]
    for name in ("completed", "failed", "others"):
        yield f',\n"{name}": '.encode()
        yield from _list(getattr(report, name))
    yield b"}\n"


def _list(ends: Iterable[ObjectEnd]) -> Iterator[bytes]:
    before = b"[\n"
    for end in ends:
        yield before + orjson.dumps(values(end))
        before = b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"


def _told(report: Report) -> Iterator[bytes]:
    yield orjson.dumps({"number": report.facts.number}) + b"\n"
    for word, ends in (("completed", report.completed), ("failed", report.failed)):
        for end in ends:
            yield orjson.dumps([word, end.jid, end.label]) + b"\n"


def _written(path: Path, chunks: Iterable[bytes]) -> Written:
    """A file that is whole or not there, whatever dies in the middle."""
    beside, digest, size = path.with_name(f"{path.name}.new"), hashlib.sha256(), 0
    with beside.open("wb", buffering=_BUFFER_BYTES) as out:
        for chunk in chunks:
            out.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)
    return Written(path=path, size_bytes=size, sha256=digest.hexdigest())
