"""The command ``submit``: submit one job, or a file of jobs.

With a store the jobs are written by this process; with a server they are sent to it. Numbers of jobs go to
stdout, one a line, and remarks to stderr, so that ``$(spinney submit …)`` has the numbers alone. On a
terminal, a remark says why if no node could run the first of the jobs.
"""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from spinney.model.errors import NoSuch, SpinneyError, UsageError
from spinney.model.jobs import JOB_ID_MAX
from spinney.model.states import State
from spinney.model.values import names
from spinney.model.values.hints import unknown
from spinney.model.values.times import now_us, parse_time
from spinney.terminal import completion, endpoint
from spinney.terminal.connection import open_commands
from spinney.terminal.options.arguments import InternalOption, JsonOption, StoreOption, argument, option
from spinney.terminal.options.option_groups import given_options, with_option_groups
from spinney.terminal.output import display

if TYPE_CHECKING:
    from spinney.commands import LocalPerformer, Performs
    from spinney.features.submission.commands import SubmitJob, SubmitJobs

SHOWN_IDS = 20
"""A terminal gets the first and the last of more numbers than this; a pipe gets all."""

ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter; may be repeated."),
]
ParamsFileOption = Annotated[
    str | None,
    typer.Option(
        "--params-file",
        metavar="FILE",
        help="Read the parameters from a file with a JSON object; - is stdin.",
    ),
]
LinesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Many jobs: parameters as a JSON object a line; - is stdin. Without TYPE, each line has type, params and "
        "any option.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The options of new jobs."""

    queue: Annotated[
        str | None, option(help_="The queue (default: the type's).", complete=completion.queues)
    ] = None
    priority: Annotated[int | None, option(help_="The priority, 0 (first) to 99 (last).")] = None
    collection: Annotated[
        str | None, option(help_="The collection of the jobs.", complete=completion.collections)
    ] = None
    submitter: Annotated[
        str | None,
        option(help_="The submitter of the jobs (default: you).", complete=completion.submitters),
    ] = None
    share: Annotated[str | None, option(help_="The share that the jobs count against.")] = None


@dataclass(frozen=True, kw_only=True)
class TemplateOptions(JobOptions):
    """The options of the jobs that a schedule or an inbox will submit."""

    param: ParamOption = None
    params: ParamsFileOption = None
    internal: InternalOption = False

    def put(self, definition: Any, performer: "Performs", store: str | None) -> Any:
        """Perform the command that defines the schedule or inbox, with the parameters and options of its jobs, and
        return its answer. Raises UsageError for wrong parameters, and for ``--internal`` through a server."""
        if endpoint.server(store):
            endpoint.require_not_internal(self.internal)
        whole = type(definition)(
            **{
                **dict(definition),
                "params": params_from_options(performer, definition.type, self.param or [], self.params),
                "options": given_options(self, JobOptions),
            }
        )
        if self.internal:
            return whole.put(cast("LocalPerformer", performer), internal=True)
        return performer.do(whole)


@dataclass(frozen=True, kw_only=True)
class SubmitOptions(JobOptions):
    """The options of ``submit``, beside the type and its parameters."""

    key: Annotated[str | None, option(help_="Refused while an unsettled job has this key.")] = None
    at: Annotated[
        str | None,
        option(metavar="TIME", help_="Not before this time: in 2h or 1d12h, or at 2030-01-31T08:00."),
    ] = None
    needs: Annotated[
        list[str] | None,
        typer.Option(metavar="JOB", help="Jobs that must complete first; may be repeated."),
    ] = None

    def fields(self) -> dict[str, Any]:
        """Return the fields of the command that the options set; what was left out is missing, so
        that the type's default holds.

        Raises UsageError for a time or a number of a job that cannot be read.
        """
        at_us = None if self.at is None else parse_time(self.at, now_us(), ahead=True, where="--at")
        return given_options(self, at=at_us, needs=_needs(self.needs) or None)


app = typer.Typer()


@app.command()
@with_option_groups
def submit(
    type_: Annotated[
        str | None, argument("TYPE", "The job type (default: that of --queue).", completion.types)
    ] = None,
    *,
    param: ParamOption = None,
    params: ParamsFileOption = None,
    jobs: LinesOption = None,
    job_options: SubmitOptions,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until settled; exit code 1 unless all completed.")
    ] = False,
    internal: InternalOption = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Submit a job (or many): all are accepted, or none. Prints their numbers."""
    options = job_options.fields()
    is_remote = endpoint.server(store) is not None
    if is_remote:
        endpoint.require_not_internal(internal)
    # A server knows the caller by the token; the submitter is an option of the job only.
    with open_commands(store, None if is_remote else job_options.submitter) as performer:
        if "queue" in options:
            _require_queue(performer, options["queue"])
        if jobs is None:
            ids, held = _submit_one(performer, type_, param or [], params, options, internal=internal)
        elif param or params is not None:
            raise UsageError("--jobs brings the parameters of every job; leave out --param and --params-file")
        else:
            ids, held = _submit_lines(performer, type_, jobs, options, internal=internal)
        _print_result(ids, held, json=json, wait=wait)
        if wait and ids:
            from spinney.features.submission.wait_cli import wait_for

            raise typer.Exit(0 if wait_for(performer, ids, json=json) else 1)
        if ids and sys.stderr.isatty():
            with suppress(SpinneyError):  # the jobs are accepted, whatever becomes of the hint
                _print_obstacle(performer, ids[0])


def _submit_one(
    performer: "Performs",
    type_: str | None,
    words: Sequence[str],
    params_file: str | None,
    options: Mapping[str, Any],
    *,
    internal: bool,
) -> tuple[Sequence[int], int]:
    """Submit one job, and return its number and how many are held (0 or 1). Without a type the queue's
    default type is taken."""
    from spinney.features.submission.commands import SubmitJob

    if type_ is None and "queue" in options:
        type_ = _default_type(performer, options["queue"])
    if type_ is None:
        raise UsageError(
            "name a job type, as in 'spinney submit TYPE', or a queue that has a default type, as in 'spinney submit "
            "--queue QUEUE', or give --jobs FILE with types in its lines"
        )
    params = params_from_options(performer, type_, words, params_file)
    command = SubmitJob(type=type_, params=params, **options)
    if internal:
        return _submit_internal(performer, command)
    created = performer.do(command)
    return [created.id], int(created.held)


def _submit_lines(
    performer: "Performs", type_: str | None, file: str, options: Mapping[str, Any], *, internal: bool
) -> tuple[Sequence[int], int]:
    """Submit the jobs of a file, which is read as it is sent, and return their numbers and how many of
    them are held."""
    from spinney.features.submission.commands import SubmitJobs

    if type_ is not None:
        options = {**options, "type": type_}
    with _read(file) as lines:
        command = SubmitJobs(lines=lines, **options)
        if internal:
            return _submit_internal(performer, command)
        created = performer.do(command)
        return created.ids, created.held


def _submit_internal(performer: "Performs", command: "SubmitJob | SubmitJobs") -> tuple[Sequence[int], int]:
    """Submit jobs of types that only their application submits: whoever has the store itself may."""
    result = command.submit(cast("LocalPerformer", performer), internal=True)
    return result.ids, result.held


def params_from_options(
    performer: "Performs", type_: str, words: Sequence[str], file: str | None
) -> dict[str, Any]:
    """Return the parameters that ``--params-file FILE`` and ``--param NAME=VALUE`` give.

    A parameter that both give is that of ``--param``. Its value is text, which becomes what the schema of
    the type wants, such as a number or a list. Raises UsageError for a file that is no JSON object and
    for a word without name or value.
    """
    from spinney.define.params.schema import from_words
    from spinney.features.types.commands import ShowType

    whole = {} if file is None else _object(file)
    try:
        schema = performer.do(ShowType(name=type_)).schema
    except NoSuch:
        schema = {}  # the submission is refused, with a hint at types of a similar name
    return whole | from_words(schema, _pairs(words))


def _require_queue(performer: "Performs", queue: str) -> None:
    """Raise UsageError for a queue that does not exist.

    A submission would create it, without a limit and perhaps from a typing error. Code, the API and lines
    of jobs may name any.
    """
    from spinney.features.queues.commands import ListQueues, ShowQueue

    names.name("queue", queue)
    try:
        performer.do(ShowQueue(name=queue))
    except NoSuch:
        existing = [info.queue for info in performer.do(ListQueues()).items]
        create = f"create it with 'spinney queue {shlex.quote(queue)} --create'"
        raise UsageError(unknown("queue", queue, existing, create)) from None


def _default_type(performer: "Performs", queue: str) -> str:
    """Return the default job type of a queue that exists. Raises NoSuch, and UsageError when it has none."""
    from spinney.features.queues.commands import ShowQueue

    return performer.do(ShowQueue(name=queue)).in_force.default_type()


def _pairs(words: Sequence[str]) -> Mapping[str, str]:
    """Return the values of ``--param`` by name. Raises UsageError for a name that is missing or comes
    twice."""
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            missing = "value" if name else "name"  # not the value, which may be a secret
            raise UsageError(f"--param {name!r} has no {missing}; write --param name=value")
        if name in pairs:
            raise UsageError(f"--param {name} is given twice; give it once")
        pairs[name] = value
    return pairs


def _object(path: str) -> dict[str, Any]:
    """Return the JSON object in a file. Raises UsageError when it cannot be read or is something else."""
    import orjson

    with _read(path) as file:
        text = file.read()
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path} is not JSON: {error}; fix it and submit again") from error
    if not isinstance(value, dict):
        raise UsageError(f'{path} does not hold a JSON object; write {{"name": value, …}}')
    return value


@contextmanager
def _read(path: str) -> Iterator[IO[bytes]]:
    """Open a file for reading; ``-`` is stdin, which stays open. Raises UsageError when it cannot be
    opened."""
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below; only opening it is a question of usage
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; name a file that can be read") from error
    with file:
        yield file


def _needs(words: list[str] | None) -> list[int]:
    """Return the numbers of ``--needs``, each occurrence of which may have several with commas. Raises
    UsageError."""
    numbers = [n for word in words or [] for n in word.split(",")]
    for number in numbers:
        digits = number.strip()
        # Counted first: Python refuses to read a number of thousands of digits.
        if not digits.isdecimal() or len(digits) > len(str(JOB_ID_MAX)) or int(digits) == 0:
            raise UsageError(
                f"--needs {number!r:.80} is not a job's number (1 to {JOB_ID_MAX}); write --needs 12, or --needs 12,13"
            )
    return [int(number) for number in numbers]


def _print_result(ids: Sequence[int], held: int, *, json: bool, wait: bool) -> None:
    """Print the numbers of the new jobs, and on stderr whether there were none and whether some are held.

    With ``json`` and ``wait`` stdout is for the jobs that have settled, so the numbers go to stderr."""
    if json and not wait:
        display.print_json({"ids": ids, "held": held})
    else:
        out = sys.stderr if json else sys.stdout
        if len(ids) > SHOWN_IDS and out.isatty():
            typer.echo(f"{len(ids):,} jobs, {ids[0]} to {ids[-1]}", file=out)
        else:
            out.writelines(f"{job_id}\n" for job_id in ids)
            out.flush()
    if not ids:
        typer.echo("spinney: there was no job in it; nothing was submitted", err=True)
    if held:
        typer.echo(f"spinney: {_held(ids, held)}", err=True)


def _print_obstacle(performer: "Performs", job_id: int) -> None:
    """Print on stderr why a pending job will not start, if no node could run it."""
    from spinney.commands.job_details import plain_job
    from spinney.commands.job_queries import ShowJob
    from spinney.features.explain.obstacle_messages import obstacle_messages

    job = plain_job(performer.do(ShowJob(job=job_id)))
    if job.state is State.PENDING and (message := obstacle_messages(performer, [job])(job)):
        typer.echo(f"spinney: {display.safe(message)}", err=True)


def _held(ids: Sequence[int], held: int) -> str:
    """Return the sentence for new jobs of which ``held`` are under a hold."""
    if held < len(ids):
        of_them = f"{held:,} of the {len(ids):,} jobs {'is' if held == 1 else 'are'} held"
        return f"{of_them}, and will not start before the hold ends; 'spinney explain JOB' tells why"
    them = f"job {ids[0]} is held, and" if held == 1 else f"all {held:,} jobs are held, and"
    return f"{them} will not start before the hold ends; 'spinney explain {ids[0]}' tells why"
