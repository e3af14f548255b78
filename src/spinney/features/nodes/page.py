"""The page of nodes and external workers, and the actions of operators on nodes.

External workers are nodes in the store whose names have a prefix; here they are in a list of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from spinney.commands.control import Control
from spinney.features.external.service import External
from spinney.features.nodes.commands import DrainNode, ResumeNode, SetSlots
from spinney.model.external import ExternalWorker
from spinney.model.fleet import NodeOrders, NodeStatus
from spinney.model.values.names import EXTERNAL_PREFIX
from spinney.model.values.texts import counted
from spinney.web.pages.forms import add_action, page_or_part, read_coalesced
from spinney.web.request_context import Authenticated

router = APIRouter(include_in_schema=False)

NODES = "/nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeList:
    """The nodes and external workers that run jobs."""

    nodes: Sequence[NodeStatus]
    others: Sequence[NodeStatus]
    """External workers, as nodes of the store."""
    external_workers: Mapping[int, ExternalWorker]
    """How they registered, by the id of their node; a caller with limits gets only the caller's own workers."""


@router.get(NODES)
async def nodes(request: Request, context: Authenticated) -> Response:
    """Show the nodes and external workers that have not left."""
    principal = context.principal

    def read(control: Control) -> NodeList:
        statuses = control.queries.nodes()
        return NodeList(
            nodes=[node for node in statuses if not node.node.startswith(EXTERNAL_PREFIX)],
            others=[node for node in statuses if node.node.startswith(EXTERNAL_PREFIX)],
            external_workers={worker.id: worker for worker in control.part(External).all()},
        )

    key = ("nodes", principal.rights, principal.name)
    listed = await read_coalesced(request, context, key, read)
    return page_or_part(
        request, context, "nodes", topics=("nodes",), node_list=listed, prefix=EXTERNAL_PREFIX
    )


def _slots_text(name: str, orders: NodeOrders) -> str:
    slots = "as many slots as it was started with" if orders.slots is None else counted(orders.slots, "slot")
    return f"Node {name} now has {slots}"


_add_action = partial(add_action, router, NODES, at_list=True)
_add_action("drain", DrainNode, "Node {name} takes no new jobs; running jobs finish")
_add_action("resume", ResumeNode, "Node {name} takes jobs again")
_add_action(
    "slots",
    SetSlots,
    _slots_text,
    read=lambda form: {"slots": form.whole("slots", "number of slots")},
)
