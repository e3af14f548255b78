"""Nodes, and what operators want of them."""

from typing import Annotated

from fastapi import Body
from pydantic import Field

from spinney.model.fleet import SLOTS_MAX, NodeOrders, NodeStatus
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import All, NamePath, ReasonRequest
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("nodes")
PROBLEMS = documented(404, 409, 415)


class SlotsRequest(ReasonRequest):
    """How many slots a node is to have."""

    slots: Annotated[int, Field(ge=1, le=SLOTS_MAX)] | None = Field(
        description="Over all its incarnations; null: as it was started.", examples=[8]
    )


@router.get("/nodes", summary="List nodes")
async def list_nodes(context: Authenticated) -> All[NodeStatus]:
    """Those that have not left, and what they do."""
    return await context.run(lambda control: All(items=control.queries.nodes()))


@router.post("/nodes/{name}/drain", summary="Let a node take nothing new", responses=PROBLEMS)
async def drain_node(
    name: NamePath, context: Authenticated, why: Annotated[ReasonRequest, Body()] = ReasonRequest()
) -> NodeOrders:
    """What it runs finishes, what it has not begun goes back. It stays until `resume`."""
    return await context.run(lambda control: control.fleet.drain(name, reason=why.reason))


@router.post("/nodes/{name}/resume", summary="Let a drained node go on", responses=PROBLEMS)
async def resume_node(
    name: NamePath, context: Authenticated, why: Annotated[ReasonRequest, Body()] = ReasonRequest()
) -> NodeOrders:
    """It takes work again, with its next look at the store."""
    return await context.run(lambda control: control.fleet.resume(name, reason=why.reason))


@router.put("/nodes/{name}/slots", summary="Set how many slots a node has", responses=PROBLEMS)
async def set_slots(name: NamePath, asked: SlotsRequest, context: Authenticated) -> NodeOrders:
    """What runs in slots that go finishes."""
    return await context.run(lambda control: control.fleet.set_slots(name, asked.slots, reason=asked.reason))
