"""New tasks: from the params in a request, or one for each document of another collection."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pymongo
from bson import ObjectId
from pymongo.errors import BulkWriteError, PyMongoError

from spinney.bridges.disbatch.interface.actions import new_task
from spinney.bridges.disbatch.interface.filters import document_filter, field, storable
from spinney.bridges.disbatch.interface.parameters import Parameters
from spinney.bridges.disbatch.interface.service import Service
from spinney.bridges.disbatch.interface.wire import BadRequest, inserted_many

_AT_ONCE = 10_000
_PATIENCE_S = 600.0
"""How long creating tasks may take; 100,000 took 12 s in the releases."""
_COLLECTION = re.compile(r"(?!system\.)[A-Za-z_][\w.-]{0,100}", re.ASCII)
_FROM_DOCUMENT = "document."


def create(service: Service, given: Parameters) -> list[ObjectId]:
    """Create the tasks of a request, and return their ids. Raises BadRequest."""
    queue = service.queue(given.fields.get("queue"))
    if queue is None:
        raise BadRequest("queue not found")
    params, names = given.decoded("params"), set(given.fields)
    if names == {"queue", "params"} and isinstance(params, Mapping | list):
        return _insert(service, queue["_id"], _listed(params))
    if names == {"queue", "params", "collection", "filter"} and isinstance(params, Mapping):
        return _insert(service, queue["_id"], _from_documents(service, given, storable(params)))
    raise BadRequest("invalid parameters passed")


def _listed(params: Mapping[str, Any] | list[Any]) -> list[Any]:
    tasks = [params] if isinstance(params, Mapping) else params
    if not tasks or not all(isinstance(task, Mapping) for task in tasks):
        raise BadRequest("'params' must be a JSON array of task params objects")
    if not all(tasks):
        raise BadRequest("'params' must be a JSON array of task params objects with key/value pairs")
    return [storable(task) for task in tasks]


def _from_documents(
    service: Service, given: Parameters, params: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    query, name = given.decoded("filter"), given.fields["collection"]
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
    for part in path.split("."):
        document = document.get(part) if isinstance(document, Mapping) else None
    return document


def _insert(service: Service, queue_id: ObjectId, tasks: Iterable[Mapping[str, Any]]) -> list[ObjectId]:
    ids: list[ObjectId] = []
    remaining = iter(tasks)
    with pymongo.timeout(_PATIENCE_S):
        while params := list(islice(remaining, _AT_ONCE)):
            now = datetime.now(UTC)
            documents = [{"_id": ObjectId(), **new_task(queue_id, task, now)} for task in params]
            created = [document["_id"] for document in documents]
            try:
                service.tasks.insert_many(documents)
            except PyMongoError as error:
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
