"""What people ask of webhooks, which are for operators. Every change is audited.

Whoever makes one lends it his eyes: it tells of nothing that lay out of his sight when he made it. So somebody who is
limited makes and sees webhooks within his limits alone; the others are not there for him.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from spinney.commands import Command
from spinney.commands.fields import PAGE, After, Limit, Name, Reason
from spinney.model.access import Role
from spinney.model.errors import Forbidden, NoSuch
from spinney.model.settings.webhooks import EVENTS, EVERY, URL_MAX, Delivery, DeliveryOutcome, Webhook
from spinney.model.values.hints import did_you_mean
from spinney.model.values.lists import All, Page
from spinney.service.filter_checks import require_queue
from spinney.service.service import ASK, Service, limits
from spinney.service.submission_lines import known_type

SECRET_BYTES = 32
_TO = "work with webhooks"

WebhookName = Annotated[Name, Field(description="The webhook's name.", examples=["archive"])]
DeliveryId = Annotated[
    str,
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 100, "pattern": r"^[0-9A-Za-z-]+$"}),
    Field(description="The delivery's id, as the receiver got it.", examples=["9f86d081884c7d65-17"]),
]
# What follows is checked by the model, whose sentences name the webhook.
Url = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": URL_MAX})]
Events = Annotated[
    list[str],
    WithJsonSchema(
        {
            "type": "array",
            "minItems": 1,
            "maxItems": 20,
            "items": {"type": "string", "maxLength": 20},
        }
    ),
]
_URL = "Where to: http or https, without a password."
_EVENTS = f"Some of {', '.join(EVENTS)}; or `{EVERY}`: all."
_ROOTS = "Of batches and single jobs alone, not of each subjob."


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookWithSecret:
    """A webhook, and the secret with which it is signed from now on: told this once."""

    webhook: Webhook
    secret: str = field(repr=False)


class ListWebhooks(Command, route="GET /webhooks", role=Role.OPERATOR, to=_TO):
    """List webhooks.

    Those in sight, by name. Their secrets are not told."""

    def run(self, service: Service) -> All[Webhook]:
        return All(items=list(_seen(service).values()))


class AddWebhook(Command, route="POST /webhooks", status=201, role=Role.OPERATOR, to=_TO):
    """Make a webhook.

    From now on this URL is told when such jobs settle. The answer has the secret with which it is signed: it is
    told this once. Who is limited to some collections or queues is told of these alone, by what was his limit then."""

    name: WebhookName
    url: Url = Field(description=_URL, examples=["https://example.org/hooks/spinney"])
    events: Events = Field(default=[EVERY], description=_EVENTS, examples=[["failed", "batch"]])
    type: Name | None = Field(default=None, description="Only of jobs of this type.", examples=["ingest"])
    collection: Name | None = Field(default=None, description="Only of jobs of this collection.")
    queue: Name | None = Field(default=None, description="Only of jobs in this queue.")
    roots_only: bool = Field(default=True, description=_ROOTS)
    reason: Reason = None

    def run(self, service: Service) -> WebhookWithSecret:
        fields = self.model_dump(exclude={"reason"}) | {"events": tuple(self.events)}
        asked = Webhook(**fields, within=service.rights.within)
        _require_known(service, fields)
        secret = new_secret()
        made = service.store.webhooks.add(asked, secret, service.actor(self.reason), now_us=service.clock())
        return WebhookWithSecret(webhook=made, secret=secret)


class ShowWebhook(Command, route="GET /webhooks/{name}", role=Role.OPERATOR, to=_TO):
    """Show a webhook.

    What it is told. Its secret is not."""

    name: WebhookName

    def run(self, service: Service) -> Webhook:
        return _find(service, self.name)


class ChangeWebhook(Command, route="PATCH /webhooks/{name}", role=Role.OPERATOR, to=_TO):
    """Set a webhook otherwise.

    Or pause it, or let it go on. What waited is sent to the new URL; what is due to one that is paused is kept for
    30 days. What is left out stays as it is; null takes a limit away."""

    name: WebhookName
    url: Url | None = Field(default=None, description=_URL, examples=["https://example.org/hooks/spinney"])
    events: Events | None = Field(default=None, description=_EVENTS, examples=[["failed", "batch"]])
    type: Name | None = Field(default=None, description="Only of jobs of this type.", examples=["ingest"])
    collection: Name | None = Field(default=None, description="Only of jobs of this collection.")
    queue: Name | None = Field(default=None, description="Only of jobs in this queue.")
    roots_only: bool | None = Field(default=None, description=_ROOTS)
    paused: bool | None = Field(default=None, description="Send it nothing until it is false again.")
    reason: Reason = None

    def run(self, service: Service) -> Webhook:
        found, hooks = _find(service, self.name), service.store.webhooks
        named = {name: getattr(self, name) for name in self.model_fields_set - {"name", "paused", "reason"}}
        # Where null can mean nothing, it is as if the field were not named.
        change = {k: v for k, v in named.items() if v is not None or k in ("type", "collection", "queue")}
        if "events" in change:
            change["events"] = tuple(change["events"])
        if change:
            _require_known(service, change)
            found = hooks.change(self.name, change, service.actor(self.reason), now_us=service.clock())
        if self.paused is not None:
            actor = service.actor(self.reason)
            found = hooks.pause(self.name, actor, paused=self.paused, now_us=service.clock())
        return found


class RemoveWebhook(Command, route="DELETE /webhooks/{name}", role=Role.OPERATOR, to=_TO, long=True):
    """Remove a webhook.

    It is told nothing any more, and its deliveries go with it."""

    name: WebhookName
    reason: Reason = None

    def run(self, service: Service) -> None:
        _find(service, self.name)
        service.store.webhooks.remove(self.name, service.actor(self.reason), now_us=service.clock())


class RotateWebhook(Command, route="POST /webhooks/{name}/rotate", role=Role.OPERATOR, to=_TO):
    """Give a webhook a new secret.

    All that is sent from now on is signed with it, what waits, too. It is told this once."""

    name: WebhookName
    reason: Reason = None

    def run(self, service: Service) -> WebhookWithSecret:
        _find(service, self.name)
        secret, actor = new_secret(), service.actor(self.reason)
        found = service.store.webhooks.rotate(self.name, secret, actor, now_us=service.clock())
        return WebhookWithSecret(webhook=found, secret=secret)


class PingWebhook(Command, route="POST /webhooks/{name}/test", status=202, role=Role.OPERATOR, to=_TO):
    """Send a webhook a ping.

    On the way that everything else goes: look at its deliveries for what came of it."""

    name: WebhookName

    def run(self, service: Service) -> Delivery:
        _find(service, self.name)
        return service.store.webhooks.ping(self.name, service.actor(), now_us=service.clock())


class ListDeliveries(Command, route="GET /webhooks/{name}/deliveries", role=Role.OPERATOR, to=_TO):
    """List the deliveries of a webhook.

    What it was told, and is to be, with the last answer: newest first, those of 30 days."""

    name: WebhookName
    after: After = 0
    limit: Limit = PAGE
    outcome: DeliveryOutcome | None = Field(default=None, description="Only those that stand so.")

    def run(self, service: Service) -> Page[Delivery]:
        _find(service, self.name)
        found = service.store.webhooks.deliveries(
            self.name, after=self.after, limit=self.limit, outcome=self.outcome
        )
        return Page(items=found, next=found[-1].seq if len(found) == self.limit else None)


class ShowDelivery(Command, route="GET /webhooks/deliveries/{delivery}", role=Role.OPERATOR, to=_TO):
    """Show a delivery.

    What came of it."""

    delivery: DeliveryId

    def run(self, service: Service) -> Delivery:
        return _delivery(service, self.delivery)


class RetryDelivery(
    Command, route="POST /webhooks/deliveries/{delivery}/retry", status=202, role=Role.OPERATOR, to=_TO
):
    """Send a delivery again.

    At once, whatever came of it before, and for another 24 hours if need be. It keeps its id."""

    delivery: DeliveryId
    reason: Reason = None

    def run(self, service: Service) -> Delivery:
        _delivery(service, self.delivery)
        actor = service.actor(self.reason)
        return service.store.webhooks.retry(self.delivery, actor, now_us=service.clock())


def new_secret() -> str:
    """One that nobody guesses."""
    return f"whs_{secrets.token_urlsafe(SECRET_BYTES)}"


def _seen(service: Service) -> Mapping[str, Webhook]:
    """Those in sight, by name."""
    found = service.store.webhooks.all(now_us=service.clock())
    return {webhook.name: webhook for webhook in found if _sees(service, webhook)}


def _find(service: Service, name: str) -> Webhook:
    """Raises NoSuch for one that is not there, or out of sight."""
    seen = _seen(service)
    if name not in seen:
        raise NoSuch(
            f"there is no webhook {name!r:.80}{did_you_mean(name, seen)}; 'spinney webhook list' shows those there are"
        )
    return seen[name]


def _delivery(service: Service, delivery: str) -> Delivery:
    found = service.store.webhooks.delivery(delivery)
    if not _sees(service, service.store.webhooks.of(found.webhook)):
        raise NoSuch(
            f"there is no delivery {delivery!r:.80}; 'spinney webhook deliveries NAME' shows those of 30 days"
        )
    return found


def _require_known(service: Service, named: Mapping[str, Any]) -> None:
    """What is mistyped would never be told of; what is out of sight would not either."""
    within, queue = service.rights.within, named.get("queue")
    for kind, allowed in (("collection", within.collections), ("queue", within.queues)):
        name = named.get(kind)
        if name is not None and allowed is not None and name not in allowed:
            raise Forbidden(
                f"{service.by} is limited to {limits(service.rights)} and may not be told of {kind} {name!r:.80}; {ASK}"
            )
    if named.get("type") is not None:
        known_type(service.store.types(), named["type"])
    if queue is not None:
        require_queue(service.store, queue, within=within)


def _sees(service: Service, webhook: Webhook) -> bool:
    """Whether all that it may tell of is in sight."""
    mine, its = service.rights.within, webhook.within
    return all(
        allowed is None or (told is not None and set(told) <= set(allowed))
        for allowed, told in ((mine.collections, its.collections), (mine.queues, its.queues))
    )


COMMANDS = (
    ListWebhooks,
    AddWebhook,
    ShowWebhook,
    ChangeWebhook,
    RemoveWebhook,
    RotateWebhook,
    PingWebhook,
    ListDeliveries,
    ShowDelivery,
    RetryDelivery,
)
