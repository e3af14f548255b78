"""Commands on bridges, which bring jobs from other systems and results back: list them, forget one."""

from typing import Annotated

from pydantic import Field

from spinney.commands import Command
from spinney.commands.fields import Reason
from spinney.model.access import Role
from spinney.model.bridges import BridgeStatus
from spinney.model.values.lists import All
from spinney.service.service import Service

BridgeName = Annotated[
    str, Field(min_length=1, max_length=200, description="The bridge's name.", examples=["disbatch:mig:oak"])
]


class ListBridges(Command, route="GET /bridges", everywhere=True, to="look at bridges"):
    """List bridges to other systems.

    Running or not, by name: how far behind each is, and its last trouble.
    """

    def run(self, service: Service) -> All[BridgeStatus]:
        return All(items=service.store.bridges.statuses())


class ForgetBridge(
    Command, route="DELETE /bridges/{name}", role=Role.ADMIN, everywhere=True, to="forget bridges"
):
    """Forget a bridge that no longer runs.

    Its jobs stay, and so do its claims in the other system, which the bridge takes up when it is started
    again.
    """

    name: BridgeName
    reason: Reason = None

    def run(self, service: Service) -> None:
        service.store.bridges.forget(self.name, service.actor(self.reason), now_us=service.clock())
