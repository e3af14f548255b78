"""Who is told when jobs settle."""

from collections.abc import Sequence
from typing import TypedDict, Unpack

from spinney.client.calls import Call, get, json_body, path, request, verb
from spinney.features.webhooks.service import WebhookWithSecret
from spinney.model.settings.webhooks import Delivery, Webhook
from spinney.model.values.lists import Page


class WebhookSettings(TypedDict, total=False):
    """What is to be otherwise; None takes a limit away."""

    url: str
    events: Sequence[str]
    type: str | None
    collection: str | None
    queue: str | None
    roots_only: bool
    paused: bool


class WebhookVerbs:
    """Secrets are in the answer that made them, once."""

    @verb
    def webhooks(self: None) -> Call[Page[Webhook]]:
        """Those in sight, by name."""
        return get("/webhooks", Page[Webhook])

    @verb
    def webhook(self: None, name: str) -> Call[Webhook]:
        """What it is told."""
        return get(path("/webhooks/{}", name), Webhook)

    @verb
    def add_webhook(
        self: None,
        name: str,
        url: str,
        *,
        events: Sequence[str] = ("*",),
        type_: str | None = None,
        collection: str | None = None,
        queue: str | None = None,
        roots_only: bool = True,
        reason: str | None = None,
    ) -> Call[WebhookWithSecret]:
        """Tell this URL when such jobs settle."""
        body = json_body(
            name=name,
            url=url,
            events=list(events),
            type_=type_,
            collection=collection,
            queue=queue,
            roots_only=roots_only,
            reason=reason,
        )
        return request("POST", "/webhooks", WebhookWithSecret, body)

    @verb
    def change_webhook(
        self: None, name: str, *, reason: str | None = None, **change: Unpack[WebhookSettings]
    ) -> Call[Webhook]:
        """Set it otherwise, pause it, or let it go on."""
        return request("PATCH", path("/webhooks/{}", name), Webhook, {**change, **json_body(reason=reason)})

    @verb
    def remove_webhook(self: None, name: str) -> Call[None]:
        """Tell it nothing any more; its deliveries go with it."""
        return request("DELETE", path("/webhooks/{}", name))

    @verb
    def rotate_webhook(self: None, name: str, *, reason: str | None = None) -> Call[WebhookWithSecret]:
        """Give it a new secret."""
        return request("POST", path("/webhooks/{}/rotate", name), WebhookWithSecret, json_body(reason=reason))

    @verb
    def test_webhook(self: None, name: str) -> Call[Delivery]:
        """Send it a ping."""
        return request("POST", path("/webhooks/{}/test", name), Delivery)

    @verb
    def deliveries(
        self: None, name: str, *, after: int = 0, limit: int = 100, outcome: str | None = None
    ) -> Call[Page[Delivery]]:
        """A page of what it was told, and is to be, newest first."""
        return get(
            path("/webhooks/{}/deliveries", name), Page[Delivery], after=after, limit=limit, outcome=outcome
        )

    @verb
    def delivery(self: None, delivery: str) -> Call[Delivery]:
        """What came of a telling."""
        return get(path("/webhooks/deliveries/{}", delivery), Delivery)

    @verb
    def retry_delivery(self: None, delivery: str, *, reason: str | None = None) -> Call[Delivery]:
        """Send it again, at once."""
        return request(
            "POST", path("/webhooks/deliveries/{}/retry", delivery), Delivery, json_body(reason=reason)
        )
