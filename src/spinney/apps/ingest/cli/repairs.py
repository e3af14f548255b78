"""``requeue``, ``delete``, ``sweep``: requeue failed objects, and delete batches."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from spinney.apps.ingest.cli import arguments
from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.report.lines import counted
from spinney.apps.ingest.verbs.operations import Delete, Requeue, Sweep
from spinney.command_line import ByOption, Exit, JsonOption, StoreOption, display, for_each

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only print what would change.")]


def add_to(app: typer.Typer) -> None:
    app.command("requeue")(requeue_objects)
    app.command()(delete)
    app.command("sweep")(sweep_batches)


def requeue_objects(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="BATCH|OBJECT...", help="Batches or objects: bid-…, jid-…, or the numbers of their jobs."
        ),
    ],
    stage: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STAGE",
            help="Restart from this stage (default: after the last that was successful).",
            show_default=False,
            autocompletion=arguments.stages,
        ),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Only objects whose message contains this text.", show_default=False
        ),
    ] = None,
    completed: Annotated[
        bool, typer.Option("--completed", help="Also completed objects, from their first stage on.")
    ] = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Requeue failed objects; of a batch all that failed. When they have settled, the batch reports again."""
    requeue = Requeue(names=names, stage=stage, message=message, completed=completed, dry_run=dry_run)
    with open_session(store, by) as service:
        results = service.do(requeue)["items"]
    if json:
        display.print_json_lines(list(results))
    for result in results:
        _print_requeue(result, json=json)
    if any(result.get("refused") for result in results):
        raise typer.Exit(Exit.REFUSED)


def delete(
    names: Annotated[
        list[str],
        typer.Argument(metavar="BATCH...", help="The batches: bid-…, or the numbers of their jobs."),
    ],
    completed: Annotated[bool, typer.Option("--completed", help="Also delete completed batches.")] = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Delete failed or held batches with all their files; archived objects are kept."""
    with open_session(store, by) as service:

        def delete_batch(name: str) -> None:
            deleted = service.do(Delete(batch=name, completed=completed))["deleted"]
            if json:
                display.print_json_lines([deleted])
            else:
                typer.echo(f"{deleted['bid']} is deleted, with {counted(deleted['jobs'] - 1, 'object')}")

        for_each(names, delete_batch)


def sweep_batches(
    days: Annotated[
        int,
        typer.Option(
            min=0, max=36_500, metavar="N", help="Only batches that completed at least so many days ago."
        ),
    ],
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Delete batches that completed long ago, and payloads that never became a batch."""
    with open_session(store, by) as service:
        swept = service.do(Sweep(days=days, dry_run=dry_run))
    if json:
        display.print_json(swept)
        return
    for removed in (*swept["batches"], *swept["leftovers"]):
        typer.echo(display.safe(removed))
    would = "would be" if dry_run else "are"
    typer.echo(f"{len(swept['batches']):,} batches and {len(swept['leftovers']):,} leftovers {would} removed")


def _print_requeue(result: Mapping[str, Any], *, json: bool) -> None:
    if "would_requeue" in result:
        text = f"{result['would_requeue']:,} would be requeued"
    else:
        text = f"{result['requeued']:,} requeued" if result["requeued"] else "nothing to requeue"
    if not json:
        typer.echo(f"{result['what']}: {text}")
    for sentence in result.get("refused", {}).values():
        typer.echo(f"spinney: {display.safe(sentence)}", err=True)
