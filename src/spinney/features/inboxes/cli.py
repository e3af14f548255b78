"""The command ``inbox``: folders where dropped files become jobs.

``add`` and the others set what nodes do; none of them touches the folder itself. ``upload`` sends a file from
this host, into the store's folders directly or through a server.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from spinney.commands import Performs
from spinney.features.inboxes.commands import (
    ListArrivals,
    ListInboxes,
    PauseInbox,
    PutInbox,
    RemoveInbox,
    ScanInbox,
    ShowInbox,
)
from spinney.features.submission.cli import TemplateOptions
from spinney.model.settings.inboxes import REST_MOST_S, Inbox, Upload
from spinney.model.values import durations
from spinney.terminal import completion, endpoint
from spinney.terminal.commands import Shown, command, list_command, steps
from spinney.terminal.connection import open_client, open_control, resolve_settings
from spinney.terminal.options.arguments import (
    ByOption,
    JsonOption,
    StoreOption,
    argument,
    command_group,
    length,
    option,
)
from spinney.terminal.output import display

NAME = argument("NAME", complete=completion.inboxes)

app = typer.Typer()
group = command_group(app, "inbox")


def _state(inbox: Inbox, *, is_new: bool = False) -> str:
    """Return the state of an inbox as a clause: paused, which node looks there, or why none does.
    ``is_new``: it has just been made, so it is normal that no node has looked there yet."""
    if inbox.paused:
        return "paused"
    if is_new and inbox.node is None and inbox.problem is None:
        return "no node has looked there yet"
    if inbox.node is None:
        return f"no node looks there: {inbox.problem or 'none that works sees the folder'}"
    return f"node {inbox.node} looks there" if inbox.problem is None else inbox.problem


@steps(
    group,
    PutInbox,
    "add",
    name=argument("NAME"),
    folder=argument("FOLDER", "The folder, as a whole path on the hosts that see it."),
    type=argument("TYPE", "The job type.", completion.types),
    host=option(
        metavar="HOST",
        help_="Only nodes of this host look there; needed where other hosts have a folder of that path that is "
        "not the same.",
    ),
    rest_s=option(
        "--rest",
        metavar="TIME",
        default="10s",
        parser=length("--rest", most=REST_MOST_S),
        help_="Take a file when it has not changed for this long.",
    ),
    duplicates=option(
        metavar="POLICY",
        help_="What to do with files of the same content as an earlier one: refuse or accept.",
    ),
    params={},
    options={},
)
def add(words: PutInbox, performer: Performs, *, jobs: TemplateOptions, store: StoreOption = None) -> Shown:
    """Create an inbox, or replace one (--replace): each file or folder that is dropped into FOLDER becomes a job."""
    definition = words.model_copy(update={"folder": words.folder.rstrip("/") or words.folder})
    inbox: Inbox = jobs.put(definition, performer, store)
    return Shown(inbox, f"inbox {words.name}: {_state(inbox, is_new=True)}")


list_command(
    group,
    ListInboxes,
    "list",
    "List the inboxes, by name.",
    {
        "NAME": lambda inbox: inbox.name,
        "FOLDER": lambda inbox: inbox.folder,
        "TYPE": lambda inbox: inbox.type,
        "STATE": _state,
        "BY": lambda inbox: inbox.by,
    },
    empty="there are no inboxes; 'spinney inbox add NAME FOLDER TYPE' makes one",
)


@steps(
    group,
    ListArrivals,
    "show",
    others=False,
    name=NAME,
    rejected=option(help_="Only arrivals that were rejected."),
    limit=option(default=20, help_="The maximum number of arrivals."),
)
def show(query: ListArrivals, performer: Performs, *, json: JsonOption = False) -> None:
    """Show an inbox with its latest arrivals: their jobs, or why they were rejected."""
    inbox = performer.do(ShowInbox(name=query.name))
    arrivals = performer.do(query).items
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


@command(group, PauseInbox, "pause", name=NAME, paused=True)
def paused_text(inbox: Inbox) -> str:
    """Pause an inbox: it takes nothing until it is resumed."""
    return f"inbox {inbox.name}: {_state(inbox)}"


@command(group, PauseInbox, "resume", name=NAME, paused=False)
def resumed_text(inbox: Inbox) -> str:
    """Resume a paused inbox."""
    return f"inbox {inbox.name}: {_state(inbox)}"


@command(group, ScanInbox, "scan", name=NAME)
def scanned_text(inbox: Inbox) -> str:
    """Take all files that are in an inbox now, without waiting until they have stopped changing."""
    return f"inbox {inbox.name}: {_state(inbox)}"


@command(group, RemoveInbox, "remove", name=NAME)
def removed(_: None, removal: RemoveInbox) -> Shown:
    """Remove an inbox; its folder and its jobs stay, and the record of contents for --duplicates is deleted."""
    return Shown({"deleted": removal.name}, f"inbox {removal.name} is removed")


@group.command()
def upload(
    name: Annotated[str, argument("NAME", "The inbox's name.", completion.inboxes)],
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
