"""``init``: what an ingest service needs before its first batch."""

import typer

from spinney.apps.ingest.settings import load
from spinney.apps.ingest.staff import prepare, refused
from spinney.cli import place, showing
from spinney.cli.arguments import JsonOption


def add_to(app: typer.Typer) -> None:
    app.command()(init)


def init(json: JsonOption = False) -> None:
    """Make the folders, the inventory's tables and the storage roots that the settings name.

    Asked for again, it changes nothing. The engine's own store is made by 'spinney init'.
    """
    place.require_at_hand(None)
    with refused():
        made = list(prepare(load()))
    if json:
        showing.as_json({each.what: each.where for each in made})
        return
    for each in made:
        showing.console().print(f"{each.what:<16} {showing.safe(each.where)}", soft_wrap=True)
