"""``init``: what an ingest service needs before its first batch."""

import typer

from spinney.apps.ingest.config.settings import load
from spinney.apps.ingest.staff import prepare, refused
from spinney.command_line import JsonOption, display, endpoint


def add_to(app: typer.Typer) -> None:
    app.command()(init)


def init(json: JsonOption = False) -> None:
    """Make the folders, the inventory's tables and the storage roots that the settings name.

    Asked for again, it changes nothing. The engine's own store is made by 'spinney init'.
    """
    endpoint.require_local(None)
    with refused():
        made = list(prepare(load()))
    if json:
        display.print_json({each.what: each.where for each in made})
        return
    for each in made:
        display.console().print(f"{each.what:<16} {display.safe(each.where)}", soft_wrap=True)
