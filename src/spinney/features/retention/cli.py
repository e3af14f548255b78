"""The command ``keep``: how long settled jobs are kept."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.model.errors import UsageError
from spinney.model.settings.retention import ALL_TYPES
from spinney.model.values import durations
from spinney.terminal import completion, display, endpoint
from spinney.terminal.arguments import ByOption, JsonOption, StoreOption
from spinney.terminal.connection import open_commands, open_control, resolve_settings

if TYPE_CHECKING:
    from spinney.commands import Performs
    from spinney.control import Control
    from spinney.model.rights.operators import RetentionRule

FOREVER, DECLARED = "forever", "declared"
_TELL_S = 0.5


def add_to(app: typer.Typer) -> None:
    app.command()(keep)


def keep(
    type_: Annotated[
        str | None,
        typer.Argument(
            metavar="[TYPE",
            help="A job type, or '*' (in quotes) for all types.",
            show_default=False,
            autocompletion=completion.types,
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Argument(
            metavar="STATE",
            help="The state of the settled jobs; 'deleted' is for the tombstones of deleted jobs.",
            show_default=False,
            autocompletion=completion.states,
        ),
    ] = None,
    time_: Annotated[
        str | None,
        typer.Argument(
            metavar="TIME]",
            help="How long: 30d, 12h, 'forever', or 'declared' for what the job type declares.",
            show_default=False,
            autocompletion=completion.periods,
        ),
    ] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Remove expired jobs now, instead of when a node next does it.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="The reason, recorded in the audit log.", show_default=False)
    ] = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Show or set how long settled jobs are kept (default: for ever).

    An expired job is removed for good, with its folder and all jobs below it. The type and state of the job at the top
    of a tree decide for the whole tree, which stays as long as any job in it is open. Nodes remove expired jobs every
    hour.
    """
    given = [type_, state, time_]
    if all(word is not None for word in given):
        with open_commands(store, by) as performer:
            _set(performer, str(type_), str(state), str(time_), reason, json=json)
    elif any(word is not None for word in given):
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
    from spinney.features.retention.commands import ListRetention

    with open_commands(store) as performer:
        rules = performer.do(ListRetention()).items
    if json:
        display.print_json_lines(rules)
    elif not rules:
        typer.echo("everything is kept for ever; 'spinney keep TYPE STATE 30d' sets how long")
    else:
        rows = [(k.type, k.state, _period_text(k.keep_s), k.by or "(the type)", _note(k)) for k in rules]
        display.print_table(("TYPE", "STATE", "KEPT FOR", "BY", ""), rows)


def _set(
    performer: "Performs", type_: str, state: str, time_: str, reason: str | None, *, json: bool
) -> None:
    from spinney.features.retention.commands import ListRetention, SetRetention, UnsetRetention

    whose = "all types" if type_ == ALL_TYPES else type_
    if time_ == DECLARED:
        taken_back = performer.do(UnsetRetention(type=type_, state=state, reason=reason)).unset
        if json:
            display.print_json_lines(performer.do(ListRetention()).items)
        elif taken_back:
            typer.echo(f"{state} jobs of {whose} are kept as the type says")
        else:
            typer.echo(f"nothing was set for {state} jobs of {whose}")
        return
    keep_s = None if time_ == FOREVER else durations.seconds(time_)
    done = performer.do(SetRetention(type=type_, state=state, keep_s=keep_s, reason=reason))
    if json:
        display.print_json_lines([done.keeping])
        return
    typer.echo(f"{state} jobs of {whose} are kept {_for(done.keeping.keep_s)}")
    for other in done.overruled:
        typer.echo(f"  instead of {_for(other.keep_s)}, as the type {display.safe(other.type)} says")


def _sweep(control: "Control", store: str | None, *, json: bool) -> None:
    from spinney.features.retention.sweep import sweep
    from spinney.folders import folders

    root = resolve_settings(store).folders
    progress = _Progress()
    removed = sweep(control, lambda job_id: folders.remove(root, job_id), told=progress)
    progress.end()
    if json:
        display.print_json_lines([{"removed": removed}])
    else:
        typer.echo(f"{removed:,} {'job' if removed == 1 else 'jobs'} removed")


class _Progress:
    """A line on the terminal that is written over; nothing where there is no terminal."""

    def __init__(self) -> None:
        self._there = sys.stderr.isatty()
        self._next_s = time.monotonic() + _TELL_S

    def __call__(self, removed: int, at: int) -> None:
        if self._there and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _TELL_S
            typer.echo(f"\r{removed:,} removed, looked up to job {at:,}   ", nl=False, err=True)

    def end(self) -> None:
        if self._there:
            typer.echo("\r\033[K", nl=False, err=True)


def _period_text(keep_s: float | None) -> str:
    return "ever" if keep_s is None else durations.shown(keep_s)


def _for(keep_s: float | None) -> str:
    return "for ever" if keep_s is None else f"for {durations.shown(keep_s)}"


def _note(keeping: "RetentionRule") -> str:
    return "" if keeping.in_force else "overruled"
