"""The commands ``bridges`` and ``bridge``: list bridges to other systems, and check one."""

from typing import Annotated

import typer

from spinney.features.bridges.commands import ForgetBridge, ListBridges
from spinney.model.errors import UsageError
from spinney.terminal.applications import installed_commands
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import (
    ByOption,
    JsonOption,
    ReasonOption,
    StoreOption,
    argument,
    command_group,
    option,
)
from spinney.terminal.output import display

app = typer.Typer()
group = command_group(app, "bridge")


@app.command()
def bridges(
    forget: Annotated[
        str | None,
        option(metavar="NAME", help_="Forget this bridge, which no longer runs; its jobs stay."),
    ] = None,
    *,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """List bridges to other systems: how far behind each is, and its last trouble."""
    with open_commands(store, by) as performer:
        if forget is not None:
            performer.do(ForgetBridge(name=forget, reason=reason))
            display.print_result({"deleted": forget}, f"bridge {forget} is forgotten", json=json)
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


@group.command(context_settings={"allow_interspersed_args": False})
def check(
    system: Annotated[
        str,
        argument("SYSTEM", "The other system: disbatch, for example."),
    ],
    words: Annotated[
        list[str] | None,
        argument("OPTIONS", "Options of that command."),
    ] = None,
) -> None:
    """Compare the entries of another system with the jobs here, by 'spinney SYSTEM compare', or 'check' without that.

    The options are those of that command: where the other system is, and --repair where it can mend what differs."""
    application = installed_commands().applications.get(system)
    commands = getattr(application and application.load(), "commands", {})
    name = "compare" if "compare" in commands else "check"
    if name not in commands:
        raise UsageError(
            f"there is no command 'spinney {system} compare'; name a system of 'spinney bridges'"
        )
    raise typer.Exit(
        commands[name].main(words or [], prog_name=f"spinney {system} {name}", standalone_mode=False) or 0
    )
