"""The routes of queues and plugins."""

from collections.abc import Mapping
from typing import Any

from bson import ObjectId
from fastapi import APIRouter
from pymongo.errors import DuplicateKeyError
from starlette.responses import Response

from spinney.bridges.disbatch.database import QUEUES, Status
from spinney.bridges.disbatch.interface.parameters import limit, refuse_unknown
from spinney.bridges.disbatch.interface.service import Params, Service, Serving, User, by_id_or
from spinney.bridges.disbatch.interface.wire import BadRequest, deleted, inserted_one, updated
from spinney.bridges.disbatch.limits import SORTS

router = APIRouter()
_NO_QUEUE = "no queue {!r}; GET /queues lists them"
_FIELDS = ("name", "plugin", "threads", "sort")


@router.get("/plugins")
def list_plugins(service: Serving) -> Response:
    """Return the plugins that queues may use."""
    return service.wire.reply(sorted(service.settings.plugins))


@router.get("/queues")
def list_queues(service: Serving) -> Response:
    """Return all queues with their numbers of tasks."""
    return service.wire.reply(queues(service))


@router.get("/queues/{queue:path}")
def show_queue(queue: str, service: Serving) -> Response:
    """Return one queue; null for an unknown one."""
    return service.wire.reply(next(iter(queues(service, by_id_or("name", queue))), None))


@router.post("/queues")
def create_queue(parameters: Params, service: Serving, user: User) -> Response:
    """Create a queue, and return its id. Raises BadRequest for a name that exists."""
    fields = parameters.fields
    if not (fields.get("name") and fields.get("plugin")):
        raise BadRequest("name and plugin required")
    document = _checked(fields, service, "Invalid param", "Unknown plugin")
    try:
        id_ = service.queues.insert_one(document).inserted_id
    except DuplicateKeyError:
        raise BadRequest(
            f"a queue named {document['name']!r} exists already; choose another name", id=None
        ) from None
    service.changed(QUEUES, document, user)
    return service.wire.reply(inserted_one(id_))


@router.post("/queues/{queue:path}")
def update_queue(queue: str, parameters: Params, service: Serving, user: User) -> Response:
    """Change fields of a queue that is named by its id or name."""
    if not parameters.fields:
        raise BadRequest("no params")
    return service.wire.reply(update(queue, parameters.fields, service, user))


@router.delete("/queues/{queue:path}")
def delete_queue(queue: str, service: Serving, user: User) -> Response:
    """Delete a queue. Its tasks stay, as in the releases, and no node claims them."""
    document = service.queues.find_one_and_delete(by_id_or("name", queue))
    if document is None:
        raise BadRequest(_NO_QUEUE.format(queue), **deleted(0))
    service.changed(QUEUES, document, user, deleted=True)
    return service.wire.reply(deleted(1))


def update(queue: str, fields: Mapping[str, Any], service: Service, user: str) -> dict[str, Any]:
    """Change the queue of this id or name, and return what the releases say of that. Raises BadRequest for a
    queue that does not exist, a value that does not fit, and a name that another queue has."""
    changes = _checked(fields, service, "unknown param", "unknown plugin")
    query, no_such = by_id_or("name", queue), _NO_QUEUE.format(queue)
    try:
        return service.update(service.queues, query, changes, user, no_such)
    except DuplicateKeyError:
        raise BadRequest(f"a queue named {changes['name']!r} exists already", **updated(1, 0)) from None


def queues(service: Service, query: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the queues that match a filter (all for None), by name, with their numbers of tasks. ``queued``:
    those that a node may claim; ``parked``: those that it may not, being cancelled, blocked, terminated or
    orphaned."""
    listed = list(service.queues.find(query or {}).sort("name"))
    counts = count_tasks(service, [queue["_id"] for queue in listed])
    return [
        {"id": queue["_id"], **{name: queue.get(name) for name in _FIELDS}, **counts[queue["_id"]]}
        for queue in listed
    ]


def count_tasks(service: Service, ids: list[ObjectId]) -> dict[ObjectId, dict[str, int]]:
    """Return how many tasks of each of these queues are queued, parked, running and completed, from the index
    of queues alone; all four are keys. Tasks whose status is no number are not counted."""
    counts = {id_: {"queued": 0, "parked": 0, "running": 0, "completed": 0} for id_ in ids}
    stages: list[dict[str, Any]] = [
        {"$match": {"queue": {"$in": ids}}},
        {"$group": {"_id": {"queue": "$queue", "status": "$status"}, "tasks": {"$sum": 1}}},
    ]
    for row in service.tasks.aggregate(stages) if ids else ():
        status = row["_id"].get("status")
        if not isinstance(status, int | float):
            continue
        kind = "completed" if status > Status.RUNNING else "running" if status >= Status.CLAIMED else "parked"
        counts[row["_id"]["queue"]]["queued" if status == Status.QUEUED else kind] += row["tasks"]
    return counts


def _checked(fields: Mapping[str, Any], service: Service, unknown: str, no_plugin: str) -> dict[str, Any]:
    """Return the fields of a queue as they are stored. Raises BadRequest with the sentences ``unknown`` and
    ``no_plugin``, which are those of the releases and differ between new queues and changes."""
    refuse_unknown(fields, _FIELDS, unknown)
    checked = dict(fields)
    if "plugin" in fields and fields["plugin"] not in service.settings.plugins:
        raise BadRequest(no_plugin, plugin=fields["plugin"])
    if "threads" in fields:
        checked["threads"] = limit(fields["threads"], "threads")
    name = fields.get("name")
    if "name" in fields and not (isinstance(name, str) and name and "\0" not in name):
        raise BadRequest("name must be a string")
    if fields.get("sort") is not None and fields["sort"] not in [*SORTS]:
        raise BadRequest('sort must be "fifo", "lifo", or "default"')
    return checked
