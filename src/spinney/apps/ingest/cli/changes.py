"""Commands that change something: ``requeue``, ``delete``, ``sweep``; ``hold``, ``release``, ``pause``, ``unpause``;
``init``.

Objects and batches that refuse are reported on stderr, the others are done, and the exit code is 1 if any refused. A
hold is one of the engine, on a collection, a queue or a job type, and ``spinney holds`` lists them; only the hold of a
batch by its profile is the service's own (``batches.held_batches``). ``init`` works on folders and databases of this
host, and so never through a server.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from spinney.apps.ingest.cli.session import command, open_session
from spinney.apps.ingest.config.settings import load
from spinney.apps.ingest.verbs.deletions import Delete, Sweep
from spinney.apps.ingest.verbs.holds import Hold, Pause, Release, Unpause
from spinney.apps.ingest.verbs.requeues import Requeue
from spinney.apps.ingest.verbs.service import refused
from spinney.apps.ingest.verbs.setup import prepare
from spinney.command_line import (
    ByOption,
    Exit,
    JsonOption,
    StoreOption,
    display,
    endpoint,
    for_each,
    with_fields,
)
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


@command(app, Hold)
def show_hold(query: Hold, answer: Mapping[str, Any]) -> None:
    """Print the hold's number, and how many jobs it holds now."""
    held = answer["jobs"]
    jobs = "1 job is" if held == 1 else f"{held:,} jobs are"
    typer.echo(f"hold {answer['hold']} on collection {query.collection}: {jobs} held")


@command(app, Release)
def show_release(query: Release, answer: Mapping[str, Any]) -> None:
    """Print which holds have ended and, for a batch, whether another hold still applies to it."""
    if query.batch is not None:
        under = f", but stays under {display.safe(answer['under'][0])}" if answer["under"] else ""
        typer.echo(f"{answer['batch']} is released{under}")
        return
    for number in answer["ended"]:
        typer.echo(f"hold {number} on collection {query.collection} is released")


@command(app, Pause)
def show_pause(query: Pause, answer: Mapping[str, Any]) -> None:
    """Print whether it is paused now or was before; then its first reason stays."""
    typer.echo(
        f"{query.what} is paused" if answer["laid"] else f"{query.what} was paused already; its reason stays"
    )


@command(app, Unpause)
def show_unpause(query: Unpause, answer: Mapping[str, Any]) -> None:
    """Print whether it continues, or was not paused."""
    typer.echo(f"{query.what} continues" if answer["lifted"] else f"{query.what} was not paused")


@app.command()
def init(json: JsonOption = False) -> None:
    """Create the folders, the inventory's tables and the storage roots that the settings name.

    Running it again changes nothing. 'spinney init' creates the engine's own store.
    """
    endpoint.require_local(None)
    with refused():
        prepared = list(prepare(load()))
    if json:
        display.print_json(dict(prepared))
        return
    for name, place in prepared:
        display.console().print(f"{name:<16} {display.safe(place)}", soft_wrap=True)
