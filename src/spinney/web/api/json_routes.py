"""Routes of the API, which read and write JSON with orjson and refuse unknown parameters.

orjson refuses NaN, Infinity, halves of surrogate pairs and bytes that are no UTF-8, which the standard library lets
pass. What is nested deeper than ``DEPTH_MAX`` is refused before anything walks through it. A query parameter that no
route knows is refused, too: a filter with a typing error must not list everything.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Set
from functools import wraps
from typing import Any, TypeVar, cast

import orjson
from fastapi import APIRouter, Request
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_typed_return_annotation
from fastapi.routing import APIRoute
from fastapi.utils import create_model_field
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.model.values.hints import did_you_mean, listed
from spinney.model.values.plain_json import plain
from spinney.web.media_types import JSON, body_type, wrong_body_type
from spinney.web.problems import Unidentified, documented
from spinney.web.request_context import optional_context, require_context

T = TypeVar("T")

PREFIX = "/api/v1"
"""The path below which all routes of the API are."""
DEPTH_MAX = 64
"""The maximum depth of nested objects and arrays in a request."""
_SHORT_BYTES = 64 << 10
"""A body of this length is read in the event loop: it takes 0.1 to 0.6 ms, and 8 of many empty lists."""
LINE_SCHEMA = "x-itemSchema"
"""Has the schema of one line in that of JSON lines. OpenAPI 3.2 calls it ``itemSchema``; this document is 3.1."""


class Json(Response):
    """A JSON response of dataclasses, Pydantic models, mappings, sequences and plain values. Raises TypeError
    for anything else, which is a fault of the route."""

    media_type = JSON

    def render(self, content: Any) -> bytes:
        """Return the value as JSON text in UTF-8."""
        return written(content)


class ApiRoute(APIRoute):
    """A route whose function returns the body of the response, which is not validated again. The annotation documents
    it, and tests hold responses to it."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        status = more.get("status_code") or 200
        super().__init__(path, _answering(endpoint, status), **more | {"response_model": None})
        self._params = _query_names(self.dependant)
        self.asks = depends_on(self.dependant, require_context)
        """Whether the route refuses callers who are not authenticated."""

    def describe_answer(self) -> None:
        """Add the schema of the answer, which only the OpenAPI document needs: that of all routes takes a tenth of the
        time in which a server starts."""
        answer = get_typed_return_annotation(self.endpoint)
        if answer is not None and not (isinstance(answer, type) and issubclass(answer, Response)):
            self.response_field = create_model_field(
                name=f"Response_{self.unique_id}", type_=answer, mode="serialization"
            )

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return the handler of the route. It refuses callers who are not authenticated before the body is read, then
        unknown query parameters and bodies that are no JSON."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            if self.asks and await optional_context(request) is None:
                raise Unidentified  # before the body is read
            self._require_known_params(request)
            if self.body_field is not None:
                _require_json(request)
            return await handle(_Request(request.scope, request.receive))

        return handled

    def _require_known_params(self, request: Request) -> None:
        """Raise HTTPException (422) for a query parameter that the route does not have, with the name that
        was probably meant."""
        for name in request.query_params:
            if name not in self._params:
                can = f"; use one of: {listed(self._params)}" if self._params else "; it takes none"
                raise HTTPException(
                    422, f"there is no query parameter {name!r:.100}{did_you_mean(name, self._params) or can}"
                )


def respond(value: T, status: int = 200, **more: Any) -> T:
    """Return a response with this value as its body, for a route that sets status, headers or what follows.
    ``more``: headers, or a background task that runs after the response. To type checkers it is the value
    itself, as the route's annotation says."""
    answer: Any = Json(value, status, **more)
    return cast(T, answer)


def routes(tag: str, below: str = "") -> APIRouter:
    """Return a router of ``ApiRoute`` below the API's prefix. ``tag``: its group in the OpenAPI document, in which an
    operation has the name of its command or function; those of applications (``below``) have the group before it."""

    def operation(route: APIRoute) -> str:
        return f"{tag}_{route.name}" if below else route.name

    return APIRouter(
        prefix=f"{PREFIX}{below}",
        tags=[tag],
        route_class=ApiRoute,
        responses=documented(),
        generate_unique_id_function=operation,
    )


def written(value: Any) -> bytes:
    """Return the value as JSON text in UTF-8, with dataclasses, enums and mappings as the API writes them.
    Keys that are no text become text. Raises TypeError for a value that has no JSON form."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def line(value: Any) -> bytes:
    """Return the value as a line of JSON."""
    return written(value) + b"\n"


def read(text: bytes) -> Any:
    """Return the value of a JSON text. Raises orjson.JSONDecodeError, HTTPException (nested too deeply)."""
    value = orjson.loads(text)
    require_flat(text, value)
    return value


async def read_long(text: bytes) -> Any:
    """As ``read``, for a body of any length. A long one is read in a thread: it takes seconds, in which the event loop
    would serve nobody else."""
    return read(text) if len(text) <= _SHORT_BYTES else await asyncio.to_thread(read, text)


def require_flat(text: bytes, value: Any = None) -> None:
    """Raise HTTPException (400) for JSON that is nested more than ``DEPTH_MAX`` deep; text that is no JSON
    passes, for the reader to refuse. Most texts have too few brackets for that and are not walked through.
    ``value``: the parsed text, if it is parsed already."""
    if text.count(b"[") + text.count(b"{") <= DEPTH_MAX:
        return
    try:
        result = orjson.loads(text) if value is None else value
    except orjson.JSONDecodeError:
        return
    level = [result]
    for _ in range(DEPTH_MAX + 1):
        level = [below for above in level if isinstance(above, dict | list) for below in _values(above)]
        if not level:
            return
    raise HTTPException(400, f"the JSON is nested more than {DEPTH_MAX} deep; send it flatter")


class _Request(Request):
    """A request whose body is read by orjson, with a bound on its depth."""

    async def json(self) -> Any:
        """Return the body as a value. Raises orjson.JSONDecodeError, and HTTPException for one that is nested
        too deeply."""
        return await read_long(await self.body())


def _values(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    """Return the values that an object or array holds directly."""
    return value.values() if isinstance(value, dict) else value


def _answering(endpoint: Callable[..., Awaitable[Any]], status: int) -> Callable[..., Awaitable[Response]]:
    """Return the function of a route with its value turned into a response; a Response is left as it is."""

    @wraps(endpoint)
    async def answer(*args: Any, **kwargs: Any) -> Response:
        result = await endpoint(*args, **kwargs)
        if isinstance(result, Response):
            return result
        return Response(status_code=status) if status == 204 else Json(result, status)

    return answer


def _query_names(dependant: Dependant) -> Set[str]:
    """Return the names of all query parameters of a route, those of its dependencies among them."""
    names: set[str] = set()
    for field in dependant.query_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            names.update(info.alias or name for name, info in model.model_fields.items())
        else:
            names.add(field.alias)
    return names.union(*map(_query_names, dependant.dependencies))


def depends_on(dependant: Dependant, on: Callable[..., Any]) -> bool:
    """Return whether a route calls ``on``, itself or by another dependency, before it answers."""
    return any(below.call is on or depends_on(below, on) for below in dependant.dependencies)


def _require_json(request: Request) -> None:
    """Raise HTTPException (415) for a body of another content type. A request without a body needs none."""
    kind = body_type(request)
    empty = request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers
    if kind != JSON and (kind or not empty):
        raise wrong_body_type(request, f"JSON as {JSON}")


def _plain(value: Any) -> Any:
    """Convert what orjson does not know by itself."""
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else plain(value)
