"""The command ``stack``: show where a running attempt stands, or where one stood before its time limit ended it."""

import time
from typing import Annotated

import typer

from spinney.commands import Performs
from spinney.commands.job_queries import ListAttempts
from spinney.features.files.job_files import Files, files_of
from spinney.features.stacks.commands import RequestStacks, ShowStackRequest
from spinney.model.errors import NoSuch, Refused
from spinney.model.jobs import Attempt
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import JobArgument, StoreOption
from spinney.terminal.output.display import safe, safe_lines

PATIENCE_S = 20.0
"""Seconds to wait for an answer; a node needs less than two."""


app = typer.Typer()


@app.command()
def stack(
    job: JobArgument,
    kept: Annotated[
        bool,
        typer.Option("--kept", help="Request nothing; show the stacks that were kept, the oldest first."),
    ] = False,
    store: StoreOption = None,
) -> None:
    """Show the stacks of a running attempt: where its threads and tasks stand, while it continues."""
    with open_commands(store) as performer:
        attempts = performer.do(ListAttempts(job=job)).items
        files = files_of(performer, job, store)
        if not kept and attempts and attempts[-1].outcome is None:
            typer.echo(safe_lines(_requested(performer, files, job)), nl=False)
            return
        documents = [
            (path, text) for attempt in attempts for path in _paths(attempt) if (text := _text(files, path))
        ]
    if not documents:
        if kept:
            raise NoSuch(
                f"no stacks of job {job} are kept; 'spinney stack {job}' shows those of a running attempt"
            )
        raise NoSuch(
            f"no attempt of job {job} runs, and no stacks of it are kept; a job type keeps them with stack_after= or "
            f"timeout="
        )
    for path, text in documents:
        typer.echo(f"{safe(path)}: {safe_lines(text)}", nl=False)


def _requested(performer: Performs, files: Files, job: int) -> str:
    """Request the stacks, wait for the node's answer, and return it. Raises Refused where none comes.

    The request is answered when its row is gone. A file that is missing then means that the attempt ended
    first.
    """
    request = performer.do(RequestStacks(job=job))
    give_up = time.monotonic() + PATIENCE_S
    while performer.do(ShowStackRequest(job=job, fence=request.fence)).is_waiting:
        if time.monotonic() > give_up:
            raise Refused(
                f"its node has not answered for {PATIENCE_S:.0f} s; 'spinney nodes' shows its state"
            )
        time.sleep(performer.poll_s)
    text = _text(files, request.file)
    if not text:
        raise Refused(
            f"the attempt ended before its node could look; 'spinney show {job}' shows what became of it"
        )
    return text


def _paths(attempt: Attempt) -> list[str]:
    """Return the paths in the job's folder where stacks of an attempt may be kept."""
    from spinney.node.workers.stack_taker import KINDS, file_path

    return [file_path(attempt.stage, attempt.fence, kind) for kind in KINDS]


def _text(files: Files, path: str) -> str:
    """Return the text of a file in the job's folder; empty where there is none."""
    return b"".join(files.content(path, must=False)).decode("utf-8", "replace")
