"""Webhooks: who is told when jobs settle, and what became of the telling.

Whoever makes one lends it his eyes: it tells of nothing that lay out of his sight when he made it. So somebody who is
limited makes and sees webhooks within his limits alone; the others are not there for him.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spinney.model.access import AccessScope, Role
from spinney.model.errors import Forbidden, NoSuch
from spinney.model.settings.webhooks import EVERY, Delivery, DeliveryOutcome, Webhook
from spinney.model.values.hints import did_you_mean
from spinney.service.filter_checks import require_queue
from spinney.service.service import ASK, Service, limits
from spinney.service.submission_lines import known_type

SECRET_BYTES = 32
_WHAT = "work with webhooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookWithSecret:
    """A webhook, and the secret with which it is signed from now on: told this once."""

    webhook: Webhook
    secret: str = field(repr=False)


class Webhooks(Service):
    """For operators. Every change is audited. What is not there, or out of sight, raises NoSuch."""

    def add(
        self,
        name: str,
        url: str,
        *,
        events: Sequence[str] = (EVERY,),
        type_: str | None = None,
        collection: str | None = None,
        queue: str | None = None,
        roots_only: bool = True,
        reason: str | None = None,
    ) -> WebhookWithSecret:
        """Tell this URL from now on.

        Raises UsageError, BadName, BadParameters (a password in the URL), UnknownType, Refused (the name is taken),
        Forbidden (a collection or queue out of sight).
        """
        self.require(Role.OPERATOR, _WHAT)
        asked = Webhook(
            name=name,
            url=url,
            events=tuple(events),
            type=type_,
            collection=collection,
            queue=queue,
            roots_only=roots_only,
            within=self.rights.within,
        )
        self._require_known({"type": type_, "collection": collection, "queue": queue})
        secret = new_secret()
        made = self.store.webhooks.add(asked, secret, self.actor(reason), now_us=self.clock())
        return WebhookWithSecret(webhook=made, secret=secret)

    def all(self) -> list[Webhook]:
        """Those in sight, by name."""
        self.require(Role.OPERATOR, _WHAT)
        return [webhook for webhook in self.store.webhooks.all(now_us=self.clock()) if self._sees(webhook)]

    def find(self, name: str) -> Webhook:
        """The one of that name."""
        seen = {webhook.name: webhook for webhook in self.all()}
        if name not in seen:
            raise NoSuch(
                f"there is no webhook {name!r:.80}{did_you_mean(name, seen)}; 'spinney webhook list' shows those there "
                f"are"
            )
        return seen[name]

    def change(self, name: str, change: Mapping[str, Any], *, reason: str | None = None) -> Webhook:
        """Set some of ``url, events, type, collection, queue, roots_only`` otherwise; raises what ``add`` raises."""
        self.find(name)
        meant = dict(change)
        if "events" in meant:
            meant["events"] = tuple(meant["events"] or ())
        self._require_known(meant)
        return self.store.webhooks.change(name, meant, self.actor(reason), now_us=self.clock())

    def rotate(self, name: str, *, reason: str | None = None) -> WebhookWithSecret:
        """Sign with a new secret from now on."""
        self.find(name)
        secret = new_secret()
        found = self.store.webhooks.rotate(name, secret, self.actor(reason), now_us=self.clock())
        return WebhookWithSecret(webhook=found, secret=secret)

    def pause(self, name: str, *, reason: str | None = None) -> Webhook:
        """Send it nothing until it is resumed; deliveries are kept for 30 days."""
        self.find(name)
        return self.store.webhooks.pause(name, self.actor(reason), paused=True, now_us=self.clock())

    def resume(self, name: str, *, reason: str | None = None) -> Webhook:
        """Send it what has waited, and go on."""
        self.find(name)
        return self.store.webhooks.pause(name, self.actor(reason), paused=False, now_us=self.clock())

    def remove(self, name: str, *, reason: str | None = None) -> None:
        """Tell it nothing any more; its deliveries go, too."""
        self.find(name)
        self.store.webhooks.remove(name, self.actor(reason), now_us=self.clock())

    def test(self, name: str) -> Delivery:
        """Send it a ``ping``, on the way that everything else goes."""
        self.find(name)
        return self.store.webhooks.ping(name, self.actor(), now_us=self.clock())

    def deliveries(
        self, name: str, *, limit: int = 100, after: int = 0, outcome: DeliveryOutcome | None = None
    ) -> Sequence[Delivery]:
        """What it was told, and is to be: newest first, from below the number (``seq``) ``after``."""
        self.find(name)
        return self.store.webhooks.deliveries(name, after=after, limit=limit, outcome=outcome)

    def delivery(self, delivery: str) -> Delivery:
        """The one with this id."""
        self.require(Role.OPERATOR, _WHAT)
        found = self.store.webhooks.delivery(delivery)
        if not self._sees(self.store.webhooks.of(found.webhook)):
            raise NoSuch(
                f"there is no delivery {delivery!r:.80}; 'spinney webhook deliveries NAME' shows those of 30 days"
            )
        return found

    def retry(self, delivery: str, *, reason: str | None = None) -> Delivery:
        """Send it at once, whatever came of it before, and again as long as any other."""
        self.delivery(delivery)
        return self.store.webhooks.retry(delivery, self.actor(reason), now_us=self.clock())

    def _sees(self, webhook: Webhook) -> bool:
        return _covers(self.rights.within, webhook.within)

    def _require_known(self, named: Mapping[str, Any]) -> None:
        """What is mistyped would never be told of; what is out of sight would not either."""
        collection, queue, type_ = (named.get(kind) for kind in ("collection", "queue", "type"))
        within = self.rights.within
        for kind, name, allowed in (
            ("collection", collection, within.collections),
            ("queue", queue, within.queues),
        ):
            if name is not None and allowed is not None and name not in allowed:
                raise Forbidden(
                    f"{self.by} is limited to {limits(self.rights)} and may not be told of {kind} {name!r:.80}; {ASK}"
                )
        if type_ is not None:
            known_type(self.store.types(), type_)
        if queue is not None:
            require_queue(self.store, queue, within=within)


def new_secret() -> str:
    """One that nobody guesses."""
    return f"whs_{secrets.token_urlsafe(SECRET_BYTES)}"


def _covers(mine: AccessScope, its: AccessScope) -> bool:
    """Whether all that it may tell of is in sight."""
    return all(
        allowed is None or (told is not None and set(told) <= set(allowed))
        for allowed, told in ((mine.collections, its.collections), (mine.queues, its.queues))
    )
