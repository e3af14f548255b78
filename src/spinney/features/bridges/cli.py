"""The command ``bridges``: list bridges to other systems."""

from typing import Annotated

import typer

from spinney.terminal import display
from spinney.terminal.arguments import JsonOption, ReasonOption, StoreOption
from spinney.terminal.connection import open_commands


def add_to(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(bridges)


def bridges(
    forget: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Forget this bridge, which no longer runs; its jobs stay.",
            show_default=False,
        ),
    ] = None,
    *,
    reason: ReasonOption = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List bridges to other systems: how far behind each is, and its last trouble."""
    from spinney.features.bridges.commands import ForgetBridge, ListBridges

    with open_commands(store) as performer:
        if forget is not None:
            performer.do(ForgetBridge(name=forget, reason=reason))
            typer.echo(f"the bridge {forget} is forgotten")
            return
        listed = performer.do(ListBridges()).items
    display.print_list(
        listed,
        {
            "BRIDGE": lambda bridge: bridge.name,
            "SEEN": lambda bridge: display.format_time(bridge.seen_us),
            "LINKS": lambda bridge: f"{bridge.links:,}",
            "BEHIND": lambda bridge: f"{bridge.behind:,}",
            "SINCE": lambda bridge: display.format_time(bridge.behind_since_us),
            "TROUBLE": lambda bridge: (
                f"{'' if bridge.in_trouble else 'over: '}{bridge.trouble}" if bridge.trouble else ""
            ),
        },
        json=json,
        empty="no bridge has reported yet",
    )
