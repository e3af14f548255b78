"""Health checks for supervisors and load balancers: whether the server lives, and whether it can answer.

They are two addresses because they have two consequences: a server that is not alive is restarted, and one that is not
ready gets no requests. Both are answered although there is no room for connections (``server.connections``)."""

import asyncio

from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse

from spinney.model.errors import SpinneyError

router = APIRouter(tags=["health"])
READY_S = 2.0
"""The store counts as not answering when its answer takes longer, in seconds."""


class Health(BaseModel):
    """The answer about the server's health, for load balancers and monitoring."""

    status: str


def add_to(app: FastAPI) -> None:
    """Add the routes ``/health`` and ``/ready``, which need no caller."""
    app.router.routes.extend(router.routes)


@router.get("/health", summary="Whether the process lives")
async def health() -> Health:
    """The store is not queried: a store that does not answer is no reason to restart the server."""
    return Health(status="alive")


@router.get(
    "/ready",
    summary="Whether the store answers",
    responses={503: {"description": "The store does not answer."}},
)
async def ready(request: Request) -> JSONResponse:
    """Returns 200 when the store answers within two seconds, else 503."""
    try:
        await asyncio.wait_for(request.app.state.stores.run(lambda store: store.signature()), READY_S)
    except (SpinneyError, TimeoutError):
        return JSONResponse({"status": "the store does not answer"}, 503)
    return JSONResponse({"status": "ready"})
