"""The routes of tasks: show, search, create, cancel, reset and clone them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from bson import ObjectId
from fastapi import APIRouter
from starlette.responses import Response

from spinney.bridges.disbatch.database import CHUNKS, Document
from spinney.bridges.disbatch.interface.actions import create, perform
from spinney.bridges.disbatch.interface.filters import index_sets, projection, refuse_unindexed, task_filter
from spinney.bridges.disbatch.interface.parameters import Parameters, refuse_unknown
from spinney.bridges.disbatch.interface.service import Params, Service, Serving, User
from spinney.bridges.disbatch.interface.wire import BadRequest, inserted_many, oid

router = APIRouter()
_SEARCH_LIMIT = 100
_TERSE = "[terse mode]"


@router.get("/tasks")
def list_tasks(parameters: Params, service: Serving) -> Response:
    """Return the tasks that the indexed fields ask for, or how many they are."""
    indexes = index_sets(service.tasks.index_information())
    if not parameters.fields and not parameters.options:
        kinds = {name: {"repeatable": "yes", "type": ["string"]} for index in indexes for name in index}
        schema = {"verb": "GET", "limit": 100, "title": "Disbatch Tasks Query", "params": kinds}
        return service.wire.reply({"schema": schema, "indexes": indexes})
    refuse_unindexed(parameters.fields, indexes)
    query = task_filter(parameters.fields, service.queue_id)
    if not query and not parameters.number(".limit") and not parameters.flag(".count"):
        raise BadRequest(
            "refusing to return everything - include one or more indexed search restrictions", indexes=indexes
        )
    return _answer(service, query, parameters)


@router.get("/tasks/{task}")
def show_task(task: str, parameters: Params, service: Serving) -> Response:
    """Return the task of an id, with its output if ``.full`` asks for that."""
    shown = _shown(service, service.task(_id(task)), parameters)
    return service.wire.reply(shown, pretty=parameters.flag(".pretty", True))


@router.post("/tasks")
def create_tasks(parameters: Params, service: Serving) -> Response:
    """Create tasks in a queue, from a list or from the documents of a collection, and return their ids."""
    return service.wire.reply(inserted_many(create(service, parameters)))


@router.post("/tasks/search")
def search_tasks(parameters: Params, service: Serving) -> Response:
    """Return tasks by any fields, at most 100, as an extension of release 4.0 did."""
    query, options = (
        parameters.decoded(name) if name in parameters.fields else {} for name in ("filter", "options")
    )
    if not isinstance(query, Mapping) or not isinstance(options, Mapping):
        raise BadRequest("filter and options must be name/value objects")
    dotted = {f".{name}": value for name, value in {"limit": _SEARCH_LIMIT, **options}.items()}
    dotted |= {
        f".{name}": parameters.fields[name] for name in ("count", "pretty") if name in parameters.fields
    }
    dotted |= {".terse": parameters.fields.get("terse", True), ".epoch": True}
    parameters = replace(parameters, options=dotted)
    parameters = replace(parameters, options={**dotted, ".full": not parameters.flag(".terse")})
    refuse_unknown(options, {"limit", "skip"}, "unknown option; options are limit and skip")
    if not 1 <= parameters.number(".limit") <= _SEARCH_LIMIT:
        raise BadRequest(f"limit cannot exceed {_SEARCH_LIMIT}")
    return _answer(service, task_filter(query, service.queue_id), parameters, single=False)


@router.post("/tasks/{target}")
def act(target: str, parameters: Params, service: Serving, user: User) -> Response:
    """Cancel, reset or clone a task; or, given an array, create tasks in a queue, as release 4.0 did."""
    if parameters.items is not None:
        parameters = Parameters({"queue": target, "params": parameters.items}, {}, text=False)
        return service.wire.reply(inserted_many(create(service, parameters)))
    refuse_unknown(parameters.fields, {"action"}, "Invalid param")
    return service.wire.reply(perform(service, parameters.fields.get("action"), _id(target), user))


@router.post("/tasks/{queue}/{collection}")
def create_from_collection(queue: str, collection: str, parameters: Params, service: Serving) -> Response:
    """Create a task for each document of a collection, as release 4.0 did."""
    parameters = replace(parameters, fields={**parameters.fields, "queue": queue, "collection": collection})
    return service.wire.reply(inserted_many(create(service, parameters)))


@router.delete("/tasks/{task}")
def cancel_task(task: str, service: Serving, user: User) -> Response:
    """Cancel a task: at once when no node has it, else by the field ``wish``, which nodes of Spinney obey."""
    return service.wire.reply(perform(service, "cancel", _id(task), user))


def _id(text: str) -> ObjectId:
    """Return the id of a task from an address. Raises BadRequest (404)."""
    if (id_ := oid(text)) is None:
        raise BadRequest(f"no task with id {text}", 404)
    return id_


def _answer(
    service: Service, query: dict[str, Any], parameters: Parameters, *, single: bool = True
) -> Response:
    """Return the tasks of a filter by id, or their number with ``.count``. ``single``: a limit of 1 asks for
    an object, not for an array. Raises BadRequest for more tasks than one reply may have."""
    if parameters.flag(".count"):
        return service.wire.reply({"count": service.tasks.count_documents(query)})
    limit, most = parameters.number(".limit"), service.settings.most_tasks
    if limit > most:
        raise BadRequest(f"'.limit' must be at most {most}; get the others with '.skip'")
    cursor = service.tasks.find(query, projection(parameters.decoded(".fields")))
    tasks = list(cursor.sort("_id").skip(parameters.number(".skip")).limit(limit or most + 1))
    if len(tasks) > most:
        raise BadRequest(f"more than {most} tasks match; ask for them in pieces by '.limit' and '.skip'")
    shown = [_shown(service, task, parameters) for task in tasks]
    content = next(iter(shown), {}) if single and limit == 1 else shown
    return service.wire.reply(content, pretty=parameters.flag(".pretty"))


def _shown(service: Service, task: Document, parameters: Parameters) -> Document:
    """Change a task as the options ask: ``.full`` reads output from GridFS, ``.terse`` leaves output out, and
    ``.epoch`` writes times as seconds since 1970."""
    for stream in ("stdout", "stderr"):
        output = task.get(stream)
        if isinstance(output, ObjectId):
            if parameters.flag(".full") and not parameters.flag(".terse"):
                task[stream] = read_output(service, output)
        elif output and parameters.flag(".terse"):
            task[stream] = _TERSE
    if parameters.flag(".epoch"):
        for name in ("ctime", "mtime"):
            if isinstance(task.get(name), datetime):
                task[name] = task[name].timestamp()
    return task


def read_output(service: Service, file_id: ObjectId) -> str:
    """Return a file of GridFS, whose pieces are text as Perl writes them, or bytes as all other drivers do."""
    pieces = [chunk["data"] for chunk in service.db[CHUNKS].find({"files_id": file_id}).sort("n")]
    joined = b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces)
    return joined.decode("utf-8", "replace")
