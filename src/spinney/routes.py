"""Routes that installed packages add to a server: entry points of the group ``spinney.routes``.

    [project.entry-points."spinney.routes"]
    library = "library.routes:router"

The value is a router of ``routes("library")``, whose addresses lie below ``/api/v1/apps/library``. Each of its routes
authenticates its caller by a parameter ``context: Authenticated``, and does its work by ``context.run``, in the name
and with the rights of that caller::

    from spinney.routes import Authenticated, routes

    router = routes("library")

    @router.get("/shelves", summary="List the shelves")
    async def shelves(context: Authenticated) -> dict[str, list[str]]:
        return {"items": await context.run(lambda control: sorted(control.queries.names("collection")))}

A router that breaks these rules is left out as a whole, and so is one that cannot be imported; the log says why. So no
package can bypass the server's access checks, or keep the server from starting."""

import logging
from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from fastapi import APIRouter, FastAPI

from spinney.web.api import json_routes
from spinney.web.api.idempotency import REPLAYED, IdempotencyKey, replayed
from spinney.web.api.json_routes import PREFIX, ApiRoute
from spinney.web.bodies import LargeBody
from spinney.web.files.multipart import MULTIPART as FORM
from spinney.web.files.responses import BINARY, attachment
from spinney.web.files.single_file_form import SingleFileForm
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated, RequestContext

__all__ = [
    "BINARY",
    "FORM",
    "GROUP",
    "REPLAYED",
    "Authenticated",
    "IdempotencyKey",
    "LargeBody",
    "RequestContext",
    "SingleFileForm",
    "add_to",
    "attachment",
    "documented",
    "replayed",
    "routes",
]

GROUP = "spinney.routes"
BELOW = "/apps"

log = logging.getLogger(__name__)


def routes(name: str) -> APIRouter:
    """Return a router for the routes of the application of this name."""
    return json_routes.routes(name, f"{BELOW}/{name}")


def add_to(app: FastAPI) -> None:
    """Add the routes of all installed packages."""
    for entry in installed():
        try:
            app.router.routes.extend(_routes(entry))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a package may fail in any way
            log.warning("the routes %r of %s are left out: %s", entry.name, entry.value, error)


@cache
def installed() -> Sequence[EntryPoint]:
    """Return the entry points of the installed packages. They are read once for each process, because that looks
    through all packages."""
    return sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))


def _routes(entry: EntryPoint) -> list[ApiRoute]:
    router = entry.load()
    if not isinstance(router, APIRouter):
        raise TypeError(f"it is no fastapi.APIRouter, but a {type(router).__name__}")
    return [_checked(entry.name, route) for route in router.routes]


def _checked(name: str, route: object) -> ApiRoute:
    if not isinstance(route, ApiRoute):
        raise TypeError(f"{route!r} is not of a router that spinney.routes.routes made")
    below = f"{PREFIX}{BELOW}/{name}/"
    if not route.path.startswith(below):
        raise ValueError(f"{route.path} does not lie below {below}")
    if not route.asks:
        raise ValueError(
            f"{route.path} does not ask who is there; give it a parameter 'context: Authenticated'"
        )
    return route
