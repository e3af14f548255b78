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

from fastapi import APIRouter

from spinney.commands.csv_lines import harmless as csv_text
from spinney.web.api import json_routes
from spinney.web.api.request_types import REPLAYED, IdempotencyKey, replayed
from spinney.web.files.multipart import MULTIPART as FORM
from spinney.web.files.responses import BINARY, attachment
from spinney.web.files.single_file_form import SingleFileForm
from spinney.web.long_requests.bodies import LargeBody
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
    "attachment",
    "csv_text",
    "documented",
    "replayed",
    "routes",
]

GROUP = "spinney.routes"
BELOW = "/apps"
"""The routes of an application lie below ``/api/v1/apps/NAME``."""


def routes(name: str) -> APIRouter:
    """Return a router for the routes of the application of this name."""
    return json_routes.routes(name, f"{BELOW}/{name}")
