"""Queues: how they are set, who serves them, and to set them otherwise."""

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from spinney.control import Control
from spinney.model.rights.operators import QueueChange, QueueInfo
from spinney.model.types import QueueSpec
from spinney.model.values.limits import LIMIT_MAX, PART
from spinney.model.values.lists import All
from spinney.web.api.json_routes import routes
from spinney.web.api.not_found import missing_is_404
from spinney.web.api.request_types import NamePath, ReasonRequest, Word
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("queues")
Limited = Annotated[int, Field(ge=0, le=LIMIT_MAX)] | Annotated[str, Field(pattern=PART)]
Nodes = Annotated[list[Word], Field(max_length=1_000)]


class QueueChangeRequest(ReasonRequest):
    """What is wanted otherwise; what is left out stays as it is."""

    limit: Limited | None = Field(
        default=None,
        examples=[4, "50%"],
        description="Occupied slots over the whole cluster, or a part of those there are; 0: nothing starts; null: no "
        "limit.",
    )
    type: Word | None = Field(default=None, description="The default job type; null: none.")
    pin: Nodes = Field(
        default=[], description="Nodes that alone may serve it, beside those that are pinned already."
    )
    unpin: Nodes = Field(default=[])
    bar: Nodes = Field(default=[], description="Nodes that may not serve it.")
    unbar: Nodes = Field(default=[])
    declared: list[Word] = Field(
        default=[],
        description="These fields (`limit`, `type`, `pinned`, `barred`) go back to what applications declare.",
    )

    def change(self) -> QueueChange:
        said: dict[str, Any] = {
            name: getattr(self, name) for name in ("limit", "type") if name in self.model_fields_set
        }
        return QueueChange(
            declared=tuple(self.declared),
            set=said,
            pin=tuple(self.pin),
            unpin=tuple(self.unpin),
            bar=tuple(self.bar),
            unbar=tuple(self.unbar),
        )


class QueueRequest(ReasonRequest):
    """A queue that is to be."""

    name: Word = Field(examples=["nightly"])
    limit: Limited | None = Field(default=None, description="null: no limit.")
    order: Literal["default", "fifo", "lifo"] = Field(
        default="default", description="`default`: the earliest lineage first."
    )
    sharing: Literal["shares", "quota", "none"] | None = Field(
        default=None, description="How slots are shared out; null: as goes with the order."
    )
    type: Word | None = Field(default=None, description="The default job type.")
    pinned: Nodes = Field(default=[], description="Nodes that alone may serve it.")
    barred: Nodes = Field(default=[], description="Nodes that may not serve it.")

    def spec(self) -> QueueSpec:
        """Raises UsageError, BadName for what cannot be meant."""
        return QueueSpec(
            name=self.name,
            limit=self.limit,
            order=self.order,
            sharing=self.sharing,
            type=self.type,
            pinned=tuple(self.pinned),
            barred=tuple(self.barred),
        )


@router.get("/queues", summary="List queues")
async def list_queues(context: Authenticated) -> All[QueueInfo]:
    """By name: how each is set, what stands in it, which nodes serve it."""
    return await context.run(lambda control: All(items=control.queries.queues()))


@router.get("/queues/{name}", summary="Show a queue", responses=documented(404))
async def show_queue(name: NamePath, context: Authenticated) -> QueueInfo:
    """How it is set, and who serves it."""
    return await context.run(lambda control: _queue(control, name))


@router.post("/queues", summary="Make a queue", status_code=201, responses=documented(404, 409, 415))
async def create_queue(asked: QueueRequest, context: Authenticated) -> QueueInfo:
    """One that no application has to declare."""
    return await context.run(lambda control: control.queues.create(asked.spec(), reason=asked.reason))


@router.delete("/queues/{name}", summary="Delete a queue", status_code=204, responses=documented(404, 409))
async def delete_queue(
    name: NamePath,
    context: Authenticated,
    reason: Annotated[Word | None, Query(description="Why; kept in the audit.")] = None,
) -> None:
    """With all that operators set of it; refused while jobs stand in it."""

    def call(control: Control) -> None:
        _queue(control, name)
        control.queues.delete(name, reason=reason)

    await context.run(call)


@router.patch("/queues/{name}", summary="Set a queue otherwise", responses=documented(404, 409, 415))
async def change_queue(name: NamePath, asked: QueueChangeRequest, context: Authenticated) -> QueueInfo:
    """At once, for all nodes; what operators set wins over what applications declare."""

    def call(control: Control) -> QueueInfo:
        _queue(control, name)
        return control.queues.change(name, asked.change(), reason=asked.reason)

    return await context.run(call)


def _queue(control: Control, name: str) -> QueueInfo:
    with missing_is_404():
        return control.queries.queue(name)
