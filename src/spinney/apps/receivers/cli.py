"""Turn archives of raw files from radio receivers into detections of tags."""

import os
import sqlite3
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from spinney.apps.receivers import history, settings
from spinney.apps.receivers.database import ReceiverDatabase
from spinney.apps.receivers.detection.tags import read_tags
from spinney.apps.receivers.own_jobs import own_jobs
from spinney.command_line import (
    Exit,
    JsonOption,
    StoreOption,
    display,
    endpoint,
    open_control,
    resolve_settings,
)
from spinney.config import ENVIRONMENT
from spinney.errors import UsageError
from spinney.operations import RelabelJob

app = typer.Typer(no_args_is_help=True, help=__doc__.splitlines()[0])
ReceiverArgument = Annotated[
    str, typer.Argument(help="The receiver, as SG-7F5ERPI46977.", show_default=False)
]


@app.command()
def init(store: StoreOption = None) -> None:
    """Make the service's folders, and its job types in the store."""
    from spinney.apps.receivers import app as application

    _use(store)
    config = settings.load()
    for folder in ("databases", "files"):
        (config.data / folder).mkdir(parents=True, exist_ok=True)
    tags = read_tags(config.tags) if config.tags.exists() else ()
    with open_control(store) as control:
        control.store.register([kind.spec for kind in application.types.values()], application.queues)
    typer.echo(f"The databases are in {config.data / 'databases'}; {len(tags)} tags in {config.tags}")


@app.command()
def upload(
    source: Annotated[
        Path, typer.Argument(help="An archive, a file or a folder.", exists=True, show_default=False)
    ],
    uploader: Annotated[str, typer.Option(help="The address to which the report goes.")] = "",
    project: Annotated[
        str | None, typer.Option(help="The project, which is the collection.", show_default=False)
    ] = None,
    priority: Annotated[
        bool, typer.Option("--priority", help="Use the queue of attached receivers.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Submit an upload; print the number of its job."""
    from spinney.apps.receivers.application import PRIORITY, uploads

    _use(store)
    options: dict[str, Any] = {"collection": project} | ({"queue": PRIORITY} if priority else {})
    kind = uploads.options(**{name: value for name, value in options.items() if value is not None})
    typer.echo(str(kind.submit(source=str(source.absolute()), uploader=uploader)))


@app.command()
def rerun(
    receiver: ReceiverArgument,
    first: Annotated[int, typer.Argument(help="The first boot session.", min=0, show_default=False)],
    last: Annotated[
        int | None, typer.Argument(help="The last one (default: the first).", show_default=False)
    ] = None,
    store: StoreOption = None,
) -> None:
    """Detect boot sessions of a receiver afresh, with the table of tags as it is now; print the number of the job."""
    from spinney.apps.receivers.application import reruns

    _use(store)
    typer.echo(str(reruns.submit(receiver=receiver, first=first, last=first if last is None else last)))


@app.command()
def export(receiver: ReceiverArgument, store: StoreOption = None) -> None:
    """Write the table and the plot of a receiver again; print the number of the job."""
    from spinney.apps.receivers.application import exports

    _use(store)
    typer.echo(str(exports.submit(receiver=receiver)))


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
    rows = []
    for receiver, db in _databases():
        counts = [db.execute(f"select count(*) from {table}").fetchone()[0] for table in _TABLES]  # noqa: S608
        rows.append(dict(zip(("receiver", *_TABLES), (receiver, *counts), strict=True)))
    _print(rows, ("receiver", *_TABLES), json=json, empty="no receiver has a database yet")


_TABLES = ("files", "sessions", "runs", "hits")


@app.command("file")
def file_(
    name: Annotated[str, typer.Argument(help="The name of a raw file, or its end.", show_default=False)],
    json: JsonOption = False,
) -> None:
    """Show what a raw file became: its receiver, session and batch, and what was in it."""
    query = (
        f"select {', '.join(_OF_FILE)} from "  # noqa: S608 - names of columns
        "(select files.*, batches.job from files join batches on batches.id = files.batch) "
        "where substr(name, -length(?1)) = ?1 order by begun"
    )
    rows = [
        {"receiver": receiver, **dict(zip(_OF_FILE, row, strict=True))}
        for receiver, db in _databases()
        for row in db.execute(query, (name.removesuffix(".gz"),))
    ]
    _print(rows, ("receiver", *_OF_FILE), json=json, empty=f"no raw file is named {name}")
    if not rows:
        raise typer.Exit(Exit.REFUSED)


_OF_FILE = ("session", "batch", "job", "name", "path", "lines", "pulses", "broken", "damage")


@app.command("import-jobs")
def import_jobs(
    file: Annotated[Path, typer.Argument(help="The database of an older Motus job server.", exists=True)],
) -> None:
    """Copy the jobs of an older job server into the history; rows that are wrong are named and left out."""
    number, wrong = history.import_jobs(file, _history())
    typer.echo(f"{number} jobs are in {_history()}")
    for sentence in wrong:
        typer.echo(f"left out: {sentence}", err=True)
    if wrong:
        raise typer.Exit(Exit.REFUSED)


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
    _use(store)
    old = history.read(_history())
    offset = max((job.id for job in old), default=0)
    with open_control(store) as control:
        own = sorted(own_jobs(control, resolve_settings(store).folders), key=lambda job: job.id)
    number = history.export_jobs(file, [*old, *history.renumbered(own, offset)])
    typer.echo(f"{number} jobs are in {file}; those of this service are numbered from {offset + 1} on")


def _history() -> Path:
    return settings.load().data / "history.sqlite"


def _databases() -> Iterator[tuple[str, sqlite3.Connection]]:
    """Yield the receivers with their databases, open while the caller looks."""
    for path in sorted((settings.load().data / "databases").glob("*.sqlite")):
        with ReceiverDatabase(path, ()).reading() as db:
            yield path.stem, db


def _print(rows: list[dict[str, Any]], columns: tuple[str, ...], *, json: bool, empty: str) -> None:
    display.print_list(rows, {name.upper(): itemgetter(name) for name in columns}, json=json, empty=empty)


def _use(store: str | None) -> None:
    """Make a store the one of this process. Raises UsageError for a server: the raw files must be at hand."""
    endpoint.require_local(store)
    os.environ[ENVIRONMENT] = resolve_settings(store).store
    if settings.VARIABLE in os.environ and not Path(os.environ[settings.VARIABLE]).exists():
        raise UsageError(f"{os.environ[settings.VARIABLE]}, which {settings.VARIABLE} names, does not exist")
