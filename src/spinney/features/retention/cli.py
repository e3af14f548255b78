"""The command ``keep``: how long settled jobs are kept.

Without arguments it shows the rules, with three it sets one, with ``--sweep`` it also removes what has
expired. A sweep removes folders itself, so it needs the store and its folders and does not work through a
server.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from spinney.commands import Performs
from spinney.features.retention.commands import (
    ListRetention,
    SetRetention,
    ShowRetentionClock,
    UnsetRetention,
)
from spinney.model.errors import UsageError
from spinney.model.settings.retention import ALL_TYPES
from spinney.model.values import durations
from spinney.model.values.texts import counted
from spinney.terminal import completion, endpoint
from spinney.terminal.connection import open_commands, open_control, resolve_settings
from spinney.terminal.options.arguments import ByOption, JsonOption, ReasonOption, StoreOption, argument
from spinney.terminal.output import display
from spinney.terminal.output.progress_line import ProgressLine

if TYPE_CHECKING:
    from spinney.commands.control import Control

FOREVER, DECLARED = "forever", "declared"
"""Words for a time: for ever, and what the job type declares."""


app = typer.Typer()


@app.command()
def keep(
    type_: Annotated[
        str | None, argument("TYPE", "A job type, or '*' (in quotes) for all types.", completion.types)
    ] = None,
    state: Annotated[
        str | None,
        argument(
            "STATE",
            "The state of the settled jobs; 'deleted' is for the tombstones of deleted jobs.",
            completion.states,
        ),
    ] = None,
    time_: Annotated[
        str | None,
        argument(
            "TIME",
            "How long: 30d, 12h, 'forever', or 'declared' for what the job type declares.",
            completion.periods,
        ),
    ] = None,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep", help="Remove expired jobs now, by this host's clock, which is trusted from then on."
        ),
    ] = False,
    reason: ReasonOption = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Show or set how long settled jobs are kept (default: for ever).

    An expired job is removed for good, with its folder and all jobs below it. The type and state of the job at the top
    of a tree decide for the whole tree, which stays as long as any job in it is open. Nodes remove expired jobs every
    hour.
    """
    if type_ is not None and state is not None and time_ is not None:
        with open_commands(store, by) as performer:
            _set(performer, type_, state, time_, reason, json=json)
    elif type_ is not None:
        raise UsageError(
            "the command needs a type, a state and a time: spinney keep resize completed 30d; "
            "'spinney keep' alone shows the rules in force"
        )
    elif not sweep:
        _show(store, json=json)
    if sweep:
        if endpoint.server(store):
            raise UsageError(
                "--sweep works directly on a store, not through a server; a node removes expired jobs within the hour"
            )
        with open_control(store, by) as control:
            _sweep(control, store, json=json)


def _show(store: str | None, *, json: bool) -> None:
    """Print all rules, also those that others overrule, which are marked so."""
    with open_commands(store) as performer:
        rules = performer.do(ListRetention()).items
        clock = performer.do(ShowRetentionClock())
    display.print_list(
        rules,
        {
            "TYPE": lambda rule: rule.type,
            "STATE": lambda rule: rule.state,
            "KEPT FOR": lambda rule: "ever" if rule.keep_s is None else durations.shown(rule.keep_s),
            "BY": lambda rule: rule.by or "(the type)",
            "": lambda rule: "" if rule.in_force else "overruled",
        },
        json=json,
        empty="everything is kept for ever; 'spinney keep TYPE STATE 30d' sets how long",
    )
    if clock.jumped_us is not None:
        typer.echo(
            "nodes remove no jobs: the clock of the leader, or of a server where no node leads, jumped from "
            f"{display.format_time(clock.trusted_us)} to "
            f"{display.format_time(clock.jumped_us)}; set it right if it is wrong. If no node ran in between, nodes go "
            f"on at {display.format_time(clock.trusted_again_us)}, or at once after 'spinney keep --sweep'",
            err=True,
        )


def _set(performer: Performs, type_: str, state: str, time_: str, reason: str | None, *, json: bool) -> None:
    """Set a rule, or remove it for the word ``declared``, and print what is in force then."""
    jobs = f"{state} jobs of {'all types' if type_ == ALL_TYPES else type_}"
    if time_ == DECLARED:
        unset = performer.do(UnsetRetention(type=type_, state=state, reason=reason)).unset
        if json:
            display.print_json_lines(performer.do(ListRetention()).items)
        elif unset:
            typer.echo(f"{jobs} are kept as the type says")
        else:
            typer.echo(f"nothing was set for {jobs}")
        return
    keep_s = None if time_ == FOREVER else durations.seconds(time_, "TIME")
    change = performer.do(SetRetention(type=type_, state=state, keep_s=keep_s, reason=reason))
    if json:
        display.print_json_lines([change.keeping])
        return
    typer.echo(f"{jobs} are kept {_for(change.keeping.keep_s)}")
    for other in change.overruled:
        typer.echo(f"  instead of {_for(other.keep_s)}, as the type {display.safe(other.type)} says")


def _sweep(control: "Control", store: str | None, *, json: bool) -> None:
    """Walk over all jobs once, with a line of progress on a terminal, and print how many were removed."""
    from spinney.features.retention.sweep import sweep
    from spinney.folders import folders

    root = resolve_settings(store).folders
    progress = ProgressLine()
    removed = sweep(
        control,
        lambda job_id: folders.remove(root, job_id),
        on_progress=lambda removed, at: progress.show(f"{removed:,} removed, looked up to job {at:,}"),
    )
    progress.end()
    if json:
        display.print_json_lines([{"removed": removed}])
    else:
        typer.echo(f"{counted(removed, 'job')} removed")


def _for(keep_s: float | None) -> str:
    return "for ever" if keep_s is None else f"for {durations.shown(keep_s)}"
