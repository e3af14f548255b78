"""``requeue``, ``delete``, ``sweep``: requeue failed objects, and delete batches.

Those that refuse are reported on stderr, the others are done, and the exit code is 1 if any refused.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from spinney.apps.ingest.cli.commands import command
from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.verbs.deletions import Delete, Sweep
from spinney.apps.ingest.verbs.requeues import Requeue
from spinney.command_line import ByOption, Exit, JsonOption, StoreOption, display, for_each, with_fields
from spinney.errors import counted

app = typer.Typer()


@command(app, Requeue)
def show_requeues(query: Requeue, answer: Mapping[str, Any], *, json: JsonOption = False) -> None:
    """Print a line for each batch, and one for all objects that were named; refusals go to stderr, and set the exit
    code."""
    results = answer["items"]
    if json:
        display.print_json_lines(results)
    for result in results:
        if query.dry_run:
            text = f"{result['would_requeue']:,} would be requeued"
        else:
            text = f"{result['requeued']:,} requeued" if result["requeued"] else "nothing to requeue"
        if not json:
            typer.echo(f"{result['what']}: {text}")
        for sentence in result.get("refused", {}).values():
            typer.echo(f"spinney: {display.safe(sentence)}", err=True)
    if any(result.get("refused") for result in results):
        raise typer.Exit(Exit.REFUSED)


@app.command()
@with_fields(Delete, without={"batch"})
def delete(
    fields: Mapping[str, Any],
    names: Annotated[
        list[str],
        typer.Argument(metavar="BATCH", help="The batches: bid-…, or the numbers of their jobs."),
    ],
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Delete failed or held batches with all their files; archived objects are kept."""
    with open_session(store, by) as session:

        def delete_batch(name: str) -> None:
            deleted = session.do(Delete(batch=name, **fields))["deleted"]
            if json:
                display.print_json_lines([deleted])
            else:
                typer.echo(f"{deleted['bid']} is deleted, with {counted(deleted['jobs'] - 1, 'object')}")

        for_each(names, delete_batch)


@command(app, Sweep)
def show_sweep(query: Sweep, answer: Mapping[str, Any], *, json: JsonOption = False) -> None:
    """Print what was removed, or would be, a line for each batch and leftover."""
    if json:
        display.print_json(answer)
        return
    for removed in (*answer["batches"], *answer["leftovers"]):
        typer.echo(display.safe(removed))
    would = "would be" if query.dry_run else "are"
    batches, leftovers = len(answer["batches"]), len(answer["leftovers"])
    typer.echo(f"{counted(batches, 'batch', 'batches')} and {counted(leftovers, 'leftover')} {would} removed")
