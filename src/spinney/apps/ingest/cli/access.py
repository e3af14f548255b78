"""``fetch``, ``manifest``, ``token``, ``fixity``: access to stored objects, and the results of their audits.

A package is made by a job and fetched from where its ticket says; a single file and a manifest come at once,
in pieces, and are compared with their digests on the way (``access.contents``).
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from spinney.apps.ingest.access.tickets import Status
from spinney.apps.ingest.cli.session import IngestSession, command, open_session
from spinney.apps.ingest.verbs.archive import COUNTED, Fetch, File, Fixity, Manifest, Token
from spinney.command_line import Exit, JsonOption, StoreOption, display, endpoint, with_fields
from spinney.errors import Refused, UsageError

app = typer.Typer()
_OPEN = (Status.QUEUED, Status.HELD, Status.PACKING)
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="FILE", help="Write to this file, which must not exist.", show_default=False
    ),
]


@app.command()
@with_fields(Fetch)
def fetch(
    fields: Mapping[str, Any],
    file: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Get only this file of the object, immediately, on stdout or as --output.",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the package is ready; exit code 1 if it fails.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Request a package of a stored object; prints a token, with which 'token' shows its status. With --file: write one
    file of it."""
    request = Fetch(**fields)
    if file is not None:
        if request != Fetch(ark=request.ark, version=request.version) or wait or json:
            raise UsageError(
                "--file gets a file immediately and as it is; leave out --format, --submitter, --wait and --json"
            )
        with open_session(store) as session:
            _write(session.content(File(ark=request.ark, path=file, version=request.version)), output)
        return
    if output is not None:
        raise UsageError("--output needs --file; a package is ready later, and 'token' shows where")
    with open_session(store, None if endpoint.server(store) else request.submitter) as session:
        ticket = session.do(request)
        if wait:
            ticket = _wait(session, ticket, json=json)
    _print_ticket(ticket, json=json)
    if wait and ticket["status"] != Status.READY:
        raise typer.Exit(Exit.REFUSED)


def _wait(session: IngestSession, ticket: Mapping[str, Any], *, json: bool) -> Mapping[str, Any]:
    """Wait until the package is ready or has failed, and return the ticket then.

    The job is followed first, with a line of progress, then the ticket is read until its status is final.
    With ``json`` only the ticket is read.
    """
    from spinney.command_line import PatientPerformer, wait_for

    look, patient = Token(token=ticket["token"]), PatientPerformer(session.performer, answered=True)
    if not json:
        wait_for(session.performer, [ticket["job"]])
        ticket = patient.repeated(lambda: session.do(look))
    while ticket["status"] in _OPEN:
        time.sleep(patient.poll_s)
        ticket = patient.repeated(lambda: session.do(look))
    return ticket


@app.command()
@with_fields(Manifest, without={"as_json"})
def manifest(
    fields: Mapping[str, Any],
    output: OutputOption = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON Lines, which can hold any file name.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Print the files of a stored object as a manifest: the URL, digest, size, date, name and media type of each."""
    with open_session(store) as session:
        _write(session.content(Manifest(as_json=json, **fields)), output)


@command(app, Token)
def show_token(query: Token, answer: Mapping[str, Any], *, json: JsonOption = False) -> None:
    """Print the ticket of a request."""
    _print_ticket(answer, json=json)


@command(app, Fixity)
def show_fixity(query: Fixity, answer: Mapping[str, Any], *, json: JsonOption = False) -> None:
    """Print the two numbers, or the damaged objects; these set the exit code, for monitoring."""
    if query.damaged:
        display.print_list(answer["items"], _DAMAGED, json=json)
        if answer["items"]:
            raise typer.Exit(Exit.REFUSED)
    elif json:
        display.print_json(answer)
    else:
        due, damaged = _count_text(answer["due"]), _count_text(answer["damaged"])
        display.console().print(f"due      {due}\ndamaged  {damaged}")


def _print_ticket(ticket: Mapping[str, Any], *, json: bool) -> None:
    """Print the fields of a ticket that have a value, times in the zone of this host; with ``json`` as they
    are in the answer."""
    if json:
        display.print_json(ticket)
        return
    out = display.console()
    for name, value in ticket.items():
        text = _time_text(value) if name in ("anticipated", "expires") else value
        out.print(f"{name:<12} {display.cell(text)}", soft_wrap=True, markup=False, highlight=False)


def _write(pieces: Iterator[bytes], output: Path | None) -> None:
    """Write to stdout, or into a file that appears only when it is complete.

    The file is written under a hidden, random name beside ``output`` and then renamed. Raises UsageError
    where ``output`` exists, Refused where it cannot be written.
    """
    if output is None:
        display.print_content(pieces, raw=False)
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


def _time_text(text: str) -> str:
    return display.format_time(int(datetime.fromisoformat(text).timestamp() * 1e6))


_DAMAGED: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "ARK": itemgetter("ark"),
    "COLLECTION": itemgetter("collection"),
    "SINCE": lambda item: _time_text(item["since"]),
    "FAULTS": lambda item: len(item["faults"]),
    "FIRST": lambda item: item["faults"][0],
}
"""The columns of the table of damaged objects, with the first fault of each."""


def _count_text(number: int) -> str:
    """Return a number for people; one at which counting stopped is marked as "or more"."""
    return f"{number:,} or more" if number == COUNTED else f"{number:,}"
