"""``hold``, ``release``, ``pause``, ``unpause``: stops, and their end. ``spinney holds`` lists them."""

from collections.abc import Sequence
from typing import Annotated

import typer

from spinney.apps.ingest import staff
from spinney.apps.ingest.cli import words
from spinney.apps.ingest.cli.session import serving
from spinney.apps.ingest.staff import PAUSABLE
from spinney.cli import completing, showing
from spinney.cli.arguments import ByOption, StoreOption
from spinney.model.errors import UsageError
from spinney.model.holds import Hold
from spinney.params.hints import did_you_mean, listed

ReasonOption = Annotated[str, typer.Option("--reason", help="Why; shown with what is held.", show_default=False)]
WhyOption = Annotated[str | None, typer.Option("--reason", help="Why; kept in the audit.", show_default=False)]
WhatArgument = Annotated[
    str, typer.Argument(metavar="[QUEUE]", help="ingest, access-small or access-large.", autocompletion=words.pausable)
]


def add_to(app: typer.Typer) -> None:
    for command in (hold, release, pause, unpause):
        app.command()(command)


def hold(
    collection: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="All of its batches and objects.",
                            autocompletion=completing.collections),
    ],
    reason: ReasonOption,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Let nothing of a collection start; what runs finishes its stage, what comes is held."""
    with serving(store, by) as service:
        laid = staff.hold(service, collection, reason)
        held = service.store.holds.held(laid.id)
    jobs = "1 job is" if held == 1 else f"{held:,} jobs are"
    typer.echo(f"hold {laid.id} on collection {collection}: {jobs} held")


def release(
    collection: Annotated[
        str | None, typer.Argument(metavar="[COLLECTION]", help="That is held.", show_default=False,
                                   autocompletion=completing.collections),
    ] = None,
    batch: Annotated[
        str | None, typer.Option(metavar="BATCH", help="One that is held as it came.", show_default=False)
    ] = None,
    reason: WhyOption = None,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Let a held collection go on, or a batch that its profile holds."""
    if (collection is None) == (batch is None):
        raise UsageError("name a collection, or a batch with --batch: one of the two")
    with serving(store, by) as service:
        if batch is not None:
            _release_batch(service, batch)
            return
        assert collection is not None
        _tell_ended(staff.release(service, collection, reason))


def pause(
    what: WhatArgument = "ingest", *, reason: ReasonOption, by: ByOption = None, store: StoreOption = None
) -> None:
    """Let nothing of ingest, or of an access queue, start until it is unpaused."""
    _require_pausable(what)
    with serving(store, by) as service:
        laid = staff.pause(service, what, reason)
    typer.echo(f"{what} is paused" if laid else f"{what} was paused already; its reason stays")


def unpause(
    what: WhatArgument = "ingest", *, reason: WhyOption = None, by: ByOption = None, store: StoreOption = None
) -> None:
    """Let it go on."""
    _require_pausable(what)
    with serving(store, by) as service:
        lifted = staff.unpause(service, what, reason)
    typer.echo(f"{what} goes on" if lifted else f"{what} was not paused")


def _release_batch(service: staff.Service, name: str) -> None:
    found = staff.batch(service, name)
    over = staff.release_batch(service, found)
    under = f", but stays under {showing.safe(str(over[0]))}" if over else ""
    typer.echo(f"{found.bid} is released{under}")


def _tell_ended(lifted: Sequence[Hold]) -> None:
    for each in lifted:
        typer.echo(f"hold {each.id} on collection {each.name} is released")


def _require_pausable(what: str) -> None:
    if what not in PAUSABLE:
        raise UsageError(f"{what!r} cannot be paused{did_you_mean(what, PAUSABLE)}; name one of: {listed(PAUSABLE)}")
