"""The OpenAPI document of the API: of what is under its prefix alone, with the problems described once and an
example of everything."""

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from spinney.web.api import examples
from spinney.web.api.json_routes import PREFIX
from spinney.web.problems import Problem, documented
from spinney.web.request_context import Authenticated

_OF_BODIES = {str(status): documented(status)[status] for status in (408, 413, 415)}
"""What may be wrong with any body: it comes too slowly, is too long, or is nothing that is understood."""


router = APIRouter(prefix=PREFIX, include_in_schema=False)


@router.get("/openapi.json")
async def openapi(request: Request, context: Authenticated) -> dict[str, Any]:
    return document(request.app, PREFIX)


def document(app: FastAPI, prefix: str) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        routes = [r for r in app.routes if isinstance(r, APIRoute) and r.path.startswith(prefix)]
        made = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=routes,
            servers=[{"url": "/", "description": "This server"}],
        )
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        for operation in (found for item in made["paths"].values() for found in item.values()):
            if "requestBody" in operation:
                operation["responses"] = _OF_BODIES | operation["responses"]
            examples.add_to(operation, schemas)
        app.openapi_schema = made
    return app.openapi_schema
