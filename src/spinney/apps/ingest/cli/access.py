"""``fetch``, ``token``, ``fixity``: what goes out, and whether what is stored is still what it was."""

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from spinney.apps.ingest.access import Format, Status, Ticket, look, request
from spinney.apps.ingest.cli.session import refusing, serving
from spinney.apps.ingest.inventory import Damaged, open_inventory
from spinney.apps.ingest.settings import load
from spinney.apps.ingest.staff.service import introduce
from spinney.cli import showing
from spinney.cli.arguments import JsonOption, StoreOption
from spinney.cli.exits import Exit

_COUNTED = 10_000
_LISTED = 1000
_OPEN = (Status.QUEUED, Status.HELD, Status.PACKING)


def add_to(app: typer.Typer) -> None:
    app.command()(fetch)
    app.command("token")(show_token)
    app.command()(fixity)


def fetch(
    ark: Annotated[str, typer.Argument(metavar="ARK", help="The object.")],
    version: Annotated[
        int | None, typer.Option(min=1, help="Which version; the newest unless given.", show_default=False)
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="How it is to be packed.")] = Format.ZIP,
    submitter: Annotated[
        str | None, typer.Option(help="In whose name; else your login name.", show_default=False)
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it is there; exit code 1 when it does not come.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Ask for a package of a stored object; prints a token, by which 'token' tells what became of it."""
    from spinney.cli.waiting import LOOK_S, wait_for

    with serving(store, submitter) as service:
        introduce(service.store)
        ticket = request(service.control, service.settings, ark, version=version, format_=format_)
        if wait and not json:
            wait_for(service.control.look, [ticket.job])
            ticket = look(service.store, service.settings, ticket.token)
        while wait and ticket.status in _OPEN:
            time.sleep(LOOK_S)
            ticket = look(service.store, service.settings, ticket.token)
    _tell(ticket, json=json)
    if wait and ticket.status is not Status.READY:
        raise typer.Exit(Exit.REFUSED)


def show_token(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="As 'fetch' printed it.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show what became of a request: its status, when it will be there, or where it is and how long."""
    with serving(store) as service:
        ticket = look(service.store, service.settings, token)
    _tell(ticket, json=json)


def fixity(
    damaged: Annotated[
        bool, typer.Option("--damaged", help="List the damaged objects; exit code 1 when there are any.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show how many stored objects are due to be read again, and how many are damaged."""
    settings = load()
    before = datetime.now(UTC) - timedelta(days=settings.fixity.every_days)
    with refusing(), open_inventory(settings.inventory) as inventory:
        found = inventory.damaged(_LISTED if damaged else _COUNTED)
        due = 0 if damaged else len(inventory.due_for_fixity(before, _COUNTED))
    if damaged:
        _list(found, json=json)
    elif json:
        showing.as_json({"due": due, "damaged": len(found)})
    else:
        showing.console().print(f"due      {_counted(due)}\ndamaged  {_counted(len(found))}")
    if damaged and found:
        raise typer.Exit(Exit.REFUSED)


def _tell(ticket: Ticket, *, json: bool) -> None:
    told = ticket.model_dump(mode="json", exclude_none=True)
    if json:
        showing.as_json(told)
        return
    for name in ("anticipated", "expires"):
        moment = getattr(ticket, name)
        if moment is not None:
            told[name] = showing.moment(int(moment.timestamp() * 1e6))
    for name, value in told.items():
        showing.console().print(f"{name:<12} {showing.cell(value)}", soft_wrap=True, markup=False, highlight=False)


def _list(found: list[Damaged], *, json: bool) -> None:
    if json:
        showing.lines(
            {"ark": d.ark, "collection": d.collection, "since": d.since, "audited": d.audit.when,
             "faults": list(d.audit.faults)}
            for d in found
        )  # fmt: skip
        return
    showing.table(
        ("ARK", "COLLECTION", "SINCE", "FAULTS", "FIRST"),
        (
            (d.ark, d.collection, showing.moment(int(d.since.timestamp() * 1e6)), len(d.audit.faults),
             d.audit.faults[0])
            for d in found
        ),
    )  # fmt: skip


def _counted(number: int) -> str:
    return f"{number:,} or more" if number == _COUNTED else f"{number:,}"
