"""``report``: the reports of a batch.

A report that was sent is a file in the folder of the batch's job, and is fetched like any other file of a
job; one as of now is made by the verb and comes with its answer.
"""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from spinney.apps.ingest.cli.commands import with_fields
from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.verbs.batches import Form, Report
from spinney.command_line import JsonOption, StoreOption, display, files_of
from spinney.errors import UsageError

app = typer.Typer()


@app.command()
@with_fields(Report, without={"form"})
def report(
    fields: Mapping[str, Any],
    html: Annotated[bool, typer.Option("--html", help="Print it as HTML.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Print a report of a batch: the last one that was sent, or as it would be now."""
    if html and json:
        raise UsageError("--html and --json exclude each other; give only one of them")
    query = Report(form=Form.HTML if html else Form.JSON if json else Form.TEXT, **fields)
    with open_session(store) as session:
        answer = session.do(query)
        if not query.now:
            with display.closed_pipe_ends_output():
                for piece in files_of(session.performer, answer["job"], store).content(answer["path"]):
                    sys.stdout.buffer.write(piece)
            return
    if json:
        display.print_json(answer["report"])
        return
    with display.closed_pipe_ends_output():
        sys.stdout.write(answer["report"])
