"""Webhooks, and the queue of their deliveries, which senders lease for a while.

Tables: ``webhooks`` (settings, secret, why it is paused) and ``webhook_events`` (a row for each delivery). A
row is due at ``next_us``, which is null once it is delivered or has failed.

A lease moves the next time of a delivery to its own end and counts a try. If the sender dies, the delivery is
due again at that time; a result that arrives later is ignored, since the number of the try has changed. So
any number of senders share the work, and a delivery that was sent, but not recorded, is sent again under the
same id.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spinney.features.webhooks import health_sql, maker_rights, webhook_rows
from spinney.model.errors import Refused, UsageError
from spinney.model.rights.actor import Actor
from spinney.model.settings.webhooks import (
    PING,
    SETTABLE,
    Delivery,
    DeliveryOutcome,
    DeliveryResult,
    DueDelivery,
    Webhook,
    WebhookHealth,
    no_such_delivery,
)
from spinney.model.values.texts import whole_number
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.records import RowMap, insert
from spinney.store.sql.registry.registry import read_webhook
from spinney.store.sql.session import SqlPart
from spinney.store.sql.transitions import trusted_clock

KEPT_US = 30 * 86_400 * 1_000_000
"""How long deliveries are kept, sent or not: 30 days."""
_BEYOND = 2**62
"""Greater than every number of a delivery."""
STEP = 500
"""How many deliveries one transaction removes, so that none is long."""
GONE = "its receiver answered 410: it wants no more of these"
"""Why a webhook is paused whose receiver answered 410, shown as the reason of the pause."""

_DELIVERIES = RowMap(
    Delivery,
    "webhook_events e join webhooks w on w.id = e.webhook_id",
    columns={"delivery": "w.mark || '-' || e.seq", "webhook": "w.name", "at_us": "e.at_us"},
)


class SqlWebhooks(SqlPart):
    """Webhooks and their deliveries.

    The transaction that settles a job writes the deliveries about it, so nothing is reported that did not
    happen, and nothing is forgotten. A job that settles again is reported again, as a delivery of its
    own. Without webhooks this costs nothing.

    A webhook has the rights that its maker (``Actor.account``) has at the time of a delivery; where the
    maker is no operator any more, it is paused. Methods raise NoSuch for an unknown webhook or delivery.
    Every change is audited in its own transaction, without the secret.
    """

    def expire(self, tx: Tx, now_us: int) -> bool:
        """Remove, in the caller's transaction, at most ``STEP`` of the oldest expired deliveries, and
        return whether there may be more."""
        before_us = _expired_before_us(tx, now_us)
        if before_us is None:
            return False
        tx.run(
            # Numbers grow with time, so the oldest rows are found by the primary key, without an index on the
            # time.
            "delete from webhook_events where seq in (select o.seq from (select seq, at_us from webhook_events "
            "order by seq limit ?) o where o.at_us < ?)",
            (STEP, before_us),
        )
        return bool(tx.changed() == STEP)

    # --- commands -------------------------------------------------------------------------

    def add(self, webhook: Webhook, secret: str, actor: Actor, *, now_us: int) -> Webhook:
        """Add a webhook: it is notified of what settles from now on. Raises Refused for a name that
        is taken."""
        webhook = replace(webhook, paused=None, by=actor.by, at_us=now_us)
        with self._session.write() as tx:
            if tx.exists("select 1 from webhooks where name = ?", (webhook.name,)):
                # The message does not name the maker, whom a caller with limits might not know.
                raise Refused(
                    f"there is a webhook {webhook.name!r} already; choose another name, or change that one"
                )
            values = {
                "id": tx.take("webhook"),
                "name": webhook.name,
                "spec": maker_rights.spec_text(webhook.to_json(), maker_rights.new_entry(tx, actor)),
                "secret": secret,
                # The first part of its deliveries' ids. It makes them unique beyond this store, where numbers
                # begin at 1 again.
                "mark": secrets.token_hex(8),
                "by": actor.by,
                "at_us": now_us,
            }
            insert(tx, "webhooks", values)
            self._session.registry.touch(tx)
            note(tx, now_us, actor, "webhook add", webhook_rows.audit_entry(webhook), 1)
        return webhook

    def all(self, *, now_us: int) -> Sequence[Webhook]:
        """Return the webhooks by name. One whose maker has lost the right to it is shown as paused,
        even if nothing has become due since then."""
        with self._session.look() as tx:
            return [
                replace(row.webhook, paused=row.webhook.paused or webhook_rows.fault(tx, row, now_us))
                for row in webhook_rows.rows(tx, "order by name")
            ]

    def get(self, name: str) -> Webhook:
        """Return the webhook of this name, paused or not. Raises NoSuch."""
        with self._session.look() as tx:
            return webhook_rows.find(tx, name).webhook

    def change(self, name: str, change: Mapping[str, Any], actor: Actor, *, now_us: int) -> Webhook:
        """Change these fields (``SETTABLE``), and return the webhook as it is then.

        Deliveries that wait go to its new URL. Whoever changes the URL becomes the maker; any other
        change leaves the maker. Raises UsageError, BadName and BadParameters.
        """
        unknown = [field for field in change if field not in SETTABLE]
        if unknown:
            raise UsageError(
                f"{unknown[0]!r:.80} of a webhook cannot be set; use some of {', '.join(SETTABLE)}"
            )
        with self._session.write() as tx:
            row = webhook_rows.find(tx, name)
            webhook = replace(row.webhook, **change)
            if webhook == row.webhook:
                return webhook
            if webhook.url == row.webhook.url:
                spec = maker_rights.spec_text(webhook.to_json(), maker_rights.entry_in(row.spec))
                tx.run("update webhooks set spec = ? where id = ?", (spec, row.id))
            else:  # the operator who decides on the receiver becomes the maker
                webhook = webhook_rows.hand_over(tx, row.id, webhook, actor)
            self._session.registry.touch(tx)
            note(tx, now_us, actor, "webhook set", webhook_rows.audit_entry(webhook), 1)
        return webhook

    def rotate(self, name: str, secret: str, actor: Actor, *, now_us: int) -> Webhook:
        """Sign with another secret from now on, also deliveries that wait, and return the webhook."""
        with self._session.write() as tx:
            row = webhook_rows.find(tx, name)
            tx.run("update webhooks set secret = ? where id = ?", (secret, row.id))
            note(tx, now_us, actor, "webhook rotate", {"webhook": name}, 1)
        return row.webhook

    def pause(self, name: str, actor: Actor, *, paused: bool, now_us: int) -> Webhook:
        """Pause or resume a webhook, and return it.

        Deliveries are kept meanwhile, as long as deliveries are kept; after the resume each has its
        whole time for tries again. The actor's reason is shown. Where the maker has lost the right to
        it, whoever resumes it becomes its maker. A webhook that is paused already keeps its first
        reason.
        """
        with self._session.write() as tx:
            row = webhook_rows.find(tx, name)
            webhook = row.webhook
            if not paused and webhook_rows.fault(tx, row, now_us) is not None:
                webhook = webhook_rows.hand_over(tx, row.id, webhook, actor)
            elif (webhook.paused is not None) == paused:
                return webhook
            webhook = replace(webhook, paused=(actor.reason or f"by {actor.by}") if paused else None)
            tx.run("update webhooks set paused = ? where id = ?", (webhook.paused, row.id))
            if not paused:
                # Deliveries that waited are tried for a full day again.
                tx.run("update webhooks set resumed_us = ? where id = ?", (now_us, row.id))
            note(tx, now_us, actor, "webhook pause" if paused else "webhook resume", {"webhook": name}, 1)
        return webhook

    def remove(self, name: str, actor: Actor, *, now_us: int) -> None:
        """Remove a webhook, after its deliveries, which go in bounded steps; a call that was cut off
        may be repeated."""
        while True:
            with self._session.write() as tx:
                webhook_id = webhook_rows.find(tx, name).id
                if tx.delete_some("webhook_events", "seq", "webhook_id = ?", (webhook_id,), STEP):
                    continue
                tx.run("delete from webhooks where id = ?", (webhook_id,))
                self._session.registry.touch(tx)
                note(tx, now_us, actor, "webhook remove", {"webhook": name}, 1)
                return

    def ping(self, name: str, actor: Actor, *, now_us: int) -> Delivery:
        """Create a test delivery, which is sent like any other, before those that wait, and return it."""
        with self._session.write() as tx:
            seq, webhook_id = tx.take("webhook_event"), webhook_rows.find(tx, name).id
            values = {
                "seq": seq,
                "webhook_id": webhook_id,
                "event": PING,
                "batch": 0,
                "at_us": now_us,
                "next_us": _first_us(tx, webhook_id, now_us),
                "outcome": DeliveryOutcome.DUE.value,
            }
            insert(tx, "webhook_events", values)
            note(tx, now_us, actor, "webhook test", {"webhook": name}, 1)
            return _delivery(tx, seq)

    # --- deliveries -----------------------------------------------------------------------

    def deliveries(
        self, name: str, *, after: int = 0, limit: int = 100, outcome: DeliveryOutcome | None = None
    ) -> Sequence[Delivery]:
        """Return deliveries of the last 30 days, newest first, from below the number ``after`` (0:
        from the newest)."""
        with self._session.look() as tx:
            only = None if outcome is None else str(outcome)
            return _DELIVERIES.all(
                tx,
                "where e.webhook_id = ? and e.seq < ? and (cast(? as text) is null or e.outcome = ?) "
                "order by e.seq desc limit ?",
                (webhook_rows.find(tx, name).id, after or _BEYOND, only, only, limit),
            )

    def health(self) -> Mapping[str, WebhookHealth]:
        """Return how the latest tries of each webhook went, by its name, without those that were never tried."""
        with self._session.look() as tx:
            return health_sql.of_each(tx)

    def delivery(self, delivery: str) -> Delivery:
        """Return the delivery with this id."""
        with self._session.look() as tx:
            return _find_delivery(tx, delivery)

    def retry(self, delivery: str, actor: Actor, *, now_us: int) -> Delivery:
        """Send a delivery at once, before those that wait and whatever its outcome was, and return it; it has its
        whole time for tries again.

        The result of a try that is on its way is ignored: it would put off, or end, what the operator
        wants.
        """
        with self._session.write() as tx:
            before = _find_delivery(tx, delivery)
            webhook_id = tx.value("select webhook_id from webhook_events where seq = ?", (before.seq,))
            tx.run(
                "update webhook_events set outcome = ?, next_us = ?, first_us = null where seq = ?",
                (DeliveryOutcome.DUE.value, _first_us(tx, webhook_id, now_us), before.seq),
            )
            details = {"webhook": before.webhook, "delivery": delivery, "job": before.job_id}
            note(tx, now_us, actor, "webhook retry", details, 1)
            return _delivery(tx, before.seq)

    # --- for senders ----------------------------------------------------------------------

    def first_due_us(self) -> Mapping[str, int]:
        """Return when the next delivery of each webhook is due, by name, for those that have one and
        are not paused. A webhook that cannot be read counts as paused, as for ``lease``.

        A leased delivery counts as due at the end of its lease. Each webhook takes one seek into the
        index of due deliveries.
        """
        with self._session.look() as tx:
            if not self._session.registry.subscriptions:
                return {}
            rows = tx.all(
                "select w.name, w.spec, (select min(e.next_us) from webhook_events e where e.webhook_id = w.id "
                "and e.next_us is not null) from webhooks w where w.paused is null"
            )
        return {
            name: next_us
            for name, spec, next_us in rows
            if next_us is not None and read_webhook(name, spec).paused is None
        }

    def lease(self, counts: Mapping[str, int], *, now_us: int, until_us: int) -> Sequence[DueDelivery]:
        """Take at most this many due deliveries of each of these webhooks, those due longest first.

        They are due again at ``until_us`` unless ``record_result`` is called with their result. Each
        counts as a try. Fewer are returned where others have taken them, and none of a webhook that
        is paused by now. A webhook whose maker has lost the right to it is paused instead, with that
        as the reason.
        """
        leased: list[DueDelivery] = []
        # Durable: a power failure must not undo the lease of a delivery that is sent, and give its number to another.
        with self._session.write() as tx:
            for name, most in counts.items():
                leased += self._lease(tx, name, most, now_us, until_us)
        return leased

    def _lease(self, tx: Tx, name: str, most: int, now_us: int, until_us: int) -> list[DueDelivery]:
        """Lease due deliveries of one webhook with the current rights of its maker. Where the maker is no operator any
        more, pause it instead."""
        row = next(webhook_rows.rows(tx, "where name = ? and paused is null", (name,)), None)
        if row is None or row.webhook.paused is not None:  # a webhook that cannot be read counts as paused
            return []
        webhook = row.webhook
        rights = maker_rights.operator_rights(tx, row.spec, webhook.by, webhook_rows.ACTION, now_us)
        if isinstance(rights, str):
            webhook_rows.pause(tx, name, rights, now_us)
            return []
        secret, resumed_us = tx.one("select secret, resumed_us from webhooks where id = ?", (row.id,))
        within = webhook.within.narrowed(rights.within)
        first_us = _mark_leased(tx, row.id, most, now_us, until_us)
        deliveries = _DELIVERIES.all(
            tx, "where e.seq in (select j.value from json_each(?) j) order by e.seq", (list_text(first_us),)
        )
        return [
            DueDelivery(
                delivery=delivery,
                url=webhook.url,
                secret=secret,
                by=webhook.by,
                within=within,
                narrowed=within != webhook.within,
                since_us=max(first_us[delivery.seq], resumed_us or 0),
            )
            for delivery in deliveries
        ]

    def remove_expired(self, *, now_us: int) -> bool:
        """Remove a bounded number of deliveries older than 30 days, and return whether there may be
        more.

        ``Store.sweep`` does so, too. Whether there is any is read first, so that an idle store is not
        written to.
        """
        with self._session.look() as tx:
            if _expired_before_us(tx, now_us) is None:
                return False
        with self._session.write() as tx:
            return self.expire(tx, now_us)

    def record_result(self, due: DueDelivery, result: DeliveryResult, *, now_us: int) -> None:
        """Store the result of a delivery, and pause the webhook if its receiver has gone.

        Ignored where another process has taken the delivery since, an operator has retried it, or it
        is removed. Where it failed at a URL that the webhook does not have any more, it goes to the
        new one at once.
        """
        seq, tries = due.delivery.seq, due.delivery.tries
        with self._session.write() as tx:
            if result.outcome is DeliveryOutcome.FAILED and result.sent and webhook_rows.has_moved(tx, due):
                result = replace(result, outcome=DeliveryOutcome.DUE, next_us=now_us, gone=False)
            # A lease sets first_us, and a retry by an operator clears it.
            tx.run(
                "update webhook_events set outcome = ?, next_us = ?, status = ?, answer = ? "
                "where seq = ? and tries = ? and first_us is not null and next_us is not null",
                (str(result.outcome), result.next_us, result.status, result.answer, seq, tries),
            )
            if tx.changed() and result.gone:
                webhook_rows.pause(tx, due.delivery.webhook, GONE, now_us)


def _expired_before_us(tx: Tx, now_us: int) -> int | None:
    """Return the time before which deliveries are expired; None: the oldest is not. The trusted time is read only for
    one that is old by the caller's clock."""
    oldest_us = tx.value("select at_us from webhook_events order by seq limit 1")
    if oldest_us is None or oldest_us >= now_us - KEPT_US:
        return None
    before_us = trusted_clock.past_us(tx, now_us) - KEPT_US
    return before_us if oldest_us < before_us else None


def _first_us(tx: Tx, webhook_id: int, now_us: int) -> int:
    """Return the time at which a delivery has to be due to be the next of its webhook: now, or before those that have
    been due for longer. There may be thousands, of which a receiver that is away is sent one every few seconds."""
    due_us = tx.value(
        "select min(next_us) from webhook_events where webhook_id = ? and next_us is not null", (webhook_id,)
    )
    return now_us if due_us is None or due_us > now_us else int(due_us) - 1


def _mark_leased(tx: Tx, webhook_id: int, most: int, now_us: int, until_us: int) -> Mapping[int, int]:
    """Lease due deliveries, and return the time of the first try of each, by its number.

    ``first_us`` is set by the first lease of a series and cleared by a retry, so a series lasts
    ``GIVE_UP_S`` from there.
    """
    return dict(
        tx.all(
            "update webhook_events set next_us = ?, tries = tries + 1, tried_us = ?, "
            "first_us = coalesce(first_us, ?) where seq in (select seq from webhook_events where webhook_id = ? "
            "and next_us is not null and next_us <= ? order by next_us, seq limit ?) returning seq, first_us",
            (until_us, now_us, now_us, webhook_id, now_us, most),
        )
    )


def _find_delivery(tx: Tx, delivery: str) -> Delivery:
    """Return a delivery by its id. Raises NoSuch, also where only the number is right: the mark cannot be
    guessed."""
    mark, _, seq = delivery.rpartition("-")
    existing = _DELIVERIES.one(tx, "where e.seq = ? and w.mark = ?", (whole_number(seq), mark))
    if existing is None:
        raise no_such_delivery(delivery)
    return existing


def _delivery(tx: Tx, seq: int) -> Delivery:
    (delivery,) = _DELIVERIES.all(tx, "where e.seq = ?", (seq,))
    return delivery
