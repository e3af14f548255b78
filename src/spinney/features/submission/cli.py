"""``submit``: one job or a file of them."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from spinney.model.errors import NoSuch, UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.terminal import completion, endpoint
from spinney.terminal.arguments import InternalOption, StoreOption
from spinney.terminal.connection import open_control

if TYPE_CHECKING:
    from spinney.control import Control
    from spinney.define.job.options import Options
    from spinney.store.contract import SubmitResult

SHOWN_IDS = 20
"""So many numbers go to a terminal; what reads a pipe gets all."""


def add_to(app: typer.Typer) -> None:
    app.command()(submit)


def submit(
    type_: Annotated[
        str | None,
        typer.Argument(
            metavar="[TYPE]", help="The job type.", show_default=False, autocompletion=completion.types
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter; may be repeated."),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Parameters: a file with a JSON object; - is stdin."),
    ] = None,
    jobs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Many jobs: parameters as a JSON object a line; - is stdin. Without TYPE, "
            "lines say type, params and any option.",
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            help="The queue, if not the type's; without TYPE, its default type counts.",
            autocompletion=completion.queues,
        ),
    ] = None,
    priority: Annotated[int | None, typer.Option(help="0 (first) to 99 (last).")] = None,
    collection: Annotated[
        str | None, typer.Option(help="The collection it belongs to.", autocompletion=completion.collections)
    ] = None,
    submitter: Annotated[
        str | None, typer.Option(help="In whose name.", autocompletion=completion.submitters)
    ] = None,
    share: Annotated[str | None, typer.Option(help="Whom it counts against when slots are shared.")] = None,
    key: Annotated[str | None, typer.Option(help="Refused while an unsettled job has this key.")] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Not before this time, as 2030-01-31T08:00 (or with a zone)."),
    ] = None,
    needs: Annotated[
        list[str] | None, typer.Option(metavar="JOB", help="Jobs that must complete first; may be repeated.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until settled; exit code 1 unless all completed.")
    ] = False,
    internal: InternalOption = False,
    store: StoreOption = None,
) -> None:
    """Submit a job (or many): all are accepted, or none. Prints their numbers."""
    from spinney.define.job.options import Options

    options = Options(
        queue=queue,
        priority=priority,
        collection=collection,
        submitter=submitter,
        share=share,
        key=key,
        at=_time(at),
        needs=_needs(needs),
    )
    # A server knows who asks; in whose name it is made is an option of the job.
    with open_control(store, None if endpoint.server(store) else submitter) as control:
        done = _submit(control, type_, param, json, jobs, options, internal=internal)
        _tell(done)
        if wait and done.ids:
            from spinney.features.submission.wait_cli import wait_for

            raise typer.Exit(0 if wait_for(control, done.ids) else 1)


def _submit(
    control: "Control",
    type_: str | None,
    param: list[str] | None,
    json: str | None,
    jobs: str | None,
    options: "Options",
    *,
    internal: bool,
) -> "SubmitResult":
    if jobs is not None:
        if param or json is not None:
            raise UsageError("--jobs brings the parameters of every job; leave out --param and --json")
        with _read(jobs) as lines:
            return control.submit_lines(lines, type_=type_, options=options, internal=internal)
    if type_ is None and options.queue is not None:
        type_ = _default_type(control, options.queue)
    if type_ is None:
        raise UsageError(
            "name a job type, as in 'spinney submit TYPE', or a queue that has a default type, as in 'spinney submit "
            "--queue QUEUE', or give --jobs FILE with types in its lines"
        )
    return control.submit(
        type_, [params_from_options(control, type_, param or [], json)], options, internal=internal
    )


def params_from_options(
    control: "Control", type_: str, words: Sequence[str], json: str | None
) -> dict[str, Any]:
    """Parameters as ``--json FILE`` and ``--param NAME=VALUE`` give them; words win."""
    from spinney.define.params.schema import from_words
    from spinney.features.types.commands import ShowType

    whole = {} if json is None else _object(json)
    try:
        schema = control.do(ShowType(name=type_)).schema
    except NoSuch:  # which is refused when the job is submitted
        schema = {}
    return whole | from_words(schema, _pairs(words))


def _default_type(control: "Control", queue: str) -> str | None:
    """Raises UsageError for a queue that is not there."""
    from spinney.features.queues.commands import ShowQueue

    try:
        return control.do(ShowQueue(name=queue)).in_force.default_type()
    except NoSuch as error:
        raise UsageError(str(error)) from None


def _pairs(words: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            missing = "value" if name else "name"  # not the value, which may be a secret
            raise UsageError(f"--param {name!r} has no {missing}; write --param name=value")
        if name in found:
            raise UsageError(f"--param {name} is given twice; give it once")
        found[name] = value
    return found


def _object(path: str) -> dict[str, Any]:
    import orjson

    with _read(path) as file:
        text = file.read()
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path} is no JSON: {error}; fix it and submit again") from error
    if not isinstance(value, dict):
        raise UsageError(f'{path} holds no JSON object; write {{"name": value, …}}')
    return value


@contextmanager
def _read(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below; only opening it is a question of usage
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; name a file that can be read") from error
    with file:
        yield file


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        # A local time at an end of the calendar has no zone to be in.
        return found if found.tzinfo else found.astimezone()
    except (ValueError, OverflowError):
        raise UsageError(
            f"--at {text!r} is no time; write it as 2030-01-31T08:00 or 2030-01-31T08:00+01:00"
        ) from None


def _needs(words: list[str] | None) -> list[int]:
    found = [n for word in words or [] for n in word.split(",")]
    for number in found:
        digits = number.strip()
        # Counted first: Python refuses to read a number of thousands of digits.
        if not digits.isdecimal() or len(digits) > len(str(JOB_ID_MAX)) or int(digits) == 0:
            raise UsageError(
                f"--needs {number!r:.80} is no job's number (1 to {JOB_ID_MAX}); write --needs 12, or --needs 12,13"
            )
    return [int(n) for n in found]


def _tell(done: "SubmitResult") -> None:
    ids = done.ids
    if len(ids) > SHOWN_IDS and sys.stdout.isatty():
        typer.echo(f"{len(ids):,} jobs, {ids[0]} to {ids[-1]}")
    else:
        sys.stdout.writelines(f"{n}\n" for n in ids)
        sys.stdout.flush()
    if not ids:
        typer.echo("spinney: there was no job in it; nothing was submitted", err=True)
    if done.held:
        typer.echo(f"spinney: {done.held:,} of them are held at once; 'spinney show' tells why", err=True)
