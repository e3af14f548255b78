"""``report``: what became of a batch."""

import sys
from typing import Annotated, Any

import typer

from spinney.apps.ingest import report as reports
from spinney.apps.ingest.cli.session import serving
from spinney.apps.ingest.cli.words import BatchArgument
from spinney.apps.ingest.report.files import PAGE_OBJECTS
from spinney.apps.ingest.staff import as_of_now, batch, path_of
from spinney.cli import showing
from spinney.cli.arguments import JsonOption, StoreOption
from spinney.cli.job_files import job_files
from spinney.model.errors import UsageError


def add_to(app: typer.Typer) -> None:
    app.command()(report)


def report(
    which: BatchArgument,
    number: Annotated[
        int | None, typer.Option("--number", metavar="N", min=1, help="This one; else the last.", show_default=False)
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="As of now, whatever has been told; told to nobody.")] = False,
    html: Annotated[bool, typer.Option("--html", help="As a page.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Print a report of a batch: of the last that was told, or as it would be now."""
    if now and number is not None:
        raise UsageError("--now and --number mean different reports; give one of them")
    if html and json:
        raise UsageError("--html and --json are different forms; give one of them")
    with serving(store) as service:
        found = batch(service, which)
        if not now:
            form = "html" if html else "json" if json else "txt"
            path = path_of(found, f"report.{form}", number)
            with showing.reader_may_leave():
                for piece in job_files(service.store, found.job.id, store).content(path):
                    sys.stdout.buffer.write(piece)
            return
        made = as_of_now(service, found)
    if json:
        showing.as_json(_document(made))
        return
    text = reports.html(made, limit=PAGE_OBJECTS, completed=PAGE_OBJECTS) if html else reports.text(
        made, all_objects=True
    )  # fmt: skip
    with showing.reader_may_leave():
        sys.stdout.write(text)


def _document(made: reports.Report) -> dict[str, Any]:
    lists = {name: getattr(made, name) for name in ("completed", "failed", "others")}
    return made.head() | lists
