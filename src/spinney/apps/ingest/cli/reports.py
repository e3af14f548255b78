"""``report``: the reports of a batch."""

import sys
from typing import Annotated

import typer

from spinney.apps.ingest.cli.arguments import BatchArgument
from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.verbs.batches import Form, Report
from spinney.command_line import JsonOption, StoreOption, display, files_of
from spinney.errors import UsageError


def add_to(app: typer.Typer) -> None:
    app.command()(report)


def report(
    which: BatchArgument,
    number: Annotated[
        int | None,
        typer.Option(
            "--number",
            metavar="N",
            min=1,
            help="The number of the report (default: the last).",
            show_default=False,
        ),
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Make a report of the current state, without sending it.")
    ] = False,
    html: Annotated[bool, typer.Option("--html", help="Print it as HTML.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Print a report of a batch: the last one that was sent, or as it would be now."""
    if now and number is not None:
        raise UsageError("--now and --number exclude each other; give only one of them")
    if html and json:
        raise UsageError("--html and --json exclude each other; give only one of them")
    form = Form.HTML if html else Form.JSON if json else Form.TEXT
    with open_session(store) as service:
        answer = service.do(Report(batch=which, number=number, now=now, form=form))
        if not now:
            with display.closed_pipe_ends_output():
                for piece in files_of(service.control, answer["job"], store).content(answer["path"]):
                    sys.stdout.buffer.write(piece)
            return
    if json:
        display.print_json(answer["report"])
        return
    with display.closed_pipe_ends_output():
        sys.stdout.write(answer["report"])
