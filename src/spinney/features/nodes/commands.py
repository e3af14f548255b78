"""The commands for nodes. Nodes run the jobs of everybody, so only operators without limits may change them."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import NodeName, Reason
from spinney.model.access import Role
from spinney.model.fleet import SLOTS_MAX, NodeOrders, NodeStatus
from spinney.model.values.lists import All
from spinney.service.queries import Queries
from spinney.service.service import Service

NumberOfSlots = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": SLOTS_MAX})]
"""The store checks the number, so that its message can name the node."""


class ListNodes(Command, route="GET /nodes"):
    """List nodes.

    Those that have not left, each with its state and load."""

    def run(self, service: Service) -> All[NodeStatus]:
        return All(items=service.part(Queries).nodes())


class DrainNode(
    Command, route="POST /nodes/{node}/drain", role=Role.OPERATOR, everywhere=True, to="drain nodes"
):
    """Stop a node from taking new jobs.

    Running jobs finish, and jobs that have not started go back to the queue. The node stays until `resume`."""

    node: NodeName
    reason: Reason = None

    def run(self, service: Service) -> NodeOrders:
        done = service.store.fleet.drain(self.node, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()
        return done


class ResumeNode(
    Command, route="POST /nodes/{node}/resume", role=Role.OPERATOR, everywhere=True, to="resume nodes"
):
    """Let a drained node take jobs again.

    It takes jobs with its next look at the store."""

    node: NodeName
    reason: Reason = None

    def run(self, service: Service) -> NodeOrders:
        done = service.store.fleet.resume(self.node, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()
        return done


class SetSlots(
    Command, route="PUT /nodes/{node}/slots", role=Role.OPERATOR, everywhere=True, to="set the slots of nodes"
):
    """Set how many attempts a node runs at once.

    Jobs in slots that are removed finish. The number also applies whenever the node starts again."""

    node: NodeName
    slots: NumberOfSlots | None = Field(
        description="The number of slots; null: as many as the node was started with.", examples=[8]
    )
    reason: Reason = None

    def run(self, service: Service) -> NodeOrders:
        actor = service.actor(self.reason)
        done = service.store.fleet.set_slots(self.node, self.slots, actor, now_us=service.clock())
        service.wake_nodes()
        return done
