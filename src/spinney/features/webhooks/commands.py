"""The commands for webhooks, which only operators may use. Every change is audited.

A webhook reports only jobs that its maker was allowed to see when it was made. An operator who is limited to some
collections or queues makes webhooks within these limits, and sees only those; all others do not exist for that
operator.
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
from spinney.model.settings.webhooks import (
    EVENTS,
    EVERY,
    URL_MAX,
    Delivery,
    DeliveryOutcome,
    Webhook,
    no_such_delivery,
)
from spinney.model.types import known_type
from spinney.model.values import names
from spinney.model.values.hints import no_such
from spinney.model.values.lists import All, Page
from spinney.service.filter_checks import require_queue
from spinney.service.service import ASK, Service, limits

SECRET_BYTES = 32
"""How many random bytes a secret has."""
_ACTION = "work with webhooks"
"""What an account without the role may not do, for the error's message."""

WebhookName = Annotated[Name, Field(description="The webhook's name.", examples=["archive"])]
DeliveryId = Annotated[
    str,
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 100, "pattern": r"^[0-9A-Za-z-]+$"}),
    Field(description="The delivery's id, as the receiver got it.", examples=["9f86d081884c7d65-17"]),
]
"""The id of a delivery, as receivers get it: a mark of its webhook, and its number."""
# The schemas of these two are only documented here: ``Webhook`` checks the values, so that its messages name the
# webhook.
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
_URL = "The URL that is called: http or https, without a password."
_EVENTS = f"The events that are reported: some of {', '.join(EVENTS)}, or `{EVERY}` for all."
_ROOTS = "Report batches and single jobs only, not their subjobs."


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookWithSecret:
    """A webhook, and the secret that signs its deliveries from now on. No other answer has the secret."""

    webhook: Webhook
    secret: str = field(repr=False)
    """The secret in full; it is left out of ``repr``, so that no log has it."""


class ListWebhooks(Command, route="GET /webhooks", role=Role.OPERATOR, to=_ACTION):
    """List webhooks.

    The webhooks that you may see, by name, without their secrets."""

    def run(self, service: Service) -> All[Webhook]:
        return All(items=list(_visible_webhooks(service).values()))


class AddWebhook(Command, route="POST /webhooks", status=201, role=Role.OPERATOR, to=_ACTION):
    """Make a webhook.

    From now on this URL is called when such jobs settle. The answer has the secret that signs the deliveries, which is
    not shown again. If you are limited to some collections or queues, the webhook reports only their jobs, even if you
    are limited less later."""

    name: WebhookName
    url: Url = Field(description=_URL, examples=["https://example.org/hooks/spinney"])
    events: Events = Field(default=[EVERY], description=_EVENTS, examples=[["failed", "batch"]])
    type: Name | None = Field(default=None, description="Report only jobs of this type.", examples=["ingest"])
    collection: Name | None = Field(default=None, description="Report only jobs of this collection.")
    queue: Name | None = Field(default=None, description="Report only jobs in this queue.")
    roots_only: bool = Field(default=True, description=_ROOTS)
    reason: Reason = None

    def run(self, service: Service) -> WebhookWithSecret:
        """Make the webhook with the caller's limits. Raises Forbidden and NoSuch for names beyond
        these, and Refused for a name that is taken."""
        fields = self.model_dump(exclude={"reason"}) | {"events": tuple(self.events)}
        webhook = Webhook(**fields, within=service.rights.within)
        _require_names(service, fields)
        secret = new_secret()
        made = service.store.webhooks.add(webhook, secret, service.actor(self.reason), now_us=service.clock())
        return WebhookWithSecret(webhook=made, secret=secret)


class ShowWebhook(Command, route="GET /webhooks/{name}", role=Role.OPERATOR, to=_ACTION):
    """Show a webhook.

    Its settings, without its secret."""

    name: WebhookName

    def run(self, service: Service) -> Webhook:
        return _require_visible(service, self.name)


class ChangeWebhook(Command, route="PATCH /webhooks/{name}", role=Role.OPERATOR, to=_ACTION):
    """Change, pause or resume a webhook.

    Deliveries that wait are sent to the new URL; those of a paused webhook are kept for 30 days. A field that is left
    out stays as it is; null removes a limit to a type, collection or queue."""

    name: WebhookName
    url: Url | None = Field(default=None, description=_URL, examples=["https://example.org/hooks/spinney"])
    events: Events | None = Field(default=None, description=_EVENTS, examples=[["failed", "batch"]])
    type: Name | None = Field(default=None, description="Report only jobs of this type.", examples=["ingest"])
    collection: Name | None = Field(default=None, description="Report only jobs of this collection.")
    queue: Name | None = Field(default=None, description="Report only jobs in this queue.")
    roots_only: bool | None = Field(default=None, description=_ROOTS)
    paused: bool | str | None = Field(
        default=None,
        description="Whether deliveries wait until this is false again. The text that answers have here means true, so "
        "that what was read can be sent back.",
    )
    reason: Reason = None

    def run(self, service: Service) -> Webhook:
        """Change the settings, then pause or resume, in two transactions. Raises Forbidden, NoSuch,
        UsageError."""
        webhook, hooks = _require_visible(service, self.name), service.store.webhooks
        set_fields = {
            name: getattr(self, name) for name in self.model_fields_set - {"name", "paused", "reason"}
        }
        # A null for another field than these three has no meaning, and is ignored.
        change = {
            k: v for k, v in set_fields.items() if v is not None or k in ("type", "collection", "queue")
        }
        if "events" in change:
            change["events"] = tuple(change["events"])
        if change:
            _require_names(service, change)
            webhook = hooks.change(self.name, change, service.actor(self.reason), now_us=service.clock())
        if self.paused is not None:
            actor = service.actor(self.reason)
            webhook = hooks.pause(self.name, actor, paused=bool(self.paused), now_us=service.clock())
        return webhook


class RemoveWebhook(Command, route="DELETE /webhooks/{name}", role=Role.OPERATOR, to=_ACTION, long=True):
    """Remove a webhook.

    Nothing is sent any more, and its deliveries are removed with it."""

    name: WebhookName
    reason: Reason = None

    def run(self, service: Service) -> None:
        _require_visible(service, self.name)
        service.store.webhooks.remove(self.name, service.actor(self.reason), now_us=service.clock())


class RotateWebhook(Command, route="POST /webhooks/{name}/rotate", role=Role.OPERATOR, to=_ACTION):
    """Give a webhook a new secret.

    It signs everything that is sent from now on, also deliveries that wait already. It is not shown again."""

    name: WebhookName
    reason: Reason = None

    def run(self, service: Service) -> WebhookWithSecret:
        _require_visible(service, self.name)
        secret, actor = new_secret(), service.actor(self.reason)
        webhook = service.store.webhooks.rotate(self.name, secret, actor, now_us=service.clock())
        return WebhookWithSecret(webhook=webhook, secret=secret)


class PingWebhook(Command, route="POST /webhooks/{name}/test", status=202, role=Role.OPERATOR, to=_ACTION):
    """Send a webhook a ping.

    The ping is sent like every other delivery; list the deliveries to see its outcome."""

    name: WebhookName

    def run(self, service: Service) -> Delivery:
        _require_visible(service, self.name)
        return service.store.webhooks.ping(self.name, service.actor(), now_us=service.clock())


class ListDeliveries(Command, route="GET /webhooks/{name}/deliveries", role=Role.OPERATOR, to=_ACTION):
    """List the deliveries of a webhook.

    Sent and waiting deliveries of the last 30 days, newest first, each with the receiver's last answer."""

    name: WebhookName
    after: After = 0
    limit: Limit = PAGE
    outcome: DeliveryOutcome | None = Field(default=None, description="Only deliveries with this outcome.")

    def run(self, service: Service) -> Page[Delivery]:
        _require_visible(service, self.name)
        deliveries = service.store.webhooks.deliveries(
            self.name, after=self.after, limit=self.limit, outcome=self.outcome
        )
        return Page(items=deliveries, next=deliveries[-1].seq if len(deliveries) == self.limit else None)


class ShowDelivery(Command, route="GET /webhooks/deliveries/{delivery}", role=Role.OPERATOR, to=_ACTION):
    """Show a delivery.

    Its outcome so far, with the receiver's last answer."""

    delivery: DeliveryId

    def run(self, service: Service) -> Delivery:
        return _visible_delivery(service, self.delivery)


class RetryDelivery(
    Command, route="POST /webhooks/deliveries/{delivery}/retry", status=202, role=Role.OPERATOR, to=_ACTION
):
    """Send a delivery again.

    It is sent at once, whatever its outcome was, and if it fails, tried again for another 24 hours. It keeps its id."""

    delivery: DeliveryId
    reason: Reason = None

    def run(self, service: Service) -> Delivery:
        _visible_delivery(service, self.delivery)
        actor = service.actor(self.reason)
        return service.store.webhooks.retry(self.delivery, actor, now_us=service.clock())


def new_secret() -> str:
    """Return a new random secret for signing. The prefix tells it from other secrets, for example to
    scanners of source code."""
    return f"whs_{secrets.token_urlsafe(SECRET_BYTES)}"


def _visible_webhooks(service: Service) -> Mapping[str, Webhook]:
    """Return the webhooks that the caller may see, by name."""
    webhooks = service.store.webhooks.all(now_us=service.clock())
    return {webhook.name: webhook for webhook in webhooks if _is_visible(service, webhook)}


def _require_visible(service: Service, name: str) -> Webhook:
    """Return a webhook. Raises NoSuch unless it exists and the caller may see it."""
    webhooks = _visible_webhooks(service)
    if name not in webhooks:
        raise NoSuch(no_such("webhook", name, webhooks, "spinney webhook list"))
    return webhooks[name]


def _visible_delivery(service: Service, delivery: str) -> Delivery:
    """Return a delivery. Raises NoSuch unless it exists and the caller may see its webhook."""
    existing = service.store.webhooks.delivery(delivery)
    if not _is_visible(service, service.store.webhooks.get(existing.webhook)):
        raise no_such_delivery(delivery)
    return existing


def _require_names(service: Service, fields: Mapping[str, Any]) -> None:
    """Raise unless the type and queue among these fields of a webhook exist, the collection can, and the caller may see
    them. With a mistyped name the webhook would never report anything."""
    within, queue = service.rights.within, fields.get("queue")
    for kind, allowed in (("collection", within.collections), ("queue", within.queues)):
        name = fields.get(kind)
        if name is not None and allowed is not None and name not in allowed:
            raise Forbidden(
                f"{service.by} is limited to {limits(service.rights)} and may not get reports of {kind} {name!r:.80}; "
                f"{ASK}"
            )
    if fields.get("collection") is not None:
        names.name("collection", fields["collection"])
    if fields.get("type") is not None:
        known_type(service.store.types(), fields["type"])
    if queue is not None:
        names.name("queue", queue)
        require_queue(service.store, queue, within=within)


def _is_visible(service: Service, webhook: Webhook) -> bool:
    """Return whether the caller may see every job that the webhook may report."""
    mine, its = service.rights.within, webhook.within
    return all(
        allowed is None or (reported is not None and set(reported) <= set(allowed))
        for allowed, reported in ((mine.collections, its.collections), (mine.queues, its.queues))
    )
