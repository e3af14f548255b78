"""Webhooks as rows of the store: read and checked for the rights of their maker, handed over, paused."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from spinney.features.webhooks import maker_rights
from spinney.model.rights.actor import Actor
from spinney.model.settings.webhooks import (
    DueDelivery,
    Webhook,
    shown,
)
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.records import unknown_name
from spinney.store.sql.registry.registry import read_webhook

ACTION = "keep webhooks"
"""What a maker without the role may not do, for the message."""


class WebhookRow(NamedTuple):
    """A row of the table ``webhooks``, with its columns as they are stored and as a ``Webhook``."""

    id: int
    spec: str
    """The settings, and the maker (``maker_rights``), as JSON."""
    webhook: Webhook


def without_rights(tx: Tx, now_us: int) -> Iterator[tuple[str, str]]:
    """Yield the names of webhooks whose makers have lost the right to them, each with the reason."""
    for row in rows(tx, "order by name"):
        reason = fault(tx, row, now_us)
        if reason is not None:
            yield row.webhook.name, reason


def pause(tx: Tx, name: str, reason: str, now_us: int) -> None:
    """Pause a webhook in the name of the engine, since nobody has asked for it."""
    tx.run("update webhooks set paused = ? where name = ? and paused is null", (reason, name))
    if tx.changed():
        actor = Actor(by="spinney", reason=reason)
        note(tx, now_us, actor, "webhook pause", {"webhook": name}, 1)


def has_moved(tx: Tx, due: DueDelivery) -> bool:
    """Return whether the webhook has another URL than that to which a delivery was sent."""
    row = next(rows(tx, "where name = ?", (due.delivery.webhook,)), None)
    return row is not None and row.webhook.url != due.url


def fault(tx: Tx, row: WebhookRow, now_us: int) -> str | None:
    """Return why the maker has lost the right to a webhook; None while the maker has it."""
    rights = maker_rights.operator_rights(tx, row.spec, row.webhook.by, ACTION, now_us)
    return rights if isinstance(rights, str) else None


def hand_over(tx: Tx, webhook_id: int, webhook: Webhook, actor: Actor) -> Webhook:
    """Store a webhook with this actor as its maker, with whose rights it acts from now on."""
    spec = maker_rights.spec_text(webhook.to_json(), maker_rights.new_entry(tx, actor))
    tx.run("update webhooks set spec = ?, by = ? where id = ?", (spec, actor.by, webhook_id))
    return replace(webhook, by=actor.by)


def rows(tx: Tx, rest: str, args: Sequence[Any] = ()) -> Iterator[WebhookRow]:
    """Yield webhooks, read from their rows. One that cannot be read is yielded as paused, with that as
    the reason."""
    for id_, name, spec, paused, by, at_us in tx.all(
        f"select id, name, spec, paused, by, at_us from webhooks {rest}", args
    ):
        webhook = read_webhook(name, spec)
        yield WebhookRow(id_, spec, replace(webhook, paused=paused or webhook.paused, by=by, at_us=at_us))


def find(tx: Tx, name: str) -> WebhookRow:
    """Return a webhook by name. Raises NoSuch, with names that are similar."""
    for row in rows(tx, "where name = ?", (name,)):
        return row
    raise unknown_name(tx, "webhooks", "webhook", name)


def audit_entry(webhook: Webhook) -> Mapping[str, Any]:
    """Return the settings for the audit, without the query of the URL, which may be a secret."""
    settings = webhook.to_json()
    settings = {key: settings[key] for key in settings if settings[key] is not None and key != "within"}
    return {"webhook": webhook.name, **settings, "url": shown(webhook.url)}
