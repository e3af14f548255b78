"""Webhooks: who is told when jobs settle, and what came of each telling."""

from typing import Annotated, Any

from fastapi import Path, Query, status
from pydantic import Field

from spinney.control import Control
from spinney.features.webhooks.service import WebhookWithSecret
from spinney.model.settings.webhooks import EVENTS, EVERY, URL_MAX, Delivery, DeliveryOutcome, Webhook
from spinney.model.values.lists import All, Page
from spinney.web.api.json_routes import routes
from spinney.web.api.request_types import (
    PAGE,
    After,
    Limit,
    NamePath,
    ReasonRequest,
    RequestModel,
    Word,
    page,
)
from spinney.web.problems import documented
from spinney.web.request_context import Authenticated

router = routes("webhooks")

_Url = Annotated[
    str,
    Field(
        min_length=1,
        max_length=URL_MAX,
        description="Where to: http or https, without a password.",
        examples=["https://example.org/hooks/spinney"],
    ),
]
_Events = Annotated[
    list[Annotated[str, Field(max_length=20)]],
    Field(
        min_length=1,
        max_length=20,
        description=f"Some of {', '.join(EVENTS)}; or `{EVERY}`: all.",
        examples=[["failed", "batch"]],
    ),
]
_Roots = Annotated[bool, Field(description="Of batches and single jobs alone, not of each subjob.")]
DeliveryId = Annotated[
    str,
    Path(
        alias="delivery",
        min_length=1,
        max_length=100,
        pattern=r"^[0-9A-Za-z-]+$",
        description="The delivery's id, as the receiver got it.",
        examples=["9f86d081884c7d65-17"],
    ),
]


class WebhookRequest(RequestModel):
    """Who is to be told what."""

    name: Word = Field(examples=["archive"])
    url: _Url
    events: _Events = Field(default_factory=lambda: [EVERY])
    type: Word | None = Field(None, description="Only of jobs of this type.", examples=["ingest"])
    collection: Word | None = Field(None, description="Only of jobs of this collection.")
    queue: Word | None = Field(None, description="Only of jobs in this queue.")
    roots_only: _Roots = True
    reason: Word | None = Field(None, description="Why; kept in the audit.")


class WebhookChangeRequest(RequestModel):
    """What is to be otherwise; what is not named stays. Null takes a limit away."""

    url: _Url | None = None
    events: _Events | None = None
    type: Word | None = None
    collection: Word | None = None
    queue: Word | None = None
    roots_only: _Roots | None = None
    paused: bool | None = Field(None, description="Send it nothing until it is false again.")
    reason: Word | None = Field(None, description="Why; kept in the audit.")

    def fields(self) -> dict[str, Any]:
        """Those that were named. Where null can mean nothing, it is as if they were not."""
        named = {name: getattr(self, name) for name in self.model_fields_set - {"paused", "reason"}}
        return {k: v for k, v in named.items() if v is not None or k in ("type", "collection", "queue")}


@router.get("/webhooks", summary="List webhooks")
async def list_webhooks(context: Authenticated) -> All[Webhook]:
    """Those in sight, by name. Their secrets are not told."""
    return await context.run(lambda control: All(items=control.webhooks.all()))


@router.post(
    "/webhooks", summary="Make a webhook", status_code=status.HTTP_201_CREATED, responses=documented(409)
)
async def add_webhook(asked: WebhookRequest, context: Authenticated) -> WebhookWithSecret:
    """From now on this URL is told when such jobs settle. The answer has the secret with which it is signed: it is
    told this once. Who is limited to some collections or queues is told of these alone, by what was his limit then."""
    return await context.run(
        lambda control: control.webhooks.add(
            asked.name,
            asked.url,
            events=asked.events,
            type_=asked.type,
            collection=asked.collection,
            queue=asked.queue,
            roots_only=asked.roots_only,
            reason=asked.reason,
        )
    )


@router.get("/webhooks/{name}", summary="Show a webhook", responses=documented(404))
async def show_webhook(name: NamePath, context: Authenticated) -> Webhook:
    """What it is told. Its secret is not."""
    return await context.run(lambda control: control.webhooks.find(name))


@router.patch("/webhooks/{name}", summary="Set a webhook otherwise", responses=documented(404, 409))
async def change_webhook(name: NamePath, change: WebhookChangeRequest, context: Authenticated) -> Webhook:
    """Or pause it, or let it go on. What waited is sent to the new URL."""

    def call(control: Control) -> Webhook:
        part, fields = control.webhooks, change.fields()
        if fields:
            part.change(name, fields, reason=change.reason)
        if change.paused is not None:
            (part.pause if change.paused else part.resume)(name, reason=change.reason)
        return part.find(name)

    return await context.run(call)


@router.delete(
    "/webhooks/{name}",
    summary="Remove a webhook",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=documented(404),
)
async def remove_webhook(name: NamePath, context: Authenticated) -> None:
    """It is told nothing any more, and its deliveries go with it."""
    await context.run(lambda control: control.webhooks.remove(name), long=True)


@router.post("/webhooks/{name}/rotate", summary="Give a webhook a new secret", responses=documented(404))
async def rotate_webhook(
    name: NamePath, context: Authenticated, why: ReasonRequest | None = None
) -> WebhookWithSecret:
    """All that is sent from now on is signed with it, what waits, too. It is told this once."""
    return await context.run(
        lambda control: control.webhooks.rotate(name, reason=why.reason if why else None)
    )


@router.post(
    "/webhooks/{name}/test",
    summary="Send a webhook a ping",
    status_code=status.HTTP_202_ACCEPTED,
    responses=documented(404),
)
async def test_webhook(name: NamePath, context: Authenticated) -> Delivery:
    """On the way that everything else goes: look at its deliveries for what came of it."""
    return await context.run(lambda control: control.webhooks.test(name))


@router.get(
    "/webhooks/{name}/deliveries", summary="List the deliveries of a webhook", responses=documented(404)
)
async def list_deliveries(
    name: NamePath,
    context: Authenticated,
    after: After = 0,
    limit: Limit = PAGE,
    outcome: Annotated[DeliveryOutcome | None, Query(description="Only those that stand so.")] = None,
) -> Page[Delivery]:
    """What it was told, and is to be, with the last answer: newest first, those of 30 days."""

    def call(control: Control) -> Page[Delivery]:
        found = control.webhooks.deliveries(name, limit=limit, after=after, outcome=outcome)
        return page(found, limit, found[-1].seq if found else None)

    return await context.run(call)


@router.get("/webhooks/deliveries/{delivery}", summary="Show a delivery", responses=documented(404))
async def show_delivery(delivery: DeliveryId, context: Authenticated) -> Delivery:
    """What came of it."""
    return await context.run(lambda control: control.webhooks.delivery(delivery))


@router.post(
    "/webhooks/deliveries/{delivery}/retry",
    summary="Send a delivery again",
    status_code=status.HTTP_202_ACCEPTED,
    responses=documented(404),
)
async def retry_delivery(
    delivery: DeliveryId, context: Authenticated, why: ReasonRequest | None = None
) -> Delivery:
    """At once, whatever came of it before, and for another 24 hours if need be. It keeps its id."""
    return await context.run(
        lambda control: control.webhooks.retry(delivery, reason=why.reason if why else None)
    )
