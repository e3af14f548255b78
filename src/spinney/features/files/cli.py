"""The command ``files``: list the files in a job's folder, or print one."""

from typing import Annotated

import typer

from spinney.features.files.job_files import files_of
from spinney.model.homes import DirectoryEntry
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import JobArgument, JsonOption, RawOption, StoreOption, argument
from spinney.terminal.output import display

app = typer.Typer()


@app.command()
def files(
    job: JobArgument,
    path: Annotated[
        str | None,
        argument("FILE", "Print this file; its path as in the list."),
    ] = None,
    raw: RawOption = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the files in a job's folder, or print one of them. Files on other hosts are read through their node."""
    with open_commands(store) as performer:
        folder = files_of(performer, job, store)
        if path is not None:
            display.print_content(folder.content(path), raw=raw)
            return
        entries = list(folder.everything())
    if json:
        display.print_json_lines(
            [{"path": name, "kind": entry.kind, "size": entry.size} for name, entry in entries]
        )
    elif not entries:
        typer.echo(f"job {job} has no files")
    else:
        display.print_table(("SIZE", "FILE"), [(_size(entry), display.safe(name)) for name, entry in entries])


def _size(entry: DirectoryEntry) -> str:
    if entry.kind == "folder":
        return "(folder, not listed)"
    return f"{entry.size:,}" if entry.kind == "file" else "(link or special file)"
