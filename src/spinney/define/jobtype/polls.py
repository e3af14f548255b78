"""Polls: a list of rows, of which each gets a job again and again, and never two that are unsettled at once.

A poll is a job type whose stage reads the list and submits the jobs under unique keys, and a schedule of its
jobs. The key of a row is ``poll:NAME:VALUE``: while the job of a row is unsettled, submitting it again
returns that job."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import isasyncgenfunction, iscoroutinefunction
from os import PathLike
from pathlib import Path
from typing import Any

import orjson

from spinney.define.job import Job
from spinney.define.jobtype.job_types import SubmittableType
from spinney.define.params.schema import from_words
from spinney.model.errors import BadParameters, UsageError

Rows = Iterable[Mapping[str, Any]]
RowSource = str | PathLike[str] | Callable[[], Rows]
"""A function that returns the parameters of each job, or a file of them: CSV with a heading, or JSON lines."""


def poll_function(kind: SubmittableType, source: RowSource, key: str, name: str) -> Callable[[Job], int]:
    """Return the function of a poll's job type: it returns the number of rows. ``key``: the parameter that tells rows
    apart. Raises UsageError for what is no source of rows. The function raises BadParameters for a row without the key
    and for parameters that the type refuses; then no job is submitted."""
    is_async = iscoroutinefunction(source) or isasyncgenfunction(source)
    if not isinstance(source, str | PathLike) and (not callable(source) or is_async):
        raise UsageError(
            f"the rows of poll {name!r} must be a function (with 'def', not 'async def') that returns them, or the "
            "path of a file"
        )

    def poll(job: Job) -> int:
        """Submit a job for each row of a list whose last job has settled."""
        rows = list(source()) if callable(source) else list(_read(Path(source), kind))
        for number, row in enumerate(rows, 1):
            if row.get(key) in (None, ""):
                raise BadParameters(
                    f"row {number} of poll {name!r} has no {key!r}, which tells it from others"
                )
        if rows:
            job.submit_many(kind, rows, keys=[f"poll:{name}:{row[key]}" for row in rows])
        return len(rows)

    return poll


def _read(path: Path, kind: SubmittableType) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a file: CSV with a heading, whose words are read as the schema of ``kind`` wants them
    and whose empty cells are left out, or JSON lines. Raises BadParameters for a line that has more cells than the
    heading, or is no JSON object, with its number."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        if path.suffix.lower() == ".csv":
            reader = csv.DictReader(file)
            for row in reader:
                if any(row.pop(None, ())):  # where csv puts further cells
                    raise BadParameters(
                        f"line {reader.line_num} of {path} has more cells than its heading; quote a cell that has a "
                        "comma in it"
                    )
                yield from_words(kind.schema, {name: word for name, word in row.items() if name and word})
            return
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise BadParameters(f"line {number} of {path} is no JSON ({error}); correct it") from error
            if not isinstance(value, dict):
                raise BadParameters(f"line {number} of {path} is no JSON object of parameters; correct it")
            yield value
