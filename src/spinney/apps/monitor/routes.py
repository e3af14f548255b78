"""The monitor's routes below ``/api/v1/apps/monitor``: everything as JSON or CSV, and figures for Prometheus.

They only read, and take rights that are not limited to collections or queues, as the pages do."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import orjson
from fastapi import Query
from starlette.responses import Response

from spinney.apps.monitor import inventory, requests, settings
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory.model import Change, CurrentStatus, Entity, Service
from spinney.apps.monitor.requests import read_unlimited
from spinney.apps.monitor.tasks import task_list
from spinney.operations import Control
from spinney.routes import Authenticated, csv_text, routes

Format = Annotated[Literal["json", "csv"], Query(description="`csv` in place of JSON.")]
router = routes("monitor")


@router.get("/entities", summary="List the entities")
async def list_entities(context: Authenticated, format: Format = "json") -> Any:  # noqa: A002 - the parameter's name
    """Return who answers for services, each with the number of its services that are monitored; those with
    most services first."""
    listed = await read_unlimited(context, lambda control: inventory.entities.query(database()))
    return _answer([{k: v for k, v in _fields(e).items() if k != "page_key"} for e in listed], format)


@router.get("/services", summary="List the services with their newest results")
async def list_services(
    context: Authenticated,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Services with a higher number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 250,
    format: Format = "json",  # noqa: A002
) -> Any:
    """Return services by number. JSON has each with its newest results, and in `next` the number after which
    the next page begins (null: there is none); CSV has a line for each result, and no `next`. Times are
    microseconds since 1970 UTC."""

    def read(control: Control) -> list[dict[str, Any]]:
        listed = inventory.services.after(database(), after, limit)
        current = inventory.results.current(database(), [service.gid for service in listed])
        return [
            {**_fields(service), "results": [_fields(result) for result in current.get(service.gid, [])]}
            for service in listed
        ]

    rows = await read_unlimited(context, read)
    if format == "json":
        return _answer(rows, format, rows[-1]["gid"] if len(rows) == limit else None)
    flat = [{**result, **row} for row in rows for result in row["results"] or [{}]]
    return _answer([{k: v for k, v in row.items() if k != "results"} for row in flat], format)


@router.get("/changes", summary="List the changes of status")
async def list_changes(
    context: Authenticated,
    after_us: Annotated[
        int, Query(ge=0, le=2**62, description="Later than this, in microseconds since 1970.")
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    format: Format = "json",  # noqa: A002
) -> Any:
    """Return the changes of status, the newest first, each with the status before; that is empty for the
    first result of a task. Times are microseconds since 1970 UTC."""
    listed = await read_unlimited(
        context,
        lambda control: inventory.results.changes(
            database(), after_us=after_us, only_changes=True, limit=limit
        ),
    )
    return _answer([_fields(change) for change in listed], format)


@router.get("/metrics", summary="Figures for Prometheus")
async def metrics(context: Authenticated) -> Response:
    """Return as text for Prometheus how many services are in which state, how many sequences are open, and
    how many of their checks run."""

    def read(control: Control) -> tuple[Mapping[str, int], int, int]:
        open_sequences = requests.sequences(control)
        counts = inventory.services.counts(database(), tasks=task_list.counted(settings.load()))
        return counts, len(open_sequences), sum(s.running for s in open_sequences)

    counts, sequences, running = await read_unlimited(context, read)
    lines = ["# TYPE spinney_monitor_services gauge"]
    lines += [f'spinney_monitor_services{{state="{state}"}} {number}' for state, number in counts.items()]
    for name, value in (("sequences", sequences), ("checks_running", running)):
        lines += [f"# TYPE spinney_monitor_{name} gauge", f"spinney_monitor_{name} {value}"]
    return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _fields(row: Entity | Service | CurrentStatus | Change) -> dict[str, Any]:
    """Return the fields of a row. There may be thousands of rows, so ``asdict``, which copies deeply, is too
    slow."""
    return {name: getattr(row, name) for name in row.__slots__}


def _answer(rows: Sequence[Mapping[str, Any]], format_: str, after: int | None = None) -> Response:
    """Return rows as a response. ``after``: where the next page begins (None: nowhere), which only JSON can
    say. The response is made here, because FastAPI would look at every value before it writes any. In CSV
    no text is a formula, because services say what results contain."""
    if format_ == "json":
        return Response(orjson.dumps({"items": rows, "next": after}), media_type="application/json")
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    for row in rows:
        writer.writerow({k: csv_text(v) if isinstance(v, str) else v for k, v in row.items()})
    return Response(out.getvalue(), media_type="text/csv; charset=utf-8")
