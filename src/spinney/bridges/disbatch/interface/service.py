"""What all routes of a command interface share: the database, the settings, and the log of changes."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, cast

from bson import ObjectId
from fastapi import Depends, Request
from pymongo.errors import PyMongoError

from spinney.bridges.disbatch.database import (
    CHANGELOG,
    NODES,
    QUEUES,
    TASKS,
    Collection,
    Database,
    Document,
    reach,
)
from spinney.bridges.disbatch.interface.parameters import Parameters, parameters
from spinney.bridges.disbatch.interface.settings import InterfaceSettings
from spinney.bridges.disbatch.interface.wire import BadRequest, Wire, oid, updated

log = logging.getLogger(__name__)


class Service:
    """The database and the settings of one command interface. Its methods raise the errors of the driver,
    which the application answers."""

    def __init__(self, db: Database, settings: InterfaceSettings) -> None:
        self.db, self.settings = db, settings
        self.wire = Wire(settings.oids)
        self.nodes: Collection = db[NODES]
        self.queues: Collection = db[QUEUES]
        self.tasks: Collection = db[TASKS]

    def queue(self, id_or_name: object) -> Document | None:
        """Return the queue of an id or a name that a request gives. None: there is none. Text that could be
        an id is taken for one."""
        if isinstance(id_or_name, str):
            return self.queues.find_one(by_id_or("name", id_or_name))
        id_ = oid(id_or_name)
        return None if id_ is None else self.queues.find_one({"_id": id_})

    def queue_id(self, name: str) -> ObjectId | None:
        """Return the id of the queue of this name. None: there is none."""
        queue = self.queues.find_one({"name": name}, {"_id": 1})
        return None if queue is None else queue["_id"]

    def task(self, task_id: ObjectId, *fields: str) -> Document:
        """Return a task, or only these fields of it. Raises BadRequest where there is none."""
        task = self.tasks.find_one({"_id": task_id}, fields or None)
        if task is None:
            raise BadRequest(f"no task with id {task_id}", 404)
        return task

    def update(
        self, collection: Collection, query: Document, changes: Mapping[str, Any], by: str, no_such: str
    ) -> Document:
        """Change a document, and return what the releases say of that. A change that changes nothing is not
        logged. ``by``: who does it. Raises BadRequest with the sentence ``no_such`` where there is no such
        document."""
        result = collection.update_one(query, {"$set": changes})
        content = updated(result.matched_count, result.modified_count)
        if not result.matched_count:
            raise BadRequest(no_such, **content)
        if result.modified_count:
            now = {name: changes.get(name, value) for name, value in query.items()}
            self.changed(collection.name, collection.find_one(now), by)
        return content

    def changed(self, collection: str, document: Mapping[str, Any] | None, by: str, **more: Any) -> None:
        """Write a changed document to the collection ``changelog``, as the releases do since 4.2, and besides who has
        changed it and when. The change stays when that fails; then the log has it."""
        if document is None:
            return
        entry = {name: value for name, value in document.items() if name != "_id"}
        entry |= {
            "id": document["_id"],
            "collection": collection,
            "by": by,
            "time": datetime.now(UTC),
            **more,
        }
        try:
            self.db[CHANGELOG].insert_one(entry)
        except PyMongoError as error:
            log.warning(
                "the change of %s %s by %s is not in the changelog: %s", collection, entry["id"], by, error
            )


def by_id_or(field: str, value: str) -> Document:
    """Return the filter for the document that a request names by its id, or else by this field."""
    id_ = oid(value)
    return {field: value} if id_ is None else {"_id": id_}


def service_of(request: Request) -> Service:
    """Return the service of the application that got a request."""
    return cast(Service, request.app.state.service)


def require_reached(service: Annotated[Service, Depends(service_of)]) -> None:
    """Raise PyMongoError soon where no primary answers; the operations of a route may take longer."""
    reach(service.db)


def user_of(request: Request) -> str:
    """Return who sends a request; the application has authenticated them before."""
    return cast(str, request.state.user)


Serving = Annotated[Service, Depends(service_of)]
User = Annotated[str, Depends(user_of)]
Params = Annotated[Parameters, Depends(parameters)]
