"""The application of a command interface: its routes, its errors, and the headers of its replies."""

import logging
from collections.abc import Awaitable, Callable
from typing import cast

from bson.errors import BSONError
from fastapi import Depends, FastAPI, Request
from fastapi.routing import APIRoute
from pymongo.errors import DocumentTooLarge, OperationFailure, PyMongoError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from spinney.bridges.disbatch.database import Database
from spinney.bridges.disbatch.interface import balancer, nodes, page, queues, tasks
from spinney.bridges.disbatch.interface.access import REALM, Access
from spinney.bridges.disbatch.interface.service import Service, Serving, require_reached, service_of
from spinney.bridges.disbatch.interface.settings import InterfaceSettings
from spinney.bridges.disbatch.interface.wire import BadRequest

log = logging.getLogger(__name__)
_UNAUTHORIZED = 13
"""MongoDB's code for a right that a user lacks."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_ROUTERS = (page.router, nodes.router, queues.router, tasks.router, balancer.router)
Handler = Callable[[Request], Awaitable[Response]]


def make_interface(db: Database, settings: InterfaceSettings) -> FastAPI:
    """Return the command interface for a database, as an ASGI application. Every route needs a sign-in first.
    The routes run in threads, because the driver waits; errors become replies in the form that clients of the
    releases read."""
    app = FastAPI(
        title="Disbatch command interface",
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(_sign_in)],
    )
    app.state.service, app.state.access = Service(db, settings), Access(settings)
    app.add_api_route("/info", _info, response_model=None)
    app.include_router(nodes.monitor)
    for router in _ROUTERS:
        app.include_router(router, dependencies=[Depends(require_reached)])
    app.add_exception_handler(BadRequest, _refused)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(PyMongoError, _database_failed)
    app.add_exception_handler(BSONError, _database_failed)
    app.middleware("http")(_with_headers)
    return app


def _sign_in(request: Request) -> None:
    """Find out who sends a request; this runs before the route's own dependencies, which read its body."""
    request.state.user = request.app.state.access.user(request)


def _info(request: Request, service: Serving) -> Response:
    """Return the name of the database and the routes."""
    routes: dict[str, list[str]] = {"GET": ["/info"]}
    routers = (nodes.monitor, *_ROUTERS)
    for route in (route for router in routers for route in router.routes if isinstance(route, APIRoute)):
        for method in route.methods or ():
            routes.setdefault(method, []).append(route.path)
    window = int(service.settings.live_window_s * 1000)
    dashboard = {"refresh_ms": 30_000, "live_window_ms": window}
    return service.wire.reply(
        {"database": service.db.name, "web_extensions": [], "routes": routes, "dashboard": dashboard}
    )


def _refused(request: Request, error: Exception) -> Response:
    """Answer a refusal, and ask for a sign-in where that is missing."""
    refused = cast(BadRequest, error)
    response = service_of(request).wire.reply(refused.content, refused.status)
    if refused.status == 401:
        response.headers["WWW-Authenticate"] = f'Basic realm="{REALM}", charset="UTF-8"'
    return response


def _no_route(request: Request, error: Exception) -> Response:
    """Answer a path or method that no route has."""
    failed = cast(HTTPException, error)
    sentence = f"{request.method} {request.url.path}: {failed.detail}; GET /info lists the routes"
    return service_of(request).wire.reply({"error": sentence}, failed.status_code)


def _database_failed(request: Request, error: Exception) -> Response:
    """Answer for the database. What the driver says may show addresses, so it is in the log only; an error about a
    document that cannot be stored would show the document, which may hold secrets, so that error is not even logged."""
    unstorable = isinstance(error, BSONError | DocumentTooLarge)
    reason = "" if unstorable else f": {error}"
    log.warning("%s %s: %s%s", request.method, request.url.path, type(error).__name__, reason)
    if isinstance(error, OperationFailure) and error.code == _UNAUTHORIZED:
        status = 403
        sentence = "the user of this server in MongoDB lacks a right; give it the role disbatch_web"
    elif unstorable:
        status, sentence = 400, "a value cannot be stored, or a document is larger than 16 MB; send less"
    elif isinstance(error, OperationFailure) and not error.timeout:
        status, sentence = 400, f"MongoDB refuses this (code {error.code}); the log of this server says why"
    else:
        status, sentence = 503, "MongoDB does not answer in time; try again"
    return service_of(request).wire.reply({"error": sentence}, status)


async def _with_headers(request: Request, handle: Handler) -> Response:
    """Add the headers that forbid browsers scripts, frames and copies, unless a route has set its own."""
    response = await handle(request)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response
