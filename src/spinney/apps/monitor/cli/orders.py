"""Commands that start and stop checks.

They submit and cancel jobs, so they return at once unless ``--wait`` is given, and a node has to run."""

from typing import Annotated

import typer
from pydantic import ValidationError

from spinney import settings_files
from spinney.apps.monitor import requests
from spinney.apps.monitor.sequences import Selection
from spinney.command_line import ByOption, StoreOption, open_control, use_store, wait_for
from spinney.errors import UsageError


def check(
    gids: Annotated[
        list[int] | None, typer.Argument(help="Numbers of services; none: see the options.")
    ] = None,
    entity: Annotated[int | None, typer.Option(help="All services of this entity.")] = None,
    description: Annotated[
        str | None, typer.Option(help="Services whose description is like this: 'Soil%'.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0, help="Services that were not checked for so many hours.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Services that failed their last check.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="All services.")] = False,
    store: StoreOption = None,
    by: ByOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all checks have ended.")] = False,
) -> None:
    """Check services: one, some, those of an entity, or all. Their checks are a sequence, whose number is printed."""
    use_store(store)
    ways = [bool(gids), entity is not None, description is not None, hours is not None, failed, everything]
    if sum(ways) != 1:
        raise UsageError(
            "name the services in one way: numbers, --entity, --description, --hours, --failed or --all"
        )
    try:
        selection = Selection(
            gids=tuple(gids or ()),
            eid=entity,
            description=description,
            unchecked_s=None if hours is None else hours * 3600,
            state="error" if failed else None,
        )
    except ValidationError as error:
        raise UsageError(f"{settings_files.faults(error)[0]}; correct it") from None
    with open_control(store, by) as control:
        job_id = requests.start(control, selection)
        typer.echo(job_id)
        if wait:
            wait_for(control, [job_id])


def stop(
    sequence: Annotated[
        list[int] | None, typer.Argument(help="Numbers of sequences, as check prints them.")
    ] = None,
    service: Annotated[int | None, typer.Option(help="The checks of this service.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sequences.")] = False,
    store: StoreOption = None,
    by: ByOption = None,
) -> None:
    """Stop sequences of checks. A running check ends after its current task."""
    use_store(store)
    if sum([bool(sequence), service is not None, everything]) != 1:
        raise UsageError("name what to stop in one way: numbers of sequences, --service or --all")
    with open_control(store, by) as control:
        if service is not None:
            typer.echo(f"{requests.stop_service(control, service):,} checks stopped")
        else:
            typer.echo(f"{requests.stop(control, sequence or None):,} sequences stopped")
