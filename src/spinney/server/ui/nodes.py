"""Nodes, and parties that run external stages: how they fare, and what operators want of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.model.external import Party
from spinney.model.fleet import NodeStatus, Orders
from spinney.model.names import PARTY_PREFIX
from spinney.server.asking import Asked
from spinney.server.ui.given import Form, deed, looked, shown

router = APIRouter(include_in_schema=False)

NODES = "/nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Who runs jobs."""

    nodes: Sequence[NodeStatus]
    others: Sequence[NodeStatus]
    """Parties, as the store sees them."""
    parties: Mapping[int, Party]
    """What they said of themselves, by the number of their node; who is limited gets his own."""


@router.get(NODES, summary="Nodes")
async def nodes(request: Request, hands: Asked) -> Response:
    """All that have not left."""
    asker = hands.asker

    def read(control: Control) -> Found:
        found = control.look.nodes()
        return Found(
            nodes=[node for node in found if not node.node.startswith(PARTY_PREFIX)],
            others=[node for node in found if node.node.startswith(PARTY_PREFIX)],
            parties={party.id: party for party in control.external.all()},
        )

    key = ("nodes", asker.rights, asker.name)
    found = await looked(request, key, lambda: hands.run(read))
    return shown(request, hands, "nodes", topics=("nodes",), found=found, prefix=PARTY_PREFIX)


@router.post(f"{NODES}/{{name}}/drain", summary="Drain a node")
async def drain(hands: Asked, name: str, form: Form) -> Response:
    """It takes nothing new."""
    return await deed(
        hands,
        NODES,
        lambda control: control.fleet.drain(name, reason=form.maybe("reason")),
        f"Node {name} takes nothing new; what it runs finishes",
    )


@router.post(f"{NODES}/{{name}}/resume", summary="Resume a node")
async def resume(hands: Asked, name: str, form: Form) -> Response:
    """It takes work again."""
    return await deed(
        hands,
        NODES,
        lambda control: control.fleet.resume(name, reason=form.maybe("reason")),
        f"Node {name} takes work again",
    )


@router.post(f"{NODES}/{{name}}/slots", summary="Set the slots of a node")
async def set_slots(hands: Asked, name: str, form: Form) -> Response:
    """How many; empty: as it was started."""

    def call(control: Control) -> Orders:
        return control.fleet.set_slots(
            name, form.whole("slots", "number of slots"), reason=form.maybe("reason")
        )

    def said(orders: Orders) -> str:
        what = "as many slots as it was started with" if orders.slots is None else f"{orders.slots:,} slots"
        return f"Node {name} has {what} now"

    return await deed(hands, NODES, call, said)
