"""The commands for queues. Every change is in the audit, and in force on all nodes with their next
transaction.

Making and deleting a queue concerns everybody, so it takes rights without limits. Changing one takes an
operator who may see all of its jobs: a limit to some collections is not enough, since the queue has jobs of
others, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import Name, Reason
from spinney.model.access import Rights, Role
from spinney.model.errors import Forbidden, NoSuch, UsageError
from spinney.model.operators.queues import QueueChange, QueueInfo
from spinney.model.settings.queues import SETTABLE, QueueSpec
from spinney.model.values.limits import LIMIT_MAX, PART
from spinney.model.values.lists import All
from spinney.service.queries import Queries
from spinney.service.service import ASK, Service, limits

QueueName = Annotated[Name, Field(description="The queue's name.", examples=["nightly"])]
NodeNames = Annotated[list[Name], Field(max_length=1_000)]
# The schemas of these are only documented here: the model checks the values, so that its messages name the queue.
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

    By name, each with its settings, its numbers of jobs and its nodes."""

    def run(self, service: Service) -> All[QueueInfo]:
        return All(items=service.part(Queries).queues())


class ShowQueue(Command, route="GET /queues/{name}"):
    """Show a queue.

    Its settings, its numbers of jobs and its nodes."""

    name: QueueName

    def run(self, service: Service) -> QueueInfo:
        return _require_visible(service, self.name)


class CreateQueue(
    Command, route="POST /queues", status=201, role=Role.OPERATOR, everywhere=True, to="make queues"
):
    """Make a queue.

    No application has to declare it."""

    name: QueueName
    limit: Limit = Field(default=None, description="The number of slots, or a percentage; null: no limit.")
    order: Order = Field(
        default="default",
        description="The order of jobs. `default`: the job with the earliest lineage first.",
    )
    sharing: Sharing | None = Field(
        default=None, description="How slots are shared out; null: the default of the order."
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

    With its settings; refused while it has jobs that have not settled."""

    name: QueueName
    reason: Reason = None

    def run(self, service: Service) -> None:
        with _visible_or_no_such(service, self.name):
            service.store.queue_admin.delete(self.name, service.actor(self.reason), now_us=service.clock())
        service.wake_nodes()


class ChangeQueue(Command, route="PATCH /queues/{name}", role=Role.OPERATOR, to="set queues"):
    """Change a queue.

    At once, for all nodes; settings of operators override what applications declare. A field that is left out stays as
    it is."""

    name: QueueName
    limit: Limit = Field(
        default=None,
        examples=[4, "50%"],
        description="Slots that its jobs may use in the whole cluster, or a percentage; 0: nothing starts; null: no "
        "limit.",
    )
    type: Name | None = Field(default=None, description="The default job type; null: none.")
    pinned: NodeNames = Field(default=[], description="Nodes that alone may serve it.")
    barred: NodeNames = Field(default=[], description="Nodes that may not serve it.")
    unpin: NodeNames = Field(default=[], description="Nodes whose pins are removed.")
    pin: NodeNames = Field(
        default=[], description="Nodes that alone may serve it, beside those that are pinned already."
    )
    unbar: NodeNames = Field(default=[], description="Nodes whose bars are removed.")
    bar: NodeNames = Field(
        default=[], description="Nodes that may not serve it, beside those barred already."
    )
    declared: list[Name] = Field(
        default=[],
        description="These fields (`limit`, `type`, `pinned`, `barred`) go back to what applications declare.",
    )
    reason: Reason = None

    def run(self, service: Service) -> QueueInfo:
        """Change the settings, and return the queue. Raises Forbidden and NoSuch, and what
        ``SqlQueues.change`` raises."""
        if not may_set(service.rights, self.name):
            raise Forbidden(
                f"{service.by} is limited to {limits(service.rights)} and may not set queue {self.name!r}, which "
                f"goes beyond that; {ASK}"
            )
        # Null is a value of limit and type, so only a field that was not sent at all is left as it is.
        fields = {name: getattr(self, name) for name in SETTABLE & self.model_fields_set}
        lists = {name: tuple(getattr(self, name)) for name in ("declared", "unpin", "pin", "unbar", "bar")}
        change, actor = QueueChange(set=fields, **lists), service.actor(self.reason)
        with _visible_or_no_such(service, self.name):
            done = service.store.queue_admin.change(self.name, change, actor, now_us=service.clock())
        service.wake_nodes()
        return done


def may_set(rights: Rights, name: str) -> bool:
    """Return whether a caller with these rights may change a queue: an operator who may see all its jobs."""
    within = rights.within
    wholly = within.everywhere or (within.collections is None and name in (within.queues or ()))
    return rights.permits(Role.OPERATOR) and wholly


def _require_visible(service: Service, name: str) -> QueueInfo:
    """Return a queue. Raises NoSuch unless it is known and the caller may see it."""
    try:
        return service.part(Queries).queue(name)
    except UsageError as error:
        raise NoSuch(str(error)) from None


@contextmanager
def _visible_or_no_such(service: Service, name: str) -> Iterator[None]:
    """Raise NoSuch instead of UsageError when the queue is unknown, or not visible to the caller.

    Checked only after a refusal, since the store checks the name itself; the usual call takes one query
    less.
    """
    try:
        yield
    except UsageError:
        _require_visible(service, name)
        raise
