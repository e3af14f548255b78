"""What users do with tasks beyond creating and reading them: cancel, reset and clone. The releases had buttons for
these, and no routes."""

from datetime import UTC, datetime
from typing import Any, Literal, get_args

from bson import ObjectId

from spinney.bridges.disbatch.database import TASKS, Status
from spinney.bridges.disbatch.interface.service import Service
from spinney.bridges.disbatch.interface.wire import BadRequest

Action = Literal["cancel", "reset", "clone"]
ACTIONS: tuple[Action, ...] = get_args(Action)
_ATTEMPTS = 5
"""How often a cancel looks again when the task has gone from one state to another meanwhile."""
_ACTIVE = [int(Status.CLAIMED), int(Status.RUNNING)]
_OF_A_RUN = ("claim", "wish", "complete", "cmdExit", "cmdErr")


def perform(service: Service, action: object, task_id: ObjectId, user: str) -> dict[str, Any]:
    """Do this with a task, and return what has become of it. Raises BadRequest."""
    if action == "cancel":
        return cancel(service, task_id, user)
    if action == "reset":
        return reset(service, task_id, user)
    if action == "clone":
        return clone(service, task_id, user)
    raise BadRequest(f"'action' must be one of {', '.join(ACTIONS)}")


def cancel(service: Service, task_id: ObjectId, user: str) -> dict[str, Any]:
    """Cancel a task: at once when no node has it, else by the field ``wish``, which nodes of Spinney obey."""
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
    """Queue a task again that has finished, is orphaned or is parked otherwise. Its former output is forgotten; what
    of it lies in GridFS stays there."""
    change = {
        "$set": {
            "status": int(Status.QUEUED),
            "node": None,
            "stdout": None,
            "stderr": None,
            "mtime": datetime.now(UTC),
        },
        "$unset": dict.fromkeys(_OF_A_RUN, ""),
    }
    ended = {"_id": task_id, "$or": [{"status": {"$gt": 0}}, {"status": {"$lt": int(Status.QUEUED)}}]}
    if service.tasks.update_one(ended, change).matched_count:
        return _done(service, "reset", task_id, user, status=int(Status.QUEUED))
    status = _status(service, task_id)
    if status == Status.QUEUED:
        raise BadRequest("the task is queued already", id=task_id)
    raise BadRequest("a node has the task; cancel it first, and reset it when it has ended", id=task_id)


def clone(service: Service, task_id: ObjectId, user: str) -> dict[str, Any]:
    """Queue a new task with the queue and the params of this one."""
    task = service.tasks.find_one({"_id": task_id}, {"queue": 1, "params": 1})
    if task is None:
        raise _unknown(task_id)
    if service.queues.find_one({"_id": task["queue"]}, {"_id": 1}) is None:
        raise BadRequest("the queue of the task is deleted; create the task in another queue", id=task_id)
    document = new_task(task["queue"], task.get("params"), datetime.now(UTC))
    service.tasks.insert_one(document)
    return _done(service, "clone", task_id, user, clone=document["_id"])


def new_task(queue_id: ObjectId, params: object, now: datetime) -> dict[str, Any]:
    """Return the document of a queued task."""
    return {
        "queue": queue_id,
        "status": int(Status.QUEUED),
        "node": None,
        "params": params,
        "ctime": now,
        "mtime": now,
        "stdout": None,
        "stderr": None,
    }


def _done(service: Service, action: Action, task_id: ObjectId, user: str, **result: Any) -> dict[str, Any]:
    service.changed(TASKS, {"_id": task_id}, user, action=action, **result)
    return {"id": task_id, **result}


def _status(service: Service, task_id: ObjectId) -> int:
    task = service.tasks.find_one({"_id": task_id}, {"status": 1})
    if task is None:
        raise _unknown(task_id)
    return int(task["status"])


def _unknown(task_id: ObjectId) -> BadRequest:
    return BadRequest(f"no task with id {task_id}", 404)
