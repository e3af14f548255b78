"""The command ``relabel``: assign a tree of jobs to another collection."""

from typing import Annotated

import typer

from spinney.terminal import completion
from spinney.terminal.arguments import ByOption, JobArgument, ReasonOption, StoreOption
from spinney.terminal.connection import perform

app = typer.Typer()


@app.command()
def relabel(
    job: JobArgument,
    collection: Annotated[
        str | None,
        typer.Argument(
            help="The collection; without one the jobs belong to none.",
            show_default=False,
            autocompletion=completion.collections,
        ),
    ] = None,
    reason: ReasonOption = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Assign a settled job, with all jobs below it, to another collection."""
    from spinney.features.collections.commands import RelabelJob

    perform(RelabelJob(job=job, collection=collection, reason=reason), store, by)
    typer.echo(f"Job {job} and the jobs below it belong to {collection or 'no collection'}")
