"""The command ``postmortem``: walk through the frames of a failed stage.

On a terminal it opens a shell; in a pipe it prints the frames of all exceptions; with ``--json`` the document
as it was kept.
"""

import sys
from functools import partial
from typing import Annotated

import typer

from spinney.commands.job_queries import ListAttempts
from spinney.features.files.job_files import files_of
from spinney.features.postmortem import kept_frames
from spinney.features.postmortem.shell import PostmortemShell, where_lines
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import JobArgument, JsonOption, StoreOption, option
from spinney.terminal.output.display import safe

app = typer.Typer()


@app.command()
def postmortem(
    job: JobArgument,
    attempt: Annotated[
        int | None,
        option(help_="The attempt, by its number in 'spinney show' (default: the latest that failed)."),
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Open a shell at the frames of a failed stage, with the variables that were kept."""
    with open_commands(store) as performer:
        attempts = performer.do(ListAttempts(job=job)).items
        files = files_of(performer, job, store)
        read_file = partial(files.content, must=False)
        failed, exceptions = kept_frames.latest(attempts, read_file, job, fence=attempt)
        if json:
            typer.echo(b"".join(read_file(kept_frames.path_of(failed))))
            return
    if sys.stdin.isatty() and sys.stdout.isatty():
        PostmortemShell(f"{job} {failed.stage}", exceptions, sys.stdout).run()
        return
    for line in where_lines(exceptions, 0, len(exceptions[0].frames) - 1):
        typer.echo(safe(line))
