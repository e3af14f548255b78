"""``requeue``, ``delete``, ``sweep``: failed objects sent back, batches removed."""

from typing import Annotated

import typer

from spinney.apps.ingest.cli import words
from spinney.apps.ingest.cli.session import serving
from spinney.apps.ingest.report.lines import counted
from spinney.apps.ingest.staff import Requeue, batch, plan, requeue, sweep
from spinney.apps.ingest.staff import delete as delete_batch
from spinney.cli import showing
from spinney.cli.arguments import ByOption, JsonOption, StoreOption
from spinney.cli.exits import Exit
from spinney.cli.severally import severally
from spinney.control.bulk import Report

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def add_to(app: typer.Typer) -> None:
    app.command("requeue")(requeue_objects)
    app.command()(delete)
    app.command("sweep")(sweep_batches)


def requeue_objects(
    names: Annotated[
        list[str], typer.Argument(metavar="BATCH|OBJECT...", help="bid-…, jid-…, or the numbers of their jobs.")
    ],
    stage: Annotated[
        str | None,
        typer.Option("--from", metavar="STAGE", help="From this stage on; else behind the last that was successful.",
                     show_default=False, autocompletion=words.stages),
    ] = None,
    message: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those whose message holds this.", show_default=False)
    ] = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Send failed objects back; of a batch all that failed. When they have settled, the batch reports again."""
    with serving(store, by) as service:
        planned = plan(service, names, stage=stage, message=message, exact=dry_run)
        done = [] if dry_run else [(each, requeue(service, each)) for each in planned]
    if dry_run:
        _tell_planned(planned, json=json)
        return
    if json:
        showing.lines({"what": each.what, "requeued": r.touched, "refused": r.refused} for each, r in done)
    for each, report in done:
        _tell_done(each, report, json=json)
    if any(report.refused for _, report in done):
        raise typer.Exit(Exit.REFUSED)


def delete(
    names: Annotated[list[str], typer.Argument(metavar="BATCH...", help="bid-…, or the numbers of their jobs.")],
    completed: Annotated[bool, typer.Option("--completed", help="Also when it completed.")] = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Delete failed or held batches with all that belongs to them; what is archived stays."""
    with serving(store, by) as service:

        def one(name: str) -> None:
            gone = delete_batch(service, batch(service, name), completed=completed)
            if json:
                showing.lines([gone])
            else:
                typer.echo(f"{gone.bid} is deleted, with {counted(gone.jobs - 1, 'object')}")

        severally(names, one)


def sweep_batches(
    days: Annotated[
        int, typer.Option(min=0, max=36_500, metavar="N", help="Batches that completed so many days ago.")
    ],
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Delete what completed long ago, and what was handed in and never became a batch."""
    with serving(store, by) as service:
        found = sweep(service, days=days, dry_run=dry_run)
    if json:
        showing.as_json({"batches": found.batches, "leftovers": [str(place) for place in found.leftovers]})
        return
    for bid in found.batches:
        typer.echo(bid)
    for place in found.leftovers:
        typer.echo(showing.safe(str(place)))
    would = "would be" if dry_run else "are"
    typer.echo(f"{len(found.batches):,} batches and {len(found.leftovers):,} leftovers {would} removed")


def _tell_planned(planned: list[Requeue], *, json: bool) -> None:
    if json:
        showing.lines({"what": each.what, "would_requeue": each.objects} for each in planned)
        return
    for each in planned:
        typer.echo(f"{each.what}: {each.objects:,} would be requeued")


def _tell_done(each: Requeue, report: Report, *, json: bool) -> None:
    if not json:
        told = f"{report.touched:,} requeued" if report.touched else "nothing to requeue"
        typer.echo(f"{each.what}: {told}")
    for sentence in report.refused.values():
        typer.echo(f"spinney: {showing.safe(sentence)}", err=True)
