"""The service behind a server: each verb at ``/api/v1/apps/ingest/NAME``, in the name and with the rights of who asks.

Servers find it by the entry point ``ingest`` of the group ``spinney.routes``. The settings are those of the server's
own ``SPINNEY_INGEST``; it sees the folders of the service as nodes do.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Body, Query, Request
from starlette.responses import Response

from spinney.apps.ingest import settings
from spinney.apps.ingest.inventory import InventoryUnusable
from spinney.apps.ingest.staff import Accepted, Service, accept, expect, refused
from spinney.apps.ingest.verbs import VERBS, Verb, written
from spinney.apps.ingest.verbs.deposits import Submit, told
from spinney.control import Control
from spinney.model.errors import Refused, StoreAway, UsageError
from spinney.server.applications import Asked, LargeBody, documented, routes

T = TypeVar("T")
log = logging.getLogger(__name__)

router = routes("ingest")
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.post(
    "/submit", summary="Hand a payload in", status_code=201, dependencies=[LargeBody],
    responses=documented(404, 408, 409, 413),
    openapi_extra={"requestBody": {"required": True, "content": _BYTES}},
)  # fmt: skip
async def submit(hands: Asked, request: Request, asked: Annotated[Submit, Query()]) -> dict[str, Any]:
    """The body is the payload: a file, a container or a manifest. The batch is durable when this answers."""
    root = request.app.state.folders
    given = asked.deposit()
    with await hands.run(lambda control: _refusing(lambda: expect(_service(control, root), given))) as arrival:
        async for piece in request.stream():
            await asyncio.to_thread(arrival.file.write, piece)
        await asyncio.to_thread(arrival.file.finish)
    handed_over = False

    def hand_over(control: Control) -> Accepted:
        nonlocal handed_over
        service = _service(control, root)
        handed_over = True
        return accept(service, arrival)

    try:
        accepted = await hands.run(lambda control: _refusing(lambda: hand_over(control)), long=True)
    except Exception:
        if not handed_over:  # the server is busy, or the person may no more; else ``accept`` has removed it
            await asyncio.to_thread(arrival.forget)
        raise
    return _sent(written(told(accepted)), 201)


def _add(to: APIRouter, verb: type[Verb]) -> None:
    """Add the route that runs this verb."""
    from_where = Body() if verb.changes else Query()

    async def answer(hands: Asked, request: Request, asked: Annotated[verb, from_where]) -> dict[str, Any]:  # type: ignore[valid-type]
        root = request.app.state.folders
        done = await hands.run(
            lambda control: _refusing(lambda: written(asked.run(_service(control, root)))),  # type: ignore[attr-defined]
            long=verb.is_long,
        )
        return _sent(done)

    to.add_api_route(
        f"/{verb.name}", answer, methods=["POST" if verb.changes else "GET"], name=f"ingest_{verb.name}",
        summary=_sentence(verb), description=verb.__doc__, responses=documented(404, 409, 415),
    )  # fmt: skip


def _sent(answer: bytes, status: int = 200) -> dict[str, Any]:
    """JSON as it is, which to the route is the value that it answers."""
    return cast("dict[str, Any]", Response(answer, status, media_type="application/json"))


def _sentence(verb: type[Verb]) -> str:
    return (verb.__doc__ or "").partition(";")[0].partition(".")[0]


def _service(control: Control, folders: Path) -> Service:
    try:
        found = settings.load()
    except UsageError as error:
        # It names files of this host, which is for who runs the server to know.
        log.warning("%s", error)
        raise Refused("the settings of the ingest service cannot be read on the server; its log tells why") from error
    return Service(control=control, settings=found, folders=folders)


def _refusing(call: Callable[[], T]) -> T:
    """What ``call`` returns; what goes wrong in the application as an error of the engine."""
    try:
        with refused():
            return call()
    except InventoryUnusable as error:
        raise StoreAway(str(error)) from error


for _verb in VERBS:
    _add(router, _verb)
