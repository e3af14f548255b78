"""Turn archives of raw files from radio receivers into detections of tags."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from spinney.apps.receivers import history, settings, timeline
from spinney.apps.receivers.database.snapshots import snapshot
from spinney.apps.receivers.detection.tags import read_tags
from spinney.apps.receivers.own_jobs import own_jobs
from spinney.command_line import (
    Exit,
    JsonOption,
    StoreOption,
    display,
    open_control,
    resolve_settings,
    use_store,
)
from spinney.errors import UsageError, counted
from spinney.operations import RelabelJob

app = typer.Typer(no_args_is_help=True, help=__doc__.splitlines()[0])
T = TypeVar("T")
ReceiverArgument = Annotated[
    str, typer.Argument(help="The receiver, as SG-7F5ERPI46977.", show_default=False)
]
PriorityOption = Annotated[bool, typer.Option("--priority", help="Use the queue of attached receivers.")]


@app.command()
def init(store: StoreOption = None) -> None:
    """Make the service's folders, and its job types in the store."""
    from spinney.apps.receivers import app as application

    use_store(store)
    config = settings.load()
    for folder in ("databases", "files"):
        (config.data / folder).mkdir(parents=True, exist_ok=True)
    tags = counted(len(read_tags(config.tags)), "tag") if config.tags.exists() else ""
    with open_control(store) as control:
        application.introduce(control.store)
    hint = (
        f"{tags} in {config.tags}"
        if tags
        else f"write the table of tags, {config.tags}, before the first upload"
    )
    typer.echo(f"The databases are in {config.data / 'databases'}; {hint}")


@app.command()
def upload(
    source: Annotated[
        Path, typer.Argument(help="An archive, a file or a folder.", exists=True, show_default=False)
    ],
    uploader: Annotated[str, typer.Option(help="The address to which the report goes.")] = "",
    project: Annotated[
        str | None, typer.Option(help="The project, which is the collection.", show_default=False)
    ] = None,
    priority: PriorityOption = False,
    store: StoreOption = None,
) -> None:
    """Submit an upload; print the number of its job."""
    params = {"source": str(source.absolute()), "uploader": uploader}
    _submit(store, "receivers.import", params, priority=priority, collection=project)


@app.command()
def rerun(
    receiver: ReceiverArgument,
    first: Annotated[int, typer.Argument(help="The first boot session.", min=0, show_default=False)],
    last: Annotated[
        int | None, typer.Argument(help="The last one (default: the first).", show_default=False)
    ] = None,
    priority: PriorityOption = False,
    store: StoreOption = None,
) -> None:
    """Detect boot sessions of a receiver again, with the current table of tags; print the number of the job."""
    last = first if last is None else last
    if last < first:
        raise UsageError(f"session {last} is before {first}; name the first one first")
    params = {"receiver": _existing(receiver), "first": first, "last": last}
    _submit(store, "receivers.rerun", params, priority=priority)


@app.command()
def export(receiver: ReceiverArgument, priority: PriorityOption = False, store: StoreOption = None) -> None:
    """Write the table and the plot of a receiver again; print the number of the job."""
    _submit(store, "receivers.export", {"receiver": _existing(receiver)}, priority=priority)


@app.command()
def move(
    upload: Annotated[int, typer.Argument(help="The number of its job.", show_default=False)],
    project: Annotated[str, typer.Argument(help="The other project.", show_default=False)],
    store: StoreOption = None,
) -> None:
    """Move an upload that is done to another project."""
    with open_control(store) as control:
        control.do(RelabelJob(job=upload, collection=project))
    typer.echo(f"Upload {upload} belongs to the project {project}")


@app.command("list")
def list_(json: JsonOption = False) -> None:
    """List the receivers: how many files, sessions, runs and hits of each there are."""
    with _each_receiver(partial(timeline.totals, now_s=time.time())) as receivers:
        rows = [{"receiver": receiver, **totals} for receiver, totals in receivers]
        _print(rows, ("receiver", *timeline.COUNTED), json=json, empty="no receiver has a database yet")


@app.command("file")
def file_(
    name: Annotated[str, typer.Argument(help="The name of a raw file, or its end.", show_default=False)],
    json: JsonOption = False,
) -> None:
    """Show what a raw file became: its receiver, session and batch, and what was in it."""
    # The end of a name is looked for, so that no index helps: all files of each receiver are read.
    query = (
        f"select {', '.join(_OF_FILE)} from "  # noqa: S608 - names of columns
        "(select files.*, batches.job from files join batches on batches.id = files.batch) "
        "where substr(name, -length(?1)) = ?1 order by begun"
    )
    with _each_receiver(lambda db: db.execute(query, (name.removesuffix(".gz"),)).fetchall()) as receivers:
        rows = [
            {"receiver": receiver, **dict(zip(_OF_FILE, row, strict=True))}
            for receiver, became in receivers
            for row in became
        ]
        for row in rows:
            row["path"] = str(settings.load().data / row["path"])
        empty = f"no raw file of that name was read: {name}; the list of its upload has what was put aside"
        _print(rows, ("receiver", *_OF_FILE), json=json, empty=empty)
    if not rows:
        raise typer.Exit(Exit.REFUSED)


# Columns of ``files``, and of its batch, that are shown.
_OF_FILE = ("session", "batch", "job", "name", "path", "lines", "pulses", "broken", "damage")


@app.command("import-jobs")
def import_jobs(
    file: Annotated[Path, typer.Argument(help="The database of an older Motus job server.", exists=True)],
) -> None:
    """Copy the jobs of an older job server into the history; rows that are wrong are named and left out."""
    number, wrong = history.import_jobs(file, _history())
    typer.echo(f"{_history()} has {counted(number, 'job')}")
    _refuse([f"left out: {sentence}" for sentence in wrong])


@app.command("old-jobs")
def old_jobs(
    tree: Annotated[
        int | None, typer.Option(help="Only the tree of this top-level job.", show_default=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the jobs that were imported from an older job server."""
    rows = [job._asdict() for job in history.read(_history(), tree=tree)]
    _print(rows, ("id", "pid", "type", "done", "queue", "path"), json=json, empty="no old jobs were imported")


@app.command("export-jobs")
def export_jobs(
    file: Annotated[Path, typer.Argument(help="A new file.", show_default=False)], store: StoreOption = None
) -> None:
    """Write the jobs of the history and of this service as an older job server keeps them. The numbers of the latter
    follow those of the history."""
    use_store(store)
    old = history.read(_history())
    offset = max((job.id for job in old), default=0)
    with open_control(store) as control:
        own = sorted(own_jobs(control, resolve_settings(store).folders), key=lambda job: job.id)
    number = history.export_jobs(file, [*old, *history.renumbered(own, offset)])
    typer.echo(
        f"{file} has {counted(number, 'job')}; those of this service are numbered from {offset + 1} on"
    )


def _history() -> Path:
    """Return the file with the jobs of an older job server."""
    return settings.load().data / "history.sqlite"


@contextmanager
def _each_receiver(look: Callable[[sqlite3.Connection], T]) -> Iterator[list[tuple[str, T]]]:
    """Yield what ``look`` returns of each receiver's database; those that cannot be read are named at the
    end, and end the command with an exit code, so that one damaged file does not hide the others."""
    results = list(timeline.of_each(settings.load().data, look))
    yield [(receiver, each) for receiver, each in results if not isinstance(each, sqlite3.Error)]
    faults = [(receiver, each) for receiver, each in results if isinstance(each, sqlite3.Error)]
    _refuse([f"the database of {receiver} cannot be read: {fault}" for receiver, fault in faults])


def _refuse(sentences: list[str]) -> None:
    """Print what is wrong, and end with the exit code for that, where there is something."""
    for sentence in sentences:
        typer.echo(sentence, err=True)
    if sentences:
        raise typer.Exit(Exit.REFUSED)


def _existing(receiver: str) -> str:
    """Return the receiver, for a command that submits a job about it. Raises UsageError where it has no
    database: a typing error shows at once, and not as a failed job."""
    with snapshot(settings.load().database(receiver)):
        return receiver


def _submit(
    store: str | None, type_: str, params: dict[str, Any], *, priority: bool, collection: str | None = None
) -> None:
    """Submit a job of the application, and print its number. ``priority``: use the queue of attached
    receivers in place of the type's own."""
    # With the stages, which say what parameters there are.
    from spinney.apps.receivers import app as application
    from spinney.apps.receivers.application import PRIORITY

    use_store(store)
    options: dict[str, Any] = {"queue": PRIORITY} if priority else {}
    kind = application.types[type_].options(collection=collection, **options)
    typer.echo(str(kind.submit(**params)))


def _print(rows: list[dict[str, Any]], columns: tuple[str, ...], *, json: bool, empty: str) -> None:
    """Print rows as JSON, or these columns of them as a table; ``empty`` where there is none."""
    display.print_list(rows, {name.upper(): itemgetter(name) for name in columns}, json=json, empty=empty)
