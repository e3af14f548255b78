"""Nodes, and external workers that run external stages: how they fare, and what operators want of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.control import Control
from spinney.features.external.service import External
from spinney.features.nodes.commands import DrainNode, ResumeNode, SetSlots
from spinney.model.external import ExternalWorker
from spinney.model.fleet import NodeOrders, NodeStatus
from spinney.model.values.names import EXTERNAL_PREFIX
from spinney.web.pages.forms import Form, page_or_part, read_coalesced, run_and_redirect
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)

NODES = "/nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeList:
    """Who runs jobs."""

    nodes: Sequence[NodeStatus]
    others: Sequence[NodeStatus]
    """External workers, as the store sees them."""
    external_workers: Mapping[int, ExternalWorker]
    """What they said of themselves, by the number of their node; who is limited gets his own."""


@router.get(NODES, summary="Nodes")
async def nodes(request: Request, context: Authenticated) -> Response:
    """All that have not left."""
    principal = context.principal

    def read(control: Control) -> NodeList:
        found = control.queries.nodes()
        return NodeList(
            nodes=[node for node in found if not node.node.startswith(EXTERNAL_PREFIX)],
            others=[node for node in found if node.node.startswith(EXTERNAL_PREFIX)],
            external_workers={
                external_worker.id: external_worker for external_worker in control.part(External).all()
            },
        )

    key = ("nodes", principal.rights, principal.name)
    found = await read_coalesced(request, key, lambda: context.run(read))
    return page_or_part(request, context, "nodes", topics=("nodes",), found=found, prefix=EXTERNAL_PREFIX)


@router.post(f"{NODES}/{{name}}/drain", summary="Drain a node")
async def drain(context: Authenticated, name: str, form: Form) -> Response:
    """It takes nothing new."""
    return await run_and_redirect(
        context,
        NODES,
        lambda control: control.do(DrainNode(node=name, reason=form.maybe("reason"))),
        f"Node {name} takes no new jobs; running jobs finish",
    )


@router.post(f"{NODES}/{{name}}/resume", summary="Resume a node")
async def resume(context: Authenticated, name: str, form: Form) -> Response:
    """It takes work again."""
    return await run_and_redirect(
        context,
        NODES,
        lambda control: control.do(ResumeNode(node=name, reason=form.maybe("reason"))),
        f"Node {name} takes jobs again",
    )


@router.post(f"{NODES}/{{name}}/slots", summary="Set the slots of a node")
async def set_slots(context: Authenticated, name: str, form: Form) -> Response:
    """How many; empty: as it was started."""

    def call(control: Control) -> NodeOrders:
        slots = form.whole("slots", "number of slots")
        return control.do(SetSlots(node=name, slots=slots, reason=form.maybe("reason")))

    def said(orders: NodeOrders) -> str:
        what = "as many slots as it was started with" if orders.slots is None else f"{orders.slots:,} slots"
        return f"Node {name} now has {what}"

    return await run_and_redirect(context, NODES, call, said)
