"""The monitor's pages show, in the server's frame, what is broken since when, whose it is, and what is checked now.

People whose rights are limited to collections or queues do not see them, since services belong to none. The page of an
entity has also an address without sign-in, which contains a random key, for its owner. The entry point ``monitor`` of
the group ``spinney.pages`` names ``pages``; the templates are beside this file.

Specified by ``tests/apps/monitor/test_pages.py`` and ``tests/apps/monitor/test_languages.py``.
"""

from collections.abc import Collection
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.apps.monitor import inventory, requests, settings
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory.model import Change, CurrentStatus, Entity, Service
from spinney.apps.monitor.languages import language
from spinney.apps.monitor.requests import read_unlimited, require_unlimited
from spinney.apps.monitor.sequences import Selection
from spinney.apps.monitor.tasks import task_list
from spinney.errors import StoreUnavailable
from spinney.operations import Control
from spinney.pages import Authenticated, Form, NavItem, Pages, run_and_redirect
from spinney.tables import TablesUnusable

DAY_US = 86_400_000_000  # a day in microseconds
STRIP = 60
"""How many results of one task the strip of a service shows."""
CHANGES = 50
"""The most changes that a page lists."""
SERVICES = 250
"""How many services one page of an entity shows."""
Start = Annotated[int, Query(ge=0, le=1_000_000)]

pages = Pages(
    "monitor",
    "spinney.apps.monitor.pages",
    nav=[NavItem(path="", label="Monitor", icon="tick", key="m", shown=settings.is_set_up)],
)


@pages.get("")
async def overview(request: Request, context: Authenticated) -> Response:
    """Show how many services are in which state, what changed within 24 hours, and what is being checked.
    Where there is no monitor the page says so, with the status 503."""

    def read(control: Control) -> dict[str, Any]:
        tables = database()
        # Without first results that are well: after an import they would hide what has failed.
        changes = inventory.results.changes(
            tables, after_us=control.clock() - DAY_US, only_changes=True, first_ok=False, limit=CHANGES + 1
        )
        return {
            "counts": inventory.services.counts(tables, tasks=task_list.counted(settings.load())),
            "changes": changes[:CHANGES],
            "are_more": len(changes) > CHANGES,
            "named": _named(changes),
            "sequences": requests.sequences(control),
            "entities": inventory.entities.query(tables),
        }

    try:
        shown = await read_unlimited(context, read)
    except StoreUnavailable as error:
        # Most servers have no monitor, so this is no error of the server; a store that is away is.
        if not isinstance(error.__cause__, TablesUnusable):
            raise
        return pages.show(request, context, "unusable.html", status=503, problem=str(error))
    return pages.show(
        request,
        context,
        "overview.html",
        live="overview_now.html",
        topics=("jobs:type=monitor.sequence",),
        **shown,
    )


@pages.get("/entities/{eid}")
async def entity_page(request: Request, context: Authenticated, eid: int, start: Start = 0) -> Response:
    """Show the services of an entity."""
    shown = await read_unlimited(
        context, lambda control: _entity(inventory.entities.get(database(), eid), start)
    )
    return pages.show(request, context, "entity.html", public=False, spoken=language("en"), **shown)


@pages.get("/of/{page_key}", public=True)
async def public_page(request: Request, page_key: str, start: Start = 0) -> Response:
    """Show an entity to everybody who has this address, in its language. Whoever has it can read what fails,
    and change nothing. Search engines are told to leave it out, and links on it do not give it away."""
    shown = await run_in_threadpool(
        lambda: _entity(inventory.entities.by_page_key(database(), page_key), start)
    )
    spoken = language(shown["entity"].language)
    response = pages.show(request, None, "entity.html", public=True, spoken=spoken, **shown)
    # The address contains the key: it must not reach other sites by their links, nor search engines.
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Robots-Tag"] = "noindex"
    return response


@pages.get("/services/{gid}")
async def service_page(request: Request, context: Authenticated, gid: int) -> Response:
    """Show a service, also a retired one: its newest results, their history as a strip for each task, and
    what changed."""

    def read(control: Control) -> dict[str, Any]:
        tables = database()
        service = inventory.services.get(tables, gid)
        if service is None:
            raise HTTPException(404, f"there is no service {gid}")
        # One query for all strips and the list of changes: the tasks are not known before it.
        history = inventory.results.changes(tables, gid=gid, limit=1000)
        tasks = list(dict.fromkeys(change.task for change in history))
        return {
            "service": service,
            "current": inventory.results.current(tables, [gid]).get(gid, []),
            "strips": {task: _strip(history, task) for task in sorted(tasks)},
            "changes": [change for change in history if change.before != change.status][:CHANGES],
        }

    return pages.show(request, context, "service.html", **await read_unlimited(context, read))


@pages.get("/tasks")
async def tasks_page(request: Request, context: Authenticated) -> Response:
    """Show the tasks in the order in which they run, and the files that were rejected."""
    listed = await read_unlimited(context, lambda control: task_list.last_read(settings.load()))
    return pages.show(request, context, "tasks.html", tasks=listed.current, broken=listed.broken)


@pages.post("/check")
async def check(context: Authenticated, form: Form) -> Response:
    """Start a check of the service or the entity that the form names, or of everything when it names none,
    and lead back to the page of it."""
    gid, eid = form.whole("gid", "number of a service"), form.whole("eid", "number of an entity")
    back, selection = pages.prefix, Selection()
    if gid is not None:
        back, selection = f"{pages.prefix}/services/{gid}", Selection(gids=(gid,))
    elif eid is not None:
        back, selection = f"{pages.prefix}/entities/{eid}", Selection(eid=eid)

    def start(control: Control) -> int:
        require_unlimited(control)
        return requests.start(control, selection)

    return await run_and_redirect(
        context, back, start, lambda job_id: f"The check has started as job {job_id}"
    )


@pages.post("/stop")
async def stop(context: Authenticated, form: Form) -> Response:
    """Stop the sequence whose number the form gives, or all when it gives none."""
    number = form.whole("sequence", "number of a sequence")

    def stop_sequences(control: Control) -> int:
        require_unlimited(control)
        return requests.stop(control, None if number is None else [number])

    return await run_and_redirect(
        context, pages.prefix, stop_sequences, "The sequence was stopped; what runs ends after its task"
    )


def _entity(entity: Entity | None, start: int) -> dict[str, Any]:
    """Return what the page of an entity shows, from its ``start``-th service on. Raises HTTPException (404)
    for None, in the same words for a wrong number as for a wrong key."""
    if entity is None:
        raise HTTPException(404, "there is no such page")
    tables = database()
    listed = inventory.services.of_entity(tables, entity.eid, offset=start, limit=SERVICES)
    current = inventory.results.current(tables, [service.gid for service in listed])
    tasks = task_list.counted(settings.load())
    return {
        "start": start,
        "next": start + SERVICES if start + SERVICES < entity.services else None,
        "entity": entity,
        "services": listed,
        "worst": {service.gid: _worst(service, current.get(service.gid, []), tasks) for service in listed},
        "counts": inventory.services.counts(tables, entity.eid, tasks=tasks),
    }


def _worst(service: Service, current: list[CurrentStatus], tasks: Collection[str]) -> tuple[str, str]:
    """Return the state of a service, empty before its first check, and what the first task that found it says, unless
    all is in order. ``tasks``: those that count; none: all."""
    # Results of tasks whose files are gone stay in the tables, and no longer count.
    counted = [result for result in current if not tasks or result.task in tasks]
    if not counted:
        return ("" if service.checked_us is None else "ok"), ""
    worst = min(counted, key=lambda result: {"error": 0, "ok": 2}.get(result.status, 1))
    state = worst.status if worst.status in ("error", "ok") else "warning"
    return state, "" if state == "ok" else worst.info


def _named(changes: list[Change]) -> dict[int, str]:
    """Return the names of the services to which changes belong, by number; retired ones are missing."""
    gids = {change.gid for change in changes}
    return {s.gid: s.description or s.uri for s in inventory.services.by_numbers(database(), sorted(gids))}


def _strip(history: list[Change], task: str) -> list[Change]:
    """Return the newest results of a task, the oldest of them first."""
    return [change for change in history if change.task == task][:STRIP][::-1]
