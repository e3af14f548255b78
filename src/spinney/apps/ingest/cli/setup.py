"""``init``: prepare an ingest service for its first batch.

It works on folders and databases of this host, and so never through a server.
"""

import typer

from spinney.apps.ingest.config.settings import load
from spinney.apps.ingest.verbs.service import refused
from spinney.apps.ingest.verbs.setup import prepare
from spinney.command_line import JsonOption, display, endpoint

app = typer.Typer()


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
