"""``hold``, ``release``, ``pause``, ``unpause``: set and end holds. ``spinney holds`` lists them."""

from typing import Annotated

import typer

from spinney.apps.ingest.cli import arguments
from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.verbs.operations import Hold, Pause, Release, Unpause
from spinney.command_line import ByOption, StoreOption, completion, display
from spinney.errors import UsageError

ReasonOption = Annotated[
    str,
    typer.Option("--reason", help="The reason, shown with every held batch and object.", show_default=False),
]
WhyOption = Annotated[
    str | None, typer.Option("--reason", help="The reason, recorded in the audit log.", show_default=False)
]
WhatArgument = Annotated[
    str,
    typer.Argument(
        metavar="[QUEUE]",
        help="The queue: ingest, access-small or access-large.",
        autocompletion=arguments.pausable,
    ),
]


def add_to(app: typer.Typer) -> None:
    for command in (hold, release, pause, unpause):
        app.command()(command)


def hold(
    collection: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTION",
            help="The collection, with all its batches and objects.",
            autocompletion=completion.collections,
        ),
    ],
    reason: ReasonOption,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Hold a collection: running jobs finish their stage, all others are held, also those submitted later."""
    with open_session(store, by) as service:
        answer = service.do(Hold(collection=collection, reason=reason))
    held = answer["jobs"]
    jobs = "1 job is" if held == 1 else f"{held:,} jobs are"
    typer.echo(f"hold {answer['hold']} on collection {collection}: {jobs} held")


def release(
    collection: Annotated[
        str | None,
        typer.Argument(
            metavar="[COLLECTION]",
            help="The held collection.",
            show_default=False,
            autocompletion=completion.collections,
        ),
    ] = None,
    batch: Annotated[
        str | None, typer.Option(metavar="BATCH", help="A batch that its profile holds.", show_default=False)
    ] = None,
    reason: WhyOption = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Release a held collection, or a batch that its profile holds."""
    if (collection is None) == (batch is None):
        raise UsageError("name either a collection, or a batch with --batch")
    with open_session(store, by) as service:
        answer = service.do(Release(collection=collection, batch=batch, reason=reason))
    if batch is not None:
        under = f", but stays under {display.safe(answer['under'][0])}" if answer["under"] else ""
        typer.echo(f"{answer['batch']} is released{under}")
        return
    for number in answer["ended"]:
        typer.echo(f"hold {number} on collection {collection} is released")


def pause(
    what: WhatArgument = "ingest", *, reason: ReasonOption, by: ByOption = None, store: StoreOption = None
) -> None:
    """Pause ingest, or an access queue: none of its jobs start until it is unpaused."""
    with open_session(store, by) as service:
        new_holds = service.do(Pause(what=what, reason=reason))["laid"]
    typer.echo(f"{what} is paused" if new_holds else f"{what} was paused already; its reason stays")


def unpause(
    what: WhatArgument = "ingest", *, reason: WhyOption = None, by: ByOption = None, store: StoreOption = None
) -> None:
    """Unpause ingest, or an access queue."""
    with open_session(store, by) as service:
        ended_holds = service.do(Unpause(what=what, reason=reason))["lifted"]
    typer.echo(f"{what} goes on" if ended_holds else f"{what} was not paused")
