"""The OpenAPI document of the API: only of routes under its prefix, with the problems described once and
examples.

FastAPI makes most of it of the routes' signatures. What it does not know is added here: refusals of any body,
lines of progress, names of lists, examples. It is version 3.1, and complete enough that clients are generated
from it (``tests/server/api/test_openapi.py``)."""

import re
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from spinney.web.api import examples
from spinney.web.api.json_routes import LINE_SCHEMA, PREFIX, ApiRoute
from spinney.web.media_types import JSON, NDJSON
from spinney.web.problems import Problem, documented
from spinney.web.request_context import Authenticated

_OF_BODIES = {str(status): documented(status)[status] for status in (408, 413, 415)}
"""Refusals that any request body may get: it comes too slowly, is too long, or has an unknown type."""


router = APIRouter(prefix=PREFIX, include_in_schema=False)


@router.get("/openapi.json")
async def openapi(request: Request, context: Authenticated) -> dict[str, Any]:
    """Return the OpenAPI document to a caller who is authenticated."""
    return document(request.app, PREFIX)


def document(app: FastAPI, prefix: str) -> dict[str, Any]:
    """Return the document of the routes below this prefix. It is made once for each application, which takes
    about a second, and belongs to the application: callers must not change it."""
    if app.openapi_schema is None:
        routes = [r for r in app.routes if isinstance(r, APIRoute) and r.path.startswith(prefix)]
        for route in routes:
            if isinstance(route, ApiRoute):
                route.describe_answer()
        document = _with_plain_names(
            get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                routes=routes,
                servers=[{"url": "/", "description": "This server"}],
            )
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        for route in routes:
            _describe_lines(route, document)
        for operation in (operation_ for item in document["paths"].values() for operation_ in item.values()):
            if "requestBody" in operation:
                operation["responses"] = _OF_BODIES | operation["responses"]
            examples.add_to(operation, schemas)
        app.openapi_schema = document
    return app.openapi_schema


def _describe_lines(route: APIRoute, document: dict[str, Any]) -> None:
    """Describe the lines in which a command reports its progress."""
    progress: Mapping[str, type] = getattr(route.endpoint, "progress", {})
    for method in (route.methods or ()) if progress else ():
        content = document["paths"][route.path_format][method.lower()]["responses"]["200"]["content"]
        lines = {
            name: _reference(type_, document["components"]["schemas"]) for name, type_ in progress.items()
        }
        lines |= {"report": content[JSON]["schema"], "problem": {"$ref": f"{_SCHEMAS}Problem"}}
        content[NDJSON]["schema"][LINE_SCHEMA] = {
            "oneOf": [
                {"type": "object", "properties": {name: schema}, "required": [name]}
                for name, schema in lines.items()
            ]
        }


def _reference(type_: type, schemas: dict[str, Any]) -> dict[str, str]:
    """Return a reference to the schema of a type, which is added where it is missing."""
    schema = TypeAdapter(type_).json_schema(ref_template=f"{_SCHEMAS}{{model}}")
    schemas.update(schema.pop("$defs", {}))
    schemas.setdefault(type_.__name__, schema)
    return {"$ref": f"{_SCHEMAS}{type_.__name__}"}


def _with_plain_names(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with a name and a title of its own for each kind of list: ``HoldList``, ``DeliveryPage``.
    Generators of clients name their classes by the titles, which would be ``All`` and ``Page`` for all lists."""
    names = {
        name: f"{list_[2]}{_LISTS[list_[1]]}"
        for name in document["components"]["schemas"]
        if (list_ := _LIST.fullmatch(name))
    }
    text = orjson.dumps(document).decode()
    for name, plain in names.items():
        text = text.replace(f'"{_SCHEMAS}{name}"', f'"{_SCHEMAS}{plain}"')
    renamed: dict[str, Any] = orjson.loads(text)
    schemas = renamed["components"]["schemas"]
    for name, plain in names.items():
        schemas[plain] = schemas.pop(name) | {"title": plain}
    return renamed


_SCHEMAS = "#/components/schemas/"
_LIST = re.compile(r"(All|Page)_(\w+)_")
_LISTS = {"All": "List", "Page": "Page"}
