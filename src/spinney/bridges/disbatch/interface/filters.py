"""Filters: what a request may ask a collection for.

A filter is made anew from a request's values; no object of a request is handed on to MongoDB. Only the operators in
``OPERATORS`` are accepted, and a name has no ``$``, so that neither code (``$where``) nor an operator where text
belongs (``{"$ne": null}``) reaches the database."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId

from spinney.bridges.disbatch.interface.wire import BadRequest, oid

OPERATORS = ("$gt", "$gte", "$in", "$lt", "$lte")
"""The operators of MongoDB that a request may use."""
FIELD = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*", re.ASCII)
"""The name of a field: parts with dots between, none of which can begin with ``$``."""
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)
_DATES = ("ctime", "mtime")
_MILLISECONDS = 9_999_999_999
"""A larger number counts milliseconds since 1970, a smaller one seconds; as in the releases until the year 2286."""
_MOST_VALUES = 10_000  # of one array
_MOST_DEPTH = 50  # of params; MongoDB itself takes 100 levels of a document
_INT64 = 2**63  # integers beyond it cannot be stored

Filter = dict[str, Any]


def task_filter(fields: Mapping[str, Any], queue_id: Callable[[str], ObjectId | None]) -> Filter:
    """Return the filter for tasks that these parameters ask for. ``queue_id`` gives the id of a queue by its
    name. An empty value is left out, and an array asks for any of its values. Without parameters all tasks
    match. Raises BadRequest for a value or operator that does not fit its field."""
    query: Filter = {}
    for name, value in fields.items():
        if value == "":
            continue
        if name in ("id", "_id"):
            query["_id"] = _condition(name, value, _id)
        elif name == "queue":
            query["queue"] = _condition(name, value, lambda name_or_id: _queue(name_or_id, queue_id))
        elif name == "status":
            query["status"] = _condition(name, value, _status)
        elif name in _DATES:
            query[name] = _condition(name, value, _date)
        else:
            query[field(name)] = _condition(name, value, _scalar, numbers=True)
    return query


def document_filter(fields: Mapping[str, Any]) -> Filter:
    """Return a filter for documents of another collection, whose fields are compared as they are given.
    Raises BadRequest."""
    return {field(name): _condition(name, value, _scalar) for name, value in fields.items()}


def field(name: str) -> str:
    """Return the name of a field, which may lead into an object by dots. Raises BadRequest."""
    if not FIELD.fullmatch(name):
        raise BadRequest("a field's name must be letters, digits, _ and -, with dots between", param=name)
    return name


def projection(value: object) -> dict[str, int] | None:
    """Return which fields are asked for: an array of names, or an object of names with 1 or 0. None: all.
    Raises BadRequest, also for both 1 and 0 in one object, which MongoDB refuses except for the id."""
    if value in (None, "", {}, []):
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = dict.fromkeys(value, 1) if all(isinstance(name, str) for name in value) else None
    if not isinstance(value, Mapping) or any(shown not in (0, 1) for shown in value.values()):
        raise BadRequest("'.fields' must be an array of names, or an object of names with 1 or 0")
    shown = {("_id" if name == "id" else field(name)): int(show) for name, show in value.items()}
    if len({show for name, show in shown.items() if name != "_id"}) > 1:
        raise BadRequest("'.fields' must name either fields to show or fields to leave out")
    return shown


def refuse_unindexed(fields: Mapping[str, Any], indexes: Sequence[Sequence[str]]) -> None:
    """Raise BadRequest unless each field, with all that stand left of it in one of the indexes, is given: a
    search over all tasks would hold up the nodes."""
    names = {"id" if name == "_id" else name for name in fields}
    reachable = {
        name for index in indexes for at, name in enumerate(index) if names.issuperset(index[: at + 1])
    }
    if invalid := sorted(names - reachable):
        raise BadRequest("non-indexed params given", invalid_params=invalid, indexes=indexes)


def index_sets(information: Mapping[str, Any]) -> list[list[str]]:
    """Return the fields of the indexes of a collection, as PyMongo's ``index_information`` has them, without those that
    begin another one. Sparse and partial ones are left out, since they do not have all documents."""
    keys = {
        tuple("id" if name == "_id" else str(name) for name, _ in index["key"])
        for index in information.values()
        if all(direction in (1, -1) for _, direction in index["key"])
        and not index.get("sparse")
        and "partialFilterExpression" not in index
    }
    return sorted(list(key) for key in keys if not any(key != k and key == k[: len(key)] for k in keys))


def storable(value: Any, depth: int = 0) -> Any:
    """Return a value for a task's ``params``, with ids for ``{"$oid": …}``. Raises BadRequest for names with ``$`` or a
    dot, for numbers of more than 64 bits, and for what is nested too deeply."""
    if depth > _MOST_DEPTH:
        raise BadRequest(f"params are nested more than {_MOST_DEPTH} deep")
    if isinstance(value, Mapping):
        if (id_ := oid(value)) is not None:
            return id_
        for name in value:
            if name.startswith("$") or "." in name or "\0" in name:
                raise BadRequest(
                    "names in params must have no dot and no NUL, and not begin with $", param=name
                )
        return {name: storable(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [storable(item, depth + 1) for item in value]
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise BadRequest("numbers in params must have at most 64 bits; send larger ones as text")
    return value


def _condition(name: str, value: Any, read: Callable[[Any], Any], *, numbers: bool = False) -> Any:
    """Return the condition on one field: a value, ``$in`` for an array, or operators. ``read`` makes a single
    value, and raises ValueError with the end of a sentence. ``numbers``: as for ``_values``."""
    if isinstance(value, list):
        return {"$in": _values(name, value, read, numbers)}
    if isinstance(value, Mapping) and "$oid" not in value:
        for operator in value:
            if operator not in OPERATORS:
                raise BadRequest(
                    f"unknown operator; operators are {', '.join(OPERATORS)}", param=f"{name}.{operator}"
                )
        return {
            operator: _values(name, operand, read, numbers)
            if operator == "$in"
            else _one(name, operand, read)
            for operator, operand in value.items()
        }
    if numbers and isinstance(value, str) and _NUMBER.fullmatch(value):
        return {"$in": _values(name, [value], read, numbers)}
    return _one(name, value, read)


def _values(name: str, values: object, read: Callable[[Any], Any], numbers: bool) -> list[Any]:
    """Return the values of an array, any of which may match. ``numbers``: text that looks like a number also means the
    number, because a form has text only, and clients store either."""
    if not isinstance(values, list) or not 0 < len(values) <= _MOST_VALUES:
        raise BadRequest(f"'{name}' must be an array of 1 to {_MOST_VALUES} values", param=name)
    read_values = [_one(name, value, read) for value in values if value != ""]
    if numbers:
        texts = [text for text in read_values if isinstance(text, str) and _NUMBER.fullmatch(text)]
        read_values += [float(text) if "." in text else int(text) for text in texts]
    return read_values


def _one(name: str, value: Any, read: Callable[[Any], Any]) -> Any:
    """Return one value as ``read`` makes it. Raises BadRequest that names the parameter."""
    try:
        return read(value)
    except (ValueError, OverflowError, OSError) as error:
        raise BadRequest(f"'{name}' {error}", param=name) from None


def _id(value: Any) -> ObjectId:
    """Return an id. Raises ValueError, as the functions below, with the end of a sentence that begins with
    the parameter."""
    if (id_ := oid(value)) is None:
        raise ValueError('must be an id: 24 hex digits, or {"$oid": …}')
    return id_


def _queue(value: Any, queue_id: Callable[[str], ObjectId | None]) -> ObjectId:
    id_ = oid(value) or (queue_id(value) if isinstance(value, str) else None)
    if id_ is None:
        raise ValueError("must be the id or the name of a queue")
    return id_


def _status(value: Any) -> int:
    if isinstance(value, str) and _NUMBER.fullmatch(value) and "." not in value:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -_INT64 <= value < _INT64:
        raise ValueError("must be an integer")
    return value


def _date(value: Any) -> datetime:
    """Return a time from seconds or milliseconds since 1970, or from ISO 8601, which is UTC without a
    zone."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        try:
            moment = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            forms = "seconds or milliseconds since 1970, or 2026-01-31T12:00:00"
            raise ValueError(f"must be a time: {forms}") from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return datetime.fromtimestamp(number / 1000 if number > _MILLISECONDS else number, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError("must be a time that a calendar has") from None


def _scalar(value: Any) -> Any:
    """Return a single value as it is, and ``{"$oid": …}`` as an id; no other object may reach the
    database."""
    if isinstance(value, Mapping):
        return _id(value)
    if isinstance(value, list) or (isinstance(value, int) and not -_INT64 <= value < _INT64):
        raise ValueError("must be text, a number of at most 64 bits, true, false, null or an id")
    return value
