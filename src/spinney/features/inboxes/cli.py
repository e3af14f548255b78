"""The command ``inbox``: folders where dropped files become jobs.

``add`` and the others set what nodes do; none of them touches the folder itself. ``upload`` sends a file from
this host, into the store's folders directly or through a server.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from spinney.features.submission.cli import JobOptions, ParamOption, ParamsFileOption, params_from_options
from spinney.model.values import durations
from spinney.terminal import completion, display, endpoint
from spinney.terminal.arguments import (
    ByOption,
    InternalOption,
    JsonOption,
    StoreOption,
    argument,
    command_group,
    option,
)
from spinney.terminal.connection import open_client, open_commands, open_control, perform, resolve_settings
from spinney.terminal.option_groups import ChangeOptions, with_option_groups

if TYPE_CHECKING:
    from spinney.commands import LocalPerformer
    from spinney.model.settings.inboxes import Inbox, Upload

ARRIVALS = 20
"""How many arrivals ``show`` lists by default."""
NewNameArgument = Annotated[str, argument("NAME", "The inbox's name.")]
NameArgument = Annotated[str, argument("NAME", "The inbox's name.", completion.inboxes)]


DuplicatesOption = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="What to do with files of the same content as an earlier one: refuse or accept.",
    ),
]


app = typer.Typer()
inbox = command_group(app, "inbox")


@inbox.command()
@with_option_groups
def add(
    name: NewNameArgument,
    folder: Annotated[str, argument("FOLDER", "The folder, as a whole path on the hosts that see it.")],
    type_: Annotated[str, argument("TYPE", "The job type.", completion.types)],
    *,
    param: ParamOption = None,
    params: ParamsFileOption = None,
    jobs: JobOptions,
    rest: Annotated[
        str, typer.Option(metavar="TIME", help="Take a file when it has not changed for so long.")
    ] = "10s",
    duplicates: DuplicatesOption = "refuse",
    host: Annotated[
        str | None,
        option(
            metavar="HOST",
            help_="Only nodes of this host look there; needed where other hosts have a folder of that path that is "
            "not the same.",
        ),
    ] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Create the inbox paused.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an existing inbox of that name.")
    ] = False,
    internal: InternalOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Create an inbox, or replace one (--replace): each file or folder that is dropped into FOLDER becomes a job."""
    from spinney.features.inboxes.commands import PutInbox

    if endpoint.server(store):
        endpoint.require_not_internal(internal)
    with open_commands(store, by) as performer:
        command = PutInbox(
            name=name,
            folder=folder.rstrip("/") or folder,
            type=type_,
            params=params_from_options(performer, type_, param or [], params),
            options={key: value for key, value in asdict(jobs).items() if value is not None},
            host=host,
            rest_s=durations.of_word(rest, "--rest"),
            duplicates=duplicates,
            paused=paused,
            replace=replace,
        )
        inbox = (
            command.put(cast("LocalPerformer", performer), internal=True)
            if internal
            else performer.do(command)
        )
    typer.echo(f"inbox {name}: {_state(inbox, is_new=True)}")


@inbox.command("list")
def list_inboxes(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the inboxes, by name."""
    from spinney.features.inboxes.commands import ListInboxes

    inboxes = perform(ListInboxes(), store).items
    display.print_list(
        inboxes,
        {
            "NAME": lambda inbox: inbox.name,
            "FOLDER": lambda inbox: inbox.folder,
            "TYPE": lambda inbox: inbox.type,
            "STATE": _state,
            "BY": lambda inbox: inbox.by,
        },
        json=json,
    )


@inbox.command()
def show(
    name: NameArgument,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many arrivals.")] = ARRIVALS,
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Of the arrivals only those that were rejected.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show an inbox with its latest arrivals: their jobs, or why they were rejected."""
    from spinney.features.inboxes.commands import ListArrivals, ShowInbox

    with open_commands(store) as performer:
        inbox = performer.do(ShowInbox(name=name))
        arrivals = performer.do(ListArrivals(name=name, rejected=rejected, limit=limit)).items
    if json:
        display.print_json({"inbox": inbox, "arrivals": arrivals})
        return
    display.print_facts(
        [
            ("inbox", inbox.name),
            ("folder", inbox.folder),
            ("host", inbox.host),
            ("type", inbox.type),
            ("state", _state(inbox)),
            ("rest", durations.shown(inbox.rest_s)),
            ("duplicates", inbox.duplicates),
            ("by", inbox.by),
            *(("parameter", f"{k} = {display.short_json(v)}") for k, v in inbox.params.items()),
            *inbox.options.items(),
        ]
    )
    if arrivals:
        display.print_table(
            ["ARRIVED", "NAME", "BYTES", "FROM", "IS", "JOB", ""],
            [
                (display.format_time(a.at_us), a.name, f"{a.size:,}", a.owner, a.outcome, a.job_id, a.reason)
                for a in arrivals
            ],
        )


@inbox.command()
@with_option_groups
def pause(name: NameArgument, *, options: ChangeOptions) -> None:
    """Pause an inbox: it takes nothing until it is resumed."""
    _set_paused(name, True, options)


@inbox.command()
@with_option_groups
def resume(name: NameArgument, *, options: ChangeOptions) -> None:
    """Resume a paused inbox."""
    _set_paused(name, False, options)


@inbox.command()
@with_option_groups
def scan(name: NameArgument, *, options: ChangeOptions) -> None:
    """Take all files that are in an inbox now, without waiting until they have stopped changing."""
    from spinney.features.inboxes.commands import ScanInbox

    inbox = options.perform(ScanInbox(name=name, reason=options.reason))
    display.print_result(inbox, f"inbox {name}: {_state(inbox)}", json=options.json)


@inbox.command()
def upload(
    name: NameArgument,
    file: Annotated[Path, argument("FILE", "The file to upload.")],
    as_: Annotated[
        str | None, option("--as", metavar="FILENAME", help_="Give it this name in the job's folder.")
    ] = None,
    json: JsonOption = False,
    by: ByOption = None,
    store: StoreOption = None,
) -> None:
    """Upload a file to an inbox, and print the number of its job. After an interruption the same command
    continues where it stopped."""
    with _sent(name, file, as_, by, store) as pieces:
        for piece in pieces:
            if sys.stderr.isatty():
                share = piece.received / piece.size if piece.size else 1.0
                end = "\n" if piece.is_done else ""
                typer.echo(
                    f"\r{piece.received:,} of {piece.size:,} bytes, {share:.0%}{end}", nl=False, err=True
                )
    display.print_result(piece, f"{piece.job_id}", json=json)


@contextmanager
def _sent(
    inbox: str, file: Path, name: str | None, by: str | None, store: str | None
) -> "Iterator[Iterator[Upload]]":
    """Yield the pieces of a file as they are sent: to the store directly, or through a server."""
    if endpoint.server(store) is not None:
        with open_client(store, by) as client:
            yield client.send_file(inbox, file, name=name)
        return
    from spinney.features.inboxes.uploads import InboxUploads

    with open_control(store, by) as control:
        root = resolve_settings(store).folders
        yield control.part(InboxUploads).send_file(root, inbox, file, name=name)


@inbox.command()
@with_option_groups
def remove(name: NameArgument, *, options: ChangeOptions) -> None:
    """Remove an inbox; its folder and its jobs stay, and the record of contents for --duplicates is deleted."""
    from spinney.features.inboxes.commands import RemoveInbox

    options.perform(RemoveInbox(name=name, reason=options.reason))
    display.print_result({"removed": name}, f"inbox {name} is removed", json=options.json)


def _set_paused(name: str, paused: bool, options: ChangeOptions) -> None:
    from spinney.features.inboxes.commands import PauseInbox

    inbox = options.perform(PauseInbox(name=name, paused=paused, reason=options.reason))
    display.print_result(inbox, f"inbox {name}: {_state(inbox)}", json=options.json)


def _state(inbox: "Inbox", *, is_new: bool = False) -> str:
    """Return the state of an inbox as a clause: paused, which node looks there, or why none does.
    ``is_new``: it has just been made, so it is normal that no node has looked there yet."""
    if inbox.paused:
        return "paused"
    if is_new and inbox.node is None and inbox.problem is None:
        return "no node has looked there yet"
    if inbox.node is None:
        return f"no node looks there: {inbox.problem or 'none that works sees the folder'}"
    return f"node {inbox.node} looks there" if inbox.problem is None else inbox.problem
