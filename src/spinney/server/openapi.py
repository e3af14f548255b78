"""The OpenAPI document of the API: only of routes under its prefix, with the problems described once and examples."""

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from spinney.web.api import examples
from spinney.web.api.json_routes import PREFIX
from spinney.web.problems import Problem, documented
from spinney.web.request_context import Authenticated

_OF_BODIES = {str(status): documented(status)[status] for status in (408, 413, 415)}
"""Refusals that any request body may get: it comes too slowly, is too long, or has an unknown type."""


router = APIRouter(prefix=PREFIX, include_in_schema=False)


@router.get("/openapi.json")
async def openapi(request: Request, context: Authenticated) -> dict[str, Any]:
    return document(request.app, PREFIX)


def document(app: FastAPI, prefix: str) -> dict[str, Any]:
    """Return the document, which is made once."""
    if app.openapi_schema is None:
        routes = [r for r in app.routes if isinstance(r, APIRoute) and r.path.startswith(prefix)]
        document = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=routes,
            servers=[{"url": "/", "description": "This server"}],
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        for operation in (operation_ for item in document["paths"].values() for operation_ in item.values()):
            if "requestBody" in operation:
                operation["responses"] = _OF_BODIES | operation["responses"]
            examples.add_to(operation, schemas)
        app.openapi_schema = document
    return app.openapi_schema
