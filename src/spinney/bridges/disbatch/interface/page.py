"""The page: nodes, queues with their limits, and tasks with what can be done with them. It needs no script.

What is shown is in its address, so that it can be reloaded and bookmarked. Forms are sent by POST with a token, and
lead back to the page with the same filter."""

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from jinja2 import Environment, PackageLoader
from starlette.responses import HTMLResponse, RedirectResponse, Response

from spinney.bridges.disbatch.database import Status
from spinney.bridges.disbatch.interface.actions import ACTIONS, perform
from spinney.bridges.disbatch.interface.filters import task_filter
from spinney.bridges.disbatch.interface.nodes import nodes
from spinney.bridges.disbatch.interface.queues import queues, update
from spinney.bridges.disbatch.interface.service import Params, service_of, user_of
from spinney.bridges.disbatch.interface.wire import BadRequest, Wire, clock, oid

router = APIRouter()
_STYLES = {"spinney.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}
_FILTER = ("id", "queue", "status", "node")
_SHOWN = 50  # tasks on one page
# What the page says after an action.
_DONE = {
    "cancel": "The task is cancelled, or its node stops it.",
    "reset": "The task is queued again.",
    "clone": "A copy of the task is queued.",
    "threads": "The limit is set.",
}
_LOOKS = {
    Status.SUCCEEDED: "completed",
    Status.RUNNING: "running",
    Status.CLAIMED: "claimed",
    Status.QUEUED: "pending",
    Status.TERMINATED: "failed",
    Status.BLOCKED: "held",
    Status.CANCELLED: "cancelled",
    Status.ORPHANED: "orphaned",
}
"""The colours of Spinney's own states."""


@router.get("/")
def show(request: Request, parameters: Params) -> Response:
    """Return the page, with the newest tasks of the filter in its address."""
    return _page(request, dict(parameters.fields))


@router.post("/page/queue")
def set_threads(request: Request, parameters: Params) -> Response:
    """Set the limit of a queue; with none, as with 0, nodes start nothing."""
    return _do(request, parameters.fields, "threads")


@router.post("/page/task")
def act(request: Request, parameters: Params) -> Response:
    """Cancel, reset or clone a task."""
    return _do(request, parameters.fields, parameters.fields.get("action"))


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Return the style sheet or the icon of Spinney's own pages. Raises BadRequest for another name."""
    if name not in _STYLES:
        raise BadRequest(f"no file {name}", 404)
    content = (files("spinney.web.pages") / "static" / name).read_bytes()
    return Response(content, media_type=_STYLES[name], headers={"Cache-Control": "max-age=3600"})


def _do(request: Request, fields: Any, action: object) -> Response:
    """Do what a form asks for, and lead back to the page; a refusal is shown on the page itself, with its
    status. Raises BadRequest for a form without a valid token."""
    service, user = service_of(request), user_of(request)
    request.app.state.access.check_form(user, fields.get("form"))
    shown = {name: fields[f"f_{name}"] for name in _FILTER if fields.get(f"f_{name}")}
    try:
        id_ = oid(fields.get("id"))
        if id_ is None:
            raise BadRequest("the form names no task and no queue; reload the page")
        if action == "threads":
            update(str(id_), {"threads": fields.get("threads") or None}, service, user)
        else:
            perform(service, action, id_, user)
    except BadRequest as refused:
        return _page(request, shown, str(refused), refused.status)
    return RedirectResponse(f"/?{urlencode({**shown, 'done': str(action)})}", 303)


def _page(request: Request, fields: dict[str, Any], refused: str = "", status: int = 200) -> Response:
    """Return the page with the tasks that ``fields`` ask for, the newest first; ``before`` is the id behind
    which older ones begin. ``refused``: a sentence about what could not be done."""
    service, user = service_of(request), user_of(request)
    done = _DONE.get(str(fields.get("done")), "")
    chosen = {name: fields[name] if isinstance(fields.get(name), str) else "" for name in _FILTER}
    before = oid(fields.get("before"))
    try:
        query = task_filter(chosen, service.queue_id)
    except BadRequest as error:
        query, refused, status = {"_id": {"$in": []}}, str(error), 400
    if before is not None:
        query = {"$and": [query, {"_id": {"$lt": before}}]}
    fields_shown = {"stdout": 0, "stderr": 0}
    tasks = list(service.tasks.find(query, fields_shown).sort("_id", -1).limit(_SHOWN + 1))
    listed = queues(service)
    older = {**chosen, "before": str(tasks[_SHOWN - 1]["_id"])} if len(tasks) > _SHOWN else None
    content = _template().render(
        database=service.db.name,
        user=user,
        form=request.app.state.access.form_token(user),
        nodes=nodes(service),
        queues=listed,
        names={queue["id"]: queue["name"] for queue in listed},
        tasks=[_row(task) for task in tasks[:_SHOWN]],
        chosen=chosen,
        older=older and urlencode(older),
        done=done,
        refused=refused,
    )
    return HTMLResponse(content, status)


def _row(task: dict[str, Any]) -> dict[str, Any]:
    """Return a task with its state in words, and what can be done with it."""
    status: Any = task.get("status")
    try:
        standard = Status(status)
        word, look = standard.name.lower(), _LOOKS.get(standard, "failed")
    except ValueError:
        word, look = f"status {status}", "held"
    wish = "cancel" if task.get("wish") == "cancel" and status in (Status.CLAIMED, Status.RUNNING) else ""
    active = isinstance(status, int) and Status.QUEUED <= status <= Status.RUNNING
    allowed = [action for action in ACTIONS if action == "clone" or (action == "cancel") == active]
    allowed = [action for action in allowed if not (wish and action == "cancel")]
    return {**task, "word": word, "look": look, "wish": wish, "actions": allowed}


@cache
def _template() -> Any:
    """Return the template, loaded once; it escapes all that it is given."""
    environment = Environment(
        loader=PackageLoader("spinney.bridges.disbatch.interface"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["clock"] = lambda moment: clock(moment) if isinstance(moment, datetime) else ""
    environment.filters["json"] = lambda value: bytes(Wire("plain").reply(value).body).decode()
    environment.filters["when"] = lambda ms: clock(datetime.fromtimestamp(ms / 1000, UTC))
    return environment.get_template("page.html")
