"""``fetch``, ``manifest``, ``token``, ``fixity``: access to stored objects, and the results of their audits."""

import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from spinney.apps.ingest.access import Format, Status
from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.verbs.archive import COUNTED, Fetch, File, Fixity, Manifest, Token
from spinney.command_line import Exit, JsonOption, StoreOption, display, endpoint
from spinney.errors import Refused, UsageError

_OPEN = (Status.QUEUED, Status.HELD, Status.PACKING)


def add_to(app: typer.Typer) -> None:
    app.command()(fetch)
    app.command()(manifest)
    app.command("token")(show_token)
    app.command()(fixity)


def fetch(
    ark: Annotated[str, typer.Argument(metavar="ARK", help="The object's ARK.")],
    version: Annotated[
        int | None, typer.Option(min=1, help="The version (default: the newest).", show_default=False)
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="The format of the package.")] = Format.ZIP,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Get only this file of the object, immediately, on stdout or as --output.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the file here; it must not exist.", show_default=False),
    ] = None,
    submitter: Annotated[
        str | None, typer.Option(help="The submitter (default: your login name).", show_default=False)
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the package is ready; exit code 1 if it fails.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Request a package of a stored object; prints a token, with which 'token' shows its status. With --file: write one
    file of it."""
    from spinney.command_line import LOOK_S, wait_for

    if file is not None:
        if format_ != Format.ZIP or submitter or wait or json:
            raise UsageError(
                "--file gets a file immediately and as it is; leave out --format, --submitter, --wait and --json"
            )
        with open_session(store) as service:
            _write(service.content(File(ark=ark, path=file, version=version)), output)
        return
    if output is not None:
        raise UsageError("--output needs --file; a package is ready later, and 'token' shows where")
    with open_session(store, None if endpoint.server(store) else submitter) as service:
        ticket = service.do(Fetch(ark=ark, version=version, format=format_, submitter=submitter))
        if wait and not json:
            wait_for(service.control, [ticket["job"]])
            ticket = service.do(Token(token=ticket["token"]))
        while wait and ticket["status"] in _OPEN:
            time.sleep(LOOK_S)
            ticket = service.do(Token(token=ticket["token"]))
    _print_ticket(ticket, json=json)
    if wait and ticket["status"] != Status.READY:
        raise typer.Exit(Exit.REFUSED)


def manifest(
    ark: Annotated[str, typer.Argument(metavar="ARK", help="The object's ARK.")],
    version: Annotated[
        int | None, typer.Option(min=1, help="The version (default: the newest).", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the manifest here; it must not exist.", show_default=False),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON Lines, which can hold any file name.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Print the files of a stored object as a manifest: the URL, digest, size, date, name and media type of each."""
    with open_session(store) as service:
        _write(service.content(Manifest(ark=ark, version=version, as_json=json)), output)


def show_token(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The token that 'fetch' printed.")],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show the status of a request for a package: when it will be ready, or where it is and when it expires."""
    with open_session(store) as service:
        ticket = service.do(Token(token=token))
    _print_ticket(ticket, json=json)


def fixity(
    damaged: Annotated[
        bool, typer.Option("--damaged", help="List the damaged objects; exit code 1 if there are any.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show how many stored objects are due for a fixity check, and how many are damaged."""
    with open_session(store) as service:
        answer = service.do(Fixity(damaged=damaged))
    if damaged:
        _print_damaged(answer["items"], json=json)
    elif json:
        display.print_json(answer)
    else:
        due, damaged_count = _count_text(answer["due"]), _count_text(answer["damaged"])
        display.console().print(f"due      {due}\ndamaged  {damaged_count}")
    if damaged and answer["items"]:
        raise typer.Exit(Exit.REFUSED)


def _print_ticket(ticket: Mapping[str, Any], *, json: bool) -> None:
    if json:
        display.print_json(ticket)
        return
    shown = {
        name: _time_text(value) if name in ("anticipated", "expires") else value
        for name, value in ticket.items()
    }
    for name, value in shown.items():
        display.console().print(
            f"{name:<12} {display.cell(value)}", soft_wrap=True, markup=False, highlight=False
        )


def _write(pieces: Iterator[bytes], output: Path | None) -> None:
    """Write to stdout, or into a file that appears only when it is complete."""
    if output is None:
        with display.closed_pipe_ends_output():
            out = display.Content(raw=False)
            for piece in pieces:
                out.write(piece)
            out.write(b"", last=True)
            sys.stdout.flush()
        return
    if os.path.lexists(output):
        raise UsageError(f"{output} already exists; name another file")
    part = output.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            for piece in pieces:
                file.write(piece)
        part.rename(output)
    except OSError as error:
        raise Refused(
            f"{output} cannot be written ({error.strerror}); name another file, or free some disk space"
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()


def _print_damaged(damaged: Sequence[Mapping[str, Any]], *, json: bool) -> None:
    if json:
        display.print_json_lines(damaged)
        return
    display.print_table(
        ("ARK", "COLLECTION", "SINCE", "FAULTS", "FIRST"),
        (
            (d["ark"], d["collection"], _time_text(d["since"]), len(d["faults"]), d["faults"][0])
            for d in damaged
        ),
    )


def _time_text(text: str) -> str:
    return display.format_time(int(datetime.fromisoformat(text).timestamp() * 1e6))


def _count_text(number: int) -> str:
    return f"{number:,} or more" if number == COUNTED else f"{number:,}"
