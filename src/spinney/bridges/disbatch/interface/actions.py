"""What users do with tasks beyond reading them: create them, from the params in a request or one for each document of
another collection, and cancel, reset and clone them. The releases had buttons for the latter, and no routes.

Each action is one conditional write, whose filter names the states in which it is right, because nodes change tasks at
any time. Where it does not match, the task is read to say why. Actions are written to the changelog; the creation of
tasks is not."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, get_args

import pymongo
from bson import ObjectId
from pymongo.errors import BulkWriteError, PyMongoError

from spinney.bridges.disbatch.database import TASKS, Status
from spinney.bridges.disbatch.interface.filters import document_filter, field, storable
from spinney.bridges.disbatch.interface.parameters import Parameters
from spinney.bridges.disbatch.interface.service import Service
from spinney.bridges.disbatch.interface.wire import BadRequest, inserted_many

Action = Literal["cancel", "reset", "clone"]
ACTIONS: tuple[Action, ...] = get_args(Action)
_ATTEMPTS = 5
"""How often a cancel looks again when the task has gone from one state to another meanwhile."""
_ACTIVE = [int(Status.CLAIMED), int(Status.RUNNING)]
# Fields that a run leaves, and that a task which is queued again must not have.
_OF_A_RUN = ("claim", "wish", "complete", "cmdExit", "cmdErr")
_AT_ONCE = 10_000  # how many tasks one write creates
_PATIENCE_S = 600.0
"""How long creating tasks may take; 100,000 took 12 s in the releases."""
_COLLECTION = re.compile(r"(?!system\.)[A-Za-z_][\w.-]{0,100}", re.ASCII)
# A value of params that begins so is replaced by a field of each document.
_FROM_DOCUMENT = "document."


def perform(service: Service, action: object, task_id: ObjectId, user: str) -> dict[str, Any]:
    """Perform an action on a task, and return what has become of the task: its id and the fields that changed. Raises
    BadRequest for another action, a task that does not exist, and where the task's state forbids it."""
    if action not in ACTIONS:
        raise BadRequest(f"'action' must be one of {', '.join(ACTIONS)}")
    return {"cancel": cancel, "reset": reset, "clone": clone}[action](service, task_id, user)


def cancel(service: Service, task_id: ObjectId, user: str) -> dict[str, Any]:
    """Cancel a task: at once when no node has it, else by the field ``wish``, which nodes of Spinney obey and
    those of the releases do not. One that is cancelled already stays so. Raises BadRequest when it has
    finished, or changes faster than it can be written."""
    for _ in range(_ATTEMPTS):
        waiting = {"_id": task_id, "status": {"$lt": int(Status.CLAIMED), "$ne": int(Status.CANCELLED)}}
        change = {
            "$set": {"status": int(Status.CANCELLED), "mtime": datetime.now(UTC)},
            "$unset": {"wish": ""},
        }
        if service.tasks.update_one(waiting, change).matched_count:
            return _done(service, "cancel", task_id, user, status=int(Status.CANCELLED))
        # The time of the last change stays: nodes tell by it that a claimed task is orphaned.
        if service.tasks.update_one(
            {"_id": task_id, "status": {"$in": _ACTIVE}}, {"$set": {"wish": "cancel"}}
        ).matched_count:
            return _done(service, "cancel", task_id, user, wish="cancel")
        status = _status(service, task_id)
        if status == Status.CANCELLED:
            return {"id": task_id, "status": status}
        if status > Status.RUNNING:
            raise BadRequest(
                f"the task has finished with status {status}; nothing is left to cancel", id=task_id
            )
    raise BadRequest("the task changes too fast; try again", 503, id=task_id)


def reset(service: Service, task_id: ObjectId, user: str) -> dict[str, Any]:
    """Queue a task again that has finished, is orphaned or is parked otherwise. Its former output is removed from the
    document; chunks of it in GridFS stay. Raises BadRequest when it is queued already, or a node has it."""
    change = {"$set": _queued(datetime.now(UTC)), "$unset": dict.fromkeys(_OF_A_RUN, "")}
    ended = {"_id": task_id, "$or": [{"status": {"$gt": 0}}, {"status": {"$lt": int(Status.QUEUED)}}]}
    if service.tasks.update_one(ended, change).matched_count:
        return _done(service, "reset", task_id, user, status=int(Status.QUEUED))
    status = _status(service, task_id)
    if status == Status.QUEUED:
        raise BadRequest("the task is queued already", id=task_id)
    raise BadRequest("a node has the task; cancel it first, and reset it when it has ended", id=task_id)


def clone(service: Service, task_id: ObjectId, user: str) -> dict[str, Any]:
    """Queue a new task with the queue and the params of this one. Raises BadRequest when its queue is deleted."""
    task = service.task(task_id, "queue", "params")
    if service.queues.find_one({"_id": task.get("queue")}, {"_id": 1}) is None:
        raise BadRequest("the queue of the task is deleted; create the task in another queue", id=task_id)
    document = new_task(task["queue"], task.get("params"), datetime.now(UTC))
    service.tasks.insert_one(document)
    return _done(service, "clone", task_id, user, clone=document["_id"])


def _status(service: Service, task_id: ObjectId) -> int:
    """Return the status of a task. Raises BadRequest for a task that does not exist, or whose status is no number."""
    status = service.task(task_id, "status").get("status")
    if not isinstance(status, int | float) or not math.isfinite(status):
        raise BadRequest(f"the task has no number as its status, but {status!r:.40}", id=task_id)
    return int(status)


def new_task(queue_id: ObjectId, params: object, now: datetime) -> dict[str, Any]:
    """Return the document of a queued task."""
    return {"queue": queue_id, "params": params, "ctime": now, **_queued(now)}


def _queued(now: datetime) -> dict[str, Any]:
    """Return the fields of a task that waits for a node."""
    return {"status": int(Status.QUEUED), "node": None, "stdout": None, "stderr": None, "mtime": now}


def _done(service: Service, action: Action, task_id: ObjectId, user: str, **result: Any) -> dict[str, Any]:
    """Log an action, and return what the reply says of it."""
    service.changed(TASKS, {"_id": task_id}, user, action=action, **result)
    return {"id": task_id, **result}


def create(service: Service, parameters: Parameters) -> list[ObjectId]:
    """Create the tasks of a request, and return their ids in order. It has a queue and ``params``, an object
    or a list of them; or also a collection and a filter, and then each matching document makes a task. Raises
    BadRequest, with the ids of those that were created before an error."""
    queue = service.queue(parameters.fields.get("queue"))
    if queue is None:
        raise BadRequest("queue not found")
    params, names = parameters.decoded("params"), set(parameters.fields)
    if names == {"queue", "params"} and isinstance(params, Mapping | list):
        return _insert(service, queue["_id"], _listed(params))
    if names == {"queue", "params", "collection", "filter"} and isinstance(params, Mapping):
        return _insert(service, queue["_id"], _from_documents(service, parameters, storable(params)))
    raise BadRequest("invalid parameters passed")


def _listed(params: Mapping[str, Any] | list[Any]) -> list[Any]:
    """Return the params of a list of tasks, or of one, as they are stored. Raises BadRequest for none, and
    for an empty object."""
    tasks = [params] if isinstance(params, Mapping) else params
    if not tasks or not all(isinstance(task, Mapping) for task in tasks):
        raise BadRequest("'params' must be a JSON array of task params objects")
    if not all(tasks):
        raise BadRequest("'params' must be a JSON array of task params objects with key/value pairs")
    return [storable(task) for task in tasks]


def _from_documents(
    service: Service, parameters: Parameters, params: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield params for each document of a collection that matches a filter. Collections of the system cannot
    be named. Raises BadRequest, at the first task."""
    query, name = parameters.decoded("filter"), parameters.fields["collection"]
    if not isinstance(query, Mapping):
        raise BadRequest("'filter' must be a JSON object")
    if not isinstance(name, str) or not _COLLECTION.fullmatch(name):
        raise BadRequest("'collection' required and must be the name of a collection")
    sources = {
        key: field(value.removeprefix(_FROM_DOCUMENT))
        for key, value in params.items()
        if isinstance(value, str) and value.startswith(_FROM_DOCUMENT)
    }
    # A parent and a child of it cannot both be in a projection, so only the first part of each name is.
    shown = {source.partition(".")[0]: 1 for source in sources.values()}
    for document in service.db[name].find(document_filter(query), {"_id": 1} | shown):
        yield {**params, **{key: _value(document, source) for key, source in sources.items()}}


def _value(document: Any, path: str) -> Any:
    """Return the value at a path of names with dots in a document; None where there is none."""
    for part in path.split("."):
        document = document.get(part) if isinstance(document, Mapping) else None
    return document


def _insert(service: Service, queue_id: ObjectId, tasks: Iterable[Mapping[str, Any]]) -> list[ObjectId]:
    """Insert tasks in parts, and return their ids. Ids are made here and not by the server, so that an error
    can say which tasks exist, be it of a write or of the read that yields the next part."""
    ids: list[ObjectId] = []
    remaining = iter(tasks)
    with pymongo.timeout(_PATIENCE_S):
        while True:
            created: list[ObjectId] = []
            try:
                params = list(islice(remaining, _AT_ONCE))
                if not params:
                    break
                now = datetime.now(UTC)
                documents = [{"_id": ObjectId(), **new_task(queue_id, task, now)} for task in params]
                created = [document["_id"] for document in documents]
                service.tasks.insert_many(documents)
            except PyMongoError as error:
                if not ids and not created:
                    raise  # the first read failed, and nothing was sent
                details = error.details if isinstance(error, BulkWriteError) else {}
                ids += created[: details.get("nInserted", 0)]
                raise BadRequest(
                    f"only {len(ids)} tasks are known to be created ({type(error).__name__}); look with GET /tasks "
                    f"before you create the others",
                    503,
                    **inserted_many(ids),
                ) from error
            ids += created
    if not ids:
        raise BadRequest("no document matches the filter, so no task was created", **inserted_many([]))
    return ids
