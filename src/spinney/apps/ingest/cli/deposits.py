"""The commands ``submit``, which submits a payload (a file, a container or a manifest), and ``check``, which
checks a manifest.

``check`` needs neither a store nor a server, so that depositors can run it on their own machines.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from spinney.apps.ingest import manifests
from spinney.apps.ingest.cli.session import IngestSession, open_session
from spinney.apps.ingest.deposits import early_checks
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.manifests import Judgement
from spinney.apps.ingest.verbs.batches import Objects, Status
from spinney.apps.ingest.verbs.service import refused
from spinney.apps.ingest.verbs.submission import Submit
from spinney.command_line import Exit, JsonOption, StoreOption, display, endpoint, with_fields
from spinney.errors import UsageError, counted
from spinney.files.paths import shown
from spinney.jobs import State

STDIN = "-"
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,200}")
"""What a server accepts as the value of the header ``Idempotency-Key``."""
FAILED_SHOWN = 5
"""How many objects that failed are named after a wait."""

app = typer.Typer()


@app.command()
@with_fields(Submit, without={"name"})
def submit(
    fields: Mapping[str, Any],
    payload: Annotated[
        str, typer.Argument(metavar="PAYLOAD", help="A file, a container or a manifest; - is stdin.")
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="The payload's name (default: the file's); required for stdin.", show_default=False
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="An idempotency key: submitting the same again with it within a day creates no second batch.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait until the batch has settled; exit code 1 unless it completed."),
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Submit a payload, which becomes a batch. Prints the batch and its job."""
    from spinney.command_line import wait_for

    if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
        raise UsageError(
            "--key must be 1 to 200 printable ASCII characters without blanks; choose another key"
        )
    # A server acts for the user who signed in; a local store acts for the submitter, if one is named.
    by = None if endpoint.server(store) else fields["submitter"]
    with open_session(store, by) as session:
        submission = Submit(name=_payload_name(payload, name), **fields)
        with _open_payload(payload) as source:
            accepted = session.submit(source, submission, key)
        _print_accepted(accepted, json=json)
        if wait:
            wait_for(session.performer, [accepted["job"]], json=json)
            completed = session.do(Status(batch=str(accepted["job"])))["state"] == BatchState.COMPLETED
            if not (completed or json):
                _print_failed(session, accepted)
            raise typer.Exit(Exit.DONE if completed else Exit.REFUSED)


@app.command()
def check(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="The manifest, in Checkm or JSON.")],
    json: JsonOption = False,
) -> None:
    """Check a manifest without depositing it, also for errors by which its objects would fail later; exit code 1 when
    there are problems."""
    with refused():
        judgement = manifests.judge(manifest, further=early_checks.row_checker)
    if json:
        display.print_json(_judgement_json(judgement))
    else:
        for problem in judgement.problems:
            typer.echo(display.safe(str(problem)))
        for warning in judgement.warnings.first:
            typer.echo(display.safe(f"warning: {warning}"))
        typer.echo(_summary(judgement))
    if judgement.problems:
        raise typer.Exit(Exit.REFUSED)


def _payload_name(payload: str, name: str | None) -> str:
    """Return the name under which the payload is kept. Raises UsageError for stdin without a name."""
    if name is not None:
        return name
    if payload == STDIN:
        raise UsageError("a payload on stdin has no name; give it one with --name")
    return Path(payload).name


@contextmanager
def _open_payload(payload: str) -> Iterator[BinaryIO]:
    """Open the payload for reading: a regular file, or stdin for ``-``, which is not closed. Raises
    UsageError."""
    if payload == STDIN:
        with open(0, "rb", buffering=0, closefd=False) as stdin:
            yield stdin
        return
    path = shown(payload)
    try:
        # O_NONBLOCK: a named pipe without a writer must not hold the command up before it is refused.
        handle = os.open(payload, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; name a file that can be read") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UsageError(f"{path} is no regular file; name one, or give '-' to read from stdin")
    with os.fdopen(handle, "rb", buffering=0) as file:
        yield file


def _print_failed(session: IngestSession, accepted: Mapping[str, Any]) -> None:
    """Print why objects of a batch failed, of the first ``FAILED_SHOWN``: the engine names only a job."""
    query = Objects(batch=str(accepted["job"]), state=[State.FAILED], limit=FAILED_SHOWN + 1)
    failed = session.do(query)["items"]
    for item in failed[:FAILED_SHOWN]:
        typer.echo(display.safe(f"object {item['job']} {item['name']} failed: {item['message']}"))
    if len(failed) > FAILED_SHOWN:
        typer.echo(f"… and more; 'spinney ingest objects {accepted['bid']} --state failed' lists them")


def _print_accepted(accepted: Mapping[str, Any], *, json: bool) -> None:
    """Print the batch and its job.

    A hint goes to stderr if its profile holds it, so that stdout has the same form for scripts.
    """
    if json:
        display.print_json_lines([accepted])
        return
    bid, held = accepted["bid"], accepted["held"]
    typer.echo(f"{bid} job {accepted['job']}")
    if held is not None:
        typer.echo(
            f"spinney: the batch is held ({display.safe(held)}); "
            f"'spinney ingest release --batch {bid}' lets it continue",
            err=True,
        )


def _judgement_json(judgement: Judgement) -> dict[str, object]:
    """Return the result of a check as JSON values."""
    return {
        "kind": judgement.kind,
        "rows": judgement.rows,
        "bytes": judgement.size_bytes,
        "sizes_unknown": judgement.sizes_unknown,
        "whole": judgement.whole,
        "problems": judgement.problems,
        "warnings": judgement.warnings.first,
    }


def _summary(judgement: Judgement) -> str:
    """Return the last line of a check: the kind, the numbers of rows and bytes, and of warnings and problems."""
    kind = "unknown kind of manifest" if judgement.kind is None else str(judgement.kind)
    unknown = f", the sizes of {judgement.sizes_unknown:,} not given" if judgement.sizes_unknown else ""
    text = f"{kind}: {counted(judgement.rows, 'row')}, {counted(judgement.size_bytes, 'byte')}{unknown}"
    if judgement.warnings.count:
        text += f"; {counted(judgement.warnings.count, 'warning')}"
    if not judgement.problems:
        return text
    rest = "" if judgement.whole else ", and the rest was not read"
    return f"{text}; {counted(len(judgement.problems), 'problem')}{rest}"
