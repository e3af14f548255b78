"""The command ``relabel``: assign a tree of jobs to another collection."""

import typer

from spinney.features.collections.commands import RelabelJob, Relabelled
from spinney.terminal import completion
from spinney.terminal.commands import command
from spinney.terminal.options.arguments import argument

app = typer.Typer()


@command(
    app,
    RelabelJob,
    "relabel",
    job=argument("JOB"),
    collection=argument(
        "COLLECTION", "The collection; without one the jobs belong to none.", completion.collections
    ),
)
def relabelled_text(tree: Relabelled) -> str:
    """Assign a settled job, with all jobs below it, to another collection."""
    return f"job {tree.job} and the jobs below it belong to {tree.collection or 'no collection'}"
