"""What people ask of queues. Every change is audited, and obeyed by all nodes with the next thing that they do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import Name, Reason
from spinney.model.access import Rights, Role
from spinney.model.errors import Forbidden, NoSuch, UsageError
from spinney.model.rights.operators import QueueChange, QueueInfo
from spinney.model.types import SETTABLE, QueueSpec
from spinney.model.values.limits import LIMIT_MAX, PART
from spinney.model.values.lists import All
from spinney.service.queries import Queries
from spinney.service.service import ASK, Service, limits

QueueName = Annotated[Name, Field(description="The queue's name.", examples=["nightly"])]
NodeNames = Annotated[list[Name], Field(max_length=1_000)]
# What follows is checked by the model, whose sentences name the queue.
Limit = Annotated[
    int | str | None,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": LIMIT_MAX},
                {"type": "string", "pattern": PART},
                {"type": "null"},
            ]
        }
    ),
]
Order = Annotated[str, WithJsonSchema({"type": "string", "enum": ["default", "fifo", "lifo"]})]
Sharing = Annotated[str, WithJsonSchema({"type": "string", "enum": ["shares", "quota", "none"]})]


class ListQueues(Command, route="GET /queues"):
    """List queues.

    By name: how each is set, what stands in it, which nodes serve it."""

    def run(self, service: Service) -> All[QueueInfo]:
        return All(items=service.part(Queries).queues())


class ShowQueue(Command, route="GET /queues/{name}"):
    """Show a queue.

    How it is set, and who serves it."""

    name: QueueName

    def run(self, service: Service) -> QueueInfo:
        return _known(service, self.name)


class CreateQueue(
    Command, route="POST /queues", status=201, role=Role.OPERATOR, everywhere=True, to="make queues"
):
    """Make a queue.

    One that no application has to declare."""

    name: QueueName
    limit: Limit = Field(default=None, description="null: no limit.")
    order: Order = Field(default="default", description="`default`: the earliest lineage first.")
    sharing: Sharing | None = Field(
        default=None, description="How slots are shared out; null: as goes with the order."
    )
    type: Name | None = Field(default=None, description="The default job type.")
    pinned: NodeNames = Field(default=[], description="Nodes that alone may serve it.")
    barred: NodeNames = Field(default=[], description="Nodes that may not serve it.")
    reason: Reason = None

    def run(self, service: Service) -> QueueInfo:
        spec = QueueSpec.from_json(self.model_dump(exclude={"reason"}))
        done = service.store.queue_admin.create(spec, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()
        return done


class DeleteQueue(
    Command, route="DELETE /queues/{name}", role=Role.ADMIN, everywhere=True, to="delete queues"
):
    """Delete a queue.

    With all that operators set of it; refused while jobs stand in it."""

    name: QueueName
    reason: Reason = None

    def run(self, service: Service) -> None:
        with _if_known(service, self.name):
            service.store.queue_admin.delete(self.name, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()


class ChangeQueue(Command, route="PATCH /queues/{name}", role=Role.OPERATOR, to="set queues"):
    """Set a queue otherwise.

    At once, for all nodes; what operators set wins over what applications declare. What is left out stays as it is."""

    name: QueueName
    limit: Limit = Field(
        default=None,
        examples=[4, "50%"],
        description="Occupied slots over the whole cluster, or a part of those there are; 0: nothing starts; null: no "
        "limit.",
    )
    type: Name | None = Field(default=None, description="The default job type; null: none.")
    pinned: NodeNames = Field(default=[], description="Nodes that alone may serve it.")
    barred: NodeNames = Field(default=[], description="Nodes that may not serve it.")
    unpin: NodeNames = Field(default=[], description="Nodes whose pins go.")
    pin: NodeNames = Field(
        default=[], description="Nodes that alone may serve it, beside those that are pinned already."
    )
    unbar: NodeNames = Field(default=[], description="Nodes whose bars go.")
    bar: NodeNames = Field(
        default=[], description="Nodes that may not serve it, beside those barred already."
    )
    declared: list[Name] = Field(
        default=[],
        description="These fields (`limit`, `type`, `pinned`, `barred`) go back to what applications declare.",
    )
    reason: Reason = None

    def run(self, service: Service) -> QueueInfo:
        if not may_set(service.rights, self.name):
            raise Forbidden(
                f"{service.by} is limited to {limits(service.rights)} and may not set queue {self.name!r}, which is "
                f"more; {ASK}"
            )
        said = {name: _plain(getattr(self, name)) for name in SETTABLE & self.model_fields_set}
        lists = {name: tuple(getattr(self, name)) for name in ("declared", "unpin", "pin", "unbar", "bar")}
        change, actor = QueueChange(set=said, **lists), service.actor(self.reason)
        with _if_known(service, self.name):
            done = service.store.queue_admin.change(self.name, change, actor, now_us=service.clock())
        service.wake_nodes()
        return done


def may_set(rights: Rights, name: str) -> bool:
    """Whether all jobs of the queue are within the limits of an operator."""
    within = rights.within
    wholly = within.everywhere or (within.collections is None and name in (within.queues or ()))
    return rights.permits(Role.OPERATOR) and wholly


def _known(service: Service, name: str) -> QueueInfo:
    """Raises NoSuch for a queue that nobody has named, and for one out of sight."""
    try:
        return service.part(Queries).queue(name)
    except UsageError as error:
        raise NoSuch(str(error)) from None


@contextmanager
def _if_known(service: Service, name: str) -> Iterator[None]:
    """Whether the queue is known is asked after a refusal only, as the store looks for itself."""
    try:
        yield
    except UsageError:
        _known(service, name)
        raise


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


COMMANDS = (ListQueues, ShowQueue, CreateQueue, DeleteQueue, ChangeQueue)
