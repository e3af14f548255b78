"""Commands that read: services, entities, tasks, status, history.

All but ``status`` read the monitor's tables alone, and need no store. ``--json`` prints the fields of the classes in
``inventory.model``."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from spinney.apps.monitor import requests, settings
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import entities as entity_table
from spinney.apps.monitor.inventory import results
from spinney.apps.monitor.inventory import services as service_table
from spinney.apps.monitor.tasks import task_list
from spinney.command_line import JsonOption, StoreOption, display, open_control, use_store
from spinney.errors import UsageError


def entities(
    pattern: Annotated[
        str, typer.Argument(help="Only entities that match this pattern, with % for any text.")
    ] = "%",
    json: JsonOption = False,
) -> None:
    """List entities, with how many services they have."""
    listed = entity_table.query(database(), pattern)
    rows = [(entity.eid, entity.description, entity.email, entity.services) for entity in listed]
    _show(json, listed, ("eid", "entity", "mail", "services"), rows)


def services(
    words: Annotated[
        str | None, typer.Argument(help="Text of the description, the URI or the entity.")
    ] = None,
    entity: Annotated[int | None, typer.Option(help="Those of this entity.")] = None,
    json: JsonOption = False,
) -> None:
    """List services."""
    tables = database()
    if entity is not None:
        listed = service_table.of_entity(tables, entity)
    elif words is not None:
        listed = service_table.search(tables, words)
    else:
        listed = service_table.all_present(tables)
    rows = [(s.gid, s.entity, s.type, s.version, s.description, s.uri, _time(s.checked_us)) for s in listed]
    columns = ("gid", "entity", "type", "version", "description", "uri", "checked")
    _show(json, listed, columns, rows)


def tasks(json: JsonOption = False) -> None:
    """List the tasks in the order in which they run, and the files that cannot be used as tasks."""
    listed = task_list.read(settings.load())
    rows = [(task.name, task.description, task.file, task.language) for task in listed.current]
    rows += [("", f"left out: {broken.problem}", broken.file, "") for broken in listed.broken]
    value = {"tasks": listed.current, "broken": listed.broken}
    _show(json, value, ("task", "description", "file", "language"), rows)


def status(
    gid: Annotated[
        int | None, typer.Argument(help="The number of a service (default: a summary of all).")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the latest results of a service, or a summary of all services."""
    use_store(store)
    tables = database()
    if gid is not None:
        if service_table.get(tables, gid) is None:
            raise UsageError(f"there is no service {gid}; 'spinney monitor services' lists them")
        current = results.current(tables, [gid]).get(gid, [])
        rows = [
            (r.task, r.status, r.info, _time(r.at_us), _time(r.since_us), f"{r.duration_s:.2f}")
            for r in current
        ]
        columns = ("task", "status", "info", "checked", "since", "seconds")
        _show(json, current, columns, rows)
        return
    counts = service_table.counts(tables, tasks=task_list.counted(settings.load()))
    with open_control(store) as control:
        open_sequences = requests.sequences(control)
    numbers = [(state, f"{number:,}") for state, number in counts.items()]
    _show(json, {"services": counts, "sequences": open_sequences}, ("services", "number"), numbers)
    if not json:
        for s in open_sequences:
            typer.echo(f"{s.job_id}  {s.name}: {s.completed:,} of {s.total:,} checked")


def history(
    gid: Annotated[int | None, typer.Argument(help="The number of a service (default: all).")] = None,
    all_results: Annotated[
        bool, typer.Option("--all", help="All results, not only changes of status.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 50,
    json: JsonOption = False,
) -> None:
    """List what changed, the newest first."""
    listed = results.changes(database(), gid=gid, only_changes=not all_results, limit=limit)
    rows = [(_time(c.at_us), c.gid, c.task, c.before, c.status, c.info) for c in listed]
    _show(json, listed, ("time", "gid", "task", "before", "status", "info"), rows)


def report(json: JsonOption = False) -> None:
    """Report on every entity: how many of its services are in which state, and what fails since when."""
    tables = database()
    reports: list[dict[str, Any]] = []
    tasks = task_list.counted(settings.load())
    for entity in entity_table.query(tables, alphabetically=True):
        listed = service_table.of_entity(tables, entity.eid)
        current = results.current(tables, [service.gid for service in listed])
        failing = [
            {
                "gid": s.gid,
                "service": s.description or s.uri,
                "task": r.task,
                "since_us": r.since_us,
                "info": r.info,
            }
            for s in listed
            for r in current.get(s.gid, [])
            if r.status == "error" and (not tasks or r.task in tasks)
        ]
        counts = service_table.counts(tables, entity.eid, tasks=tasks)
        reports.append(
            {"eid": entity.eid, "entity": entity.description, "services": counts, "failing": failing}
        )
    if json:
        display.print_json(reports)
        return
    for number, one in enumerate(reports):
        states = ", ".join(f"{count:,} {state}" for state, count in one["services"].items() if count)
        typer.echo(f"{chr(10) if number else ''}{one['entity']}: {states or 'no services'}")
        for line in one["failing"]:
            typer.echo(
                f"  {line['gid']}  {line['service']}: {line['info']} ({line['task']}, since {_time(line['since_us'])})"
            )


def _show(json: bool, value: Any, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a value as JSON, or rows as a table for people."""
    if json:
        display.print_json(value)
    else:
        display.print_table(columns, rows)


def _time(at_us: int | None) -> str:
    """Return a time as UTC to the second; an empty text for None."""
    return "" if at_us is None else f"{datetime.fromtimestamp(at_us / 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"
