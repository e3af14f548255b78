"""``files``: what lies in a job's folder, and the content of one of its files."""

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from spinney.cli import showing
from spinney.cli.arguments import JobArgument, JsonOption, StoreOption
from spinney.cli.job_files import JobFiles, job_files
from spinney.cli.session import opened
from spinney.model.homes import Entry


def add_to(app: typer.Typer) -> None:
    app.command()(files)


def files(
    job: JobArgument,
    path: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="Print this file, as the list names it.", show_default=False)
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the files in a job's folder, or print one of them; where folders are local, from whichever host has it."""
    with opened(store) as s:
        folder = job_files(s, job, store)
        if path is not None:
            for piece in folder.content(path):
                sys.stdout.buffer.write(piece)
            sys.stdout.flush()
            return
        found = list(_below(folder, ""))
    if json:
        showing.lines([{"path": name, "kind": entry.kind, "size": entry.size} for name, entry in found])
    elif not found:
        typer.echo(f"there are no files of job {job}")
    else:
        showing.table(("SIZE", "FILE"), [(_size(entry), showing.safe(name)) for name, entry in found])


def _below(folder: JobFiles, path: str) -> Iterator[tuple[str, Entry]]:
    for entry in folder.names(path, must=bool(path)):
        name = f"{path}/{entry.name}" if path else entry.name
        if entry.kind == "folder":
            yield from _below(folder, name)
        else:
            yield name, entry


def _size(entry: Entry) -> str:
    return f"{entry.size:,}" if entry.kind == "file" else "(link or special file)"
