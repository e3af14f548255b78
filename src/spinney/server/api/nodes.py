"""Nodes, and what operators want of them."""

from typing import Annotated

from fastapi import Body
from pydantic import Field

from spinney.model.fleet import SLOTS_MAX, NodeStatus, Orders
from spinney.server.api.parsing import routes
from spinney.server.api.shapes import All, Named, Reason
from spinney.server.asking import Asked
from spinney.server.problems import documented

router = routes("nodes")
PROBLEMS = documented(404, 409, 415)


class SlotsAsked(Reason):
    """How many slots a node is to have."""

    slots: Annotated[int, Field(ge=1, le=SLOTS_MAX)] | None = Field(
        description="Over all its incarnations; null: as it was started.", examples=[8]
    )


@router.get("/nodes", summary="List nodes")
async def list_nodes(hands: Asked) -> All[NodeStatus]:
    """Those that have not left, and what they do."""
    return await hands.run(lambda control: All(items=control.look.nodes()))


@router.post("/nodes/{name}/drain", summary="Let a node take nothing new", responses=PROBLEMS)
async def drain_node(name: Named, hands: Asked, why: Annotated[Reason, Body()] = Reason()) -> Orders:
    """What it runs finishes, what it has not begun goes back. It stays until `resume`."""
    return await hands.run(lambda control: control.fleet.drain(name, reason=why.reason))


@router.post("/nodes/{name}/resume", summary="Let a drained node go on", responses=PROBLEMS)
async def resume_node(name: Named, hands: Asked, why: Annotated[Reason, Body()] = Reason()) -> Orders:
    """It takes work again, with its next look at the store."""
    return await hands.run(lambda control: control.fleet.resume(name, reason=why.reason))


@router.put("/nodes/{name}/slots", summary="Set how many slots a node has", responses=PROBLEMS)
async def set_slots(name: Named, asked: SlotsAsked, hands: Asked) -> Orders:
    """What runs in slots that go finishes."""
    return await hands.run(lambda control: control.fleet.set_slots(name, asked.slots, reason=asked.reason))
