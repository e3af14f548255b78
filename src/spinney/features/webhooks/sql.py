"""Webhooks, and their deliveries: what is due is taken by whoever sends, for a while, and what came of it is recorded.

Who takes a delivery moves its next time on and counts a try. Should he die, it is due again by then; what he reports
after that counts no more, for the number of the try is another. So any number of senders share the work, and what was
sent without being recorded is sent again under the same id.
"""

import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from spinney.features.webhooks import maker_rights
from spinney.model.errors import Forbidden, NoSuch, Refused, UsageError
from spinney.model.rights.operators import Actor
from spinney.model.settings.webhooks import (
    PING,
    SETTABLE,
    Delivery,
    DeliveryOutcome,
    DeliveryResult,
    DueDelivery,
    Webhook,
    shown,
)
from spinney.model.values.hints import did_you_mean
from spinney.store.sql.audit import note
from spinney.store.sql.connection.database import Tx
from spinney.store.sql.registry.registry import read_webhook
from spinney.store.sql.session import Session

KEPT_US = 30 * 86_400 * 1_000_000
"""So long deliveries are kept, sent or not."""
_BEYOND = 2**62
"""Above every number."""
STEP = 500
"""Deliveries that one transaction removes."""
_WHAT = "keep webhooks"
GONE = "its receiver answered 410: it wants no more of these"

_WEBHOOK = "name, spec, paused, by, at_us"
_DELIVERY = (
    "e.seq, e.event, e.batch, e.job_id, e.at_us, e.outcome, e.tries, e.next_us, e.tried_us, e.status, e.answer, "
    "w.mark, w.name"
)
_JOINED = "webhook_events e join webhooks w on w.id = e.webhook_id"


class SqlWebhooks:
    """Webhooks and their deliveries.

    The transaction that settles a job writes the deliveries about it, so nothing is reported that did not happen, and
    nothing is forgotten. A job that settles again is reported again, as a delivery of its own. Without webhooks this
    costs nothing. A webhook has the rights that its maker (``Actor.account``) has at the time of a delivery; where the
    maker is no operator any more, it is paused. Methods raise NoSuch for an unknown webhook or delivery.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def expire(self, tx: Tx, now_us: int) -> bool:
        """Remove, in the caller's transaction, a bounded number of the oldest expired deliveries, and return whether
        there may be more."""
        if not _is_over(tx, now_us):
            return False
        tx.run(
            "delete from webhook_events where seq in (select o.seq from (select seq, at_us from webhook_events "
            "order by seq limit ?) o where o.at_us < ?)",
            (STEP, now_us - KEPT_US),
        )
        return bool(tx.changed() == STEP)

    # --- what people decide ---------------------------------------------------------------

    def add(self, webhook: Webhook, secret: str, actor: Actor, *, now_us: int) -> Webhook:
        """Add a webhook: it is notified from now on. Raises Refused for a name that is taken."""
        made = replace(webhook, paused=None, by=actor.by, at_us=now_us)
        with self._session.write() as tx:
            if tx.value("select 1 from webhooks where name = ?", (made.name,)):
                # Not whose: somebody whose sight is limited might not know him.
                raise Refused(
                    f"there is a webhook {made.name!r} already; choose another name, or set that one otherwise"
                )
            tx.run(
                "insert into webhooks (id, name, spec, secret, mark, by, at_us) values (?, ?, ?, ?, ?, ?, ?)",
                (
                    tx.take("webhook"),
                    made.name,
                    _spec(made, maker_rights.new_entry(tx, actor)),
                    secret,
                    secrets.token_hex(8),
                    made.by,
                    made.at_us,
                ),
            )
            self._session.registry.touch(tx)
            note(tx, now_us, actor, "webhook add", _told_of(made), 1)
        return made

    def all(self, *, now_us: int) -> Sequence[Webhook]:
        """Return the webhooks by name. One whose maker has lost the right to it is shown as paused, even if nothing was
        due since."""
        with self._session.look() as tx:
            return list(all_webhooks(tx, now_us))

    def get(self, name: str) -> Webhook:
        """Return one webhook."""
        with self._session.look() as tx:
            return _find(tx, name)[1]

    def change(self, name: str, change: Mapping[str, Any], actor: Actor, *, now_us: int) -> Webhook:
        """Change these fields (``SETTABLE``), and return the webhook as it is then. Earlier deliveries go to its new
        URL. Raises UsageError, BadName and BadParameters."""
        unknown = [field for field in change if field not in SETTABLE]
        if unknown:
            raise UsageError(
                f"{unknown[0]!r:.80} of a webhook cannot be set; use some of {', '.join(SETTABLE)}"
            )
        with self._session.write() as tx:
            id_, before = _find(tx, name)
            made = replace(before, **change)
            if made == before:
                return before
            if made.url == before.url:
                maker = maker_rights.entry_in(_spec_text(tx, id_))
                tx.run("update webhooks set spec = ? where id = ?", (_spec(made, maker), id_))
            else:  # whoever says where it is sent answers for that, with the own rights
                made = _hand_over(tx, id_, made, actor)
            self._session.registry.touch(tx)
            note(tx, now_us, actor, "webhook set", _told_of(made), 1)
        return made

    def rotate(self, name: str, secret: str, actor: Actor, *, now_us: int) -> Webhook:
        """Sign with another secret from now on."""
        with self._session.write() as tx:
            id_, found = _find(tx, name)
            tx.run("update webhooks set secret = ? where id = ?", (secret, id_))
            note(tx, now_us, actor, "webhook rotate", {"webhook": name}, 1)
        return found

    def pause(self, name: str, actor: Actor, *, paused: bool, now_us: int) -> Webhook:
        """Pause or resume a webhook. Deliveries are kept meanwhile, as long as deliveries are kept; after the resume
        each has its whole time for tries again. The actor's reason is shown. Where the maker has lost the right to it,
        whoever resumes it becomes its maker."""
        with self._session.write() as tx:
            id_, found = _find(tx, name)
            handed_over = not paused and _fault(tx, found, _spec_text(tx, id_), now_us) is not None
            if handed_over:
                found = _hand_over(tx, id_, found, actor)
            elif (found.paused is not None) == paused:
                return found
            made = replace(found, paused=(actor.reason or f"by {actor.by}") if paused else None)
            tx.run("update webhooks set paused = ? where id = ?", (made.paused, id_))
            if not paused:
                # Whatever waited has a whole term again.
                tx.run("update webhooks set resumed_us = ? where id = ?", (now_us, id_))
            note(tx, now_us, actor, "webhook pause" if paused else "webhook resume", {"webhook": name}, 1)
        return made

    def remove(self, name: str, actor: Actor, *, now_us: int) -> None:
        """Remove a webhook, and its deliveries in bounded steps."""
        while True:
            with self._session.write() as tx:
                id_, _ = _find(tx, name)
                tx.run(
                    "delete from webhook_events where seq in "
                    "(select seq from webhook_events where webhook_id = ? order by seq limit ?)",
                    (id_, STEP),
                )
                if tx.changed() == STEP:
                    continue
                tx.run("delete from webhooks where id = ?", (id_,))
                self._session.registry.touch(tx)
                note(tx, now_us, actor, "webhook remove", {"webhook": name}, 1)
                return

    def ping(self, name: str, actor: Actor, *, now_us: int) -> Delivery:
        """Create a test delivery, which is sent like any other."""
        with self._session.write() as tx:
            id_, _ = _find(tx, name)
            seq = tx.take("webhook_event")
            tx.run(
                "insert into webhook_events (seq, webhook_id, job_id, event, batch, at_us, next_us, outcome) "
                "values (?, ?, ?, ?, ?, ?, ?, ?)",
                (seq, id_, None, PING, 0, now_us, now_us, DeliveryOutcome.DUE.value),
            )
            note(tx, now_us, actor, "webhook test", {"webhook": name}, 1)
            return _one(tx, seq)

    # --- deliveries -----------------------------------------------------------------------

    def deliveries(
        self, name: str, *, after: int = 0, limit: int = 100, outcome: DeliveryOutcome | None = None
    ) -> Sequence[Delivery]:
        """Return deliveries of the last 30 days, newest first, from below the number ``after`` (0: from the last)."""
        with self._session.look() as tx:
            id_, _ = _find(tx, name)
            such = None if outcome is None else str(outcome)
            found = tx.all(
                f"select {_DELIVERY} from {_JOINED} where e.webhook_id = ? and e.seq < ? "
                "and (cast(? as text) is null or e.outcome = ?) order by e.seq desc limit ?",
                (id_, after or _BEYOND, such, such, limit),
            )
        return [_delivery(row) for row in found]

    def delivery(self, delivery: str) -> Delivery:
        """Return the delivery with this id."""
        with self._session.look() as tx:
            return _find_delivery(tx, delivery)

    def retry(self, delivery: str, actor: Actor, *, now_us: int) -> Delivery:
        """Send a delivery at once, whatever its outcome was; it has its whole time for tries again."""
        with self._session.write() as tx:
            found = _find_delivery(tx, delivery)
            tx.run(
                "update webhook_events set outcome = ?, next_us = ?, first_us = null where seq = ?",
                (DeliveryOutcome.DUE.value, now_us, found.seq),
            )
            what = {"webhook": found.webhook, "delivery": delivery, "job": found.job_id}
            note(tx, now_us, actor, "webhook retry", what, 1)
            return _one(tx, found.seq)

    # --- for who sends --------------------------------------------------------------------

    def first_due_us(self) -> Mapping[str, int]:
        """Return when the next delivery of each webhook is due, for those that have one and are not paused."""
        with self._session.look() as tx:
            if not self._session.registry.subscriptions:
                return {}
            found = tx.all(
                "select w.name, (select min(e.next_us) from webhook_events e where e.webhook_id = w.id "
                "and e.next_us is not null) from webhooks w where w.paused is null"
            )
        return {name: next_us for name, next_us in found if next_us is not None}

    def lease(self, wanted: Mapping[str, int], *, now_us: int, until_us: int) -> Sequence[DueDelivery]:
        """Take at most this many due deliveries of each of these webhooks. They are due again at ``until_us`` unless
        ``told`` was called with their result. Each counts as a try. A webhook whose maker has lost the right to it is
        paused instead, with that as the reason."""
        taken: list[DueDelivery] = []
        # Durable: what is told must not be undone by a loss of power, and its number given to something else.
        with self._session.write() as tx:
            for name, most in wanted.items():
                row = tx.one(
                    f"select id, secret, resumed_us, {_WEBHOOK} from webhooks where name = ? and paused is null",
                    (name,),
                )
                if row is not None:
                    taken += self._lease(tx, row, most, now_us, until_us)
        return taken

    def _lease(self, tx: Tx, row: Sequence[Any], most: int, now_us: int, until_us: int) -> list[DueDelivery]:
        id_, secret, resumed_us, *rest = row
        webhook = _webhook(rest)
        if webhook.paused is not None:  # it cannot be read
            return []
        try:
            rights = maker_rights.require_operator(tx, rest[1], webhook.by, _WHAT, now_us)
        except Forbidden as error:
            _pause(tx, webhook.name, str(error), now_us)
            return []
        within = webhook.within.narrowed(rights.within)
        return [
            DueDelivery(
                delivery=_one(tx, seq),
                url=webhook.url,
                secret=secret,
                by=webhook.by,
                within=within,
                narrowed=within != webhook.within,
                since_us=max(first_us, resumed_us or 0),
            )
            for seq, first_us in _mark_leased(tx, id_, most, now_us, until_us)
        ]

    def remove_expired(self, *, now_us: int) -> bool:
        """Remove a bounded number of deliveries older than 30 days, and return whether there may be more.
        ``Store.sweep`` does so, too."""
        with self._session.look() as tx:
            if not _is_over(tx, now_us):
                return False
        with self._session.write() as tx:
            return self.expire(tx, now_us)

    def record_result(self, due: DueDelivery, told: DeliveryResult, *, now_us: int) -> None:
        """Store the result of a delivery. Ignored where another process has taken it since, or it is removed."""
        seq, tries = due.delivery.seq, due.delivery.tries
        with self._session.write() as tx:
            tx.run(
                "update webhook_events set outcome = ?, next_us = ?, status = ?, answer = ? "
                "where seq = ? and tries = ? and next_us is not null",
                (str(told.outcome), told.next_us, told.status, told.answer, seq, tries),
            )
            if not told.gone or not tx.changed():
                return
            _pause(tx, due.delivery.webhook, GONE, now_us)


def all_webhooks(tx: Tx, now_us: int) -> Iterator[Webhook]:
    """All webhooks, by name. One whose maker may not have it any more is shown as paused before it next has something
    to tell, which is when it is paused indeed."""
    for row in tx.all(f"select {_WEBHOOK} from webhooks order by name"):
        webhook = _webhook(row)
        yield replace(webhook, paused=webhook.paused or _fault(tx, webhook, row[1], now_us))


def without_rights(tx: Tx, now_us: int) -> Iterator[tuple[str, str]]:
    """Webhooks whose makers may not have them any more, each with the reason."""
    for row in tx.all(f"select {_WEBHOOK} from webhooks order by name"):
        fault = _fault(tx, _webhook(row), row[1], now_us)
        if fault is not None:
            yield row[0], fault


def _is_over(tx: Tx, now_us: int) -> bool:
    oldest = tx.value("select at_us from webhook_events order by seq limit 1")
    return oldest is not None and oldest < now_us - KEPT_US


# --- rows -------------------------------------------------------------------------------------


def _mark_leased(tx: Tx, id_: int, most: int, now_us: int, until_us: int) -> Sequence[Any]:
    """Number and time of the first try of each delivery that is the caller's from now on."""
    return sorted(
        tx.all(
            "update webhook_events set next_us = ?, tries = tries + 1, tried_us = ?, "
            "first_us = coalesce(first_us, ?) where seq in (select seq from webhook_events where webhook_id = ? "
            "and next_us is not null and next_us <= ? order by next_us, seq limit ?) returning seq, first_us",
            (until_us, now_us, now_us, id_, now_us, most),
        )
    )


def _pause(tx: Tx, name: str, why: str, now_us: int) -> None:
    """Nobody asked for it, so it is the engine's own deed in the audit."""
    tx.run("update webhooks set paused = ? where name = ? and paused is null", (why, name))
    if tx.changed():
        actor = Actor(by="spinney", call=uuid.uuid4().hex, reason=why)
        note(tx, now_us, actor, "webhook pause", {"webhook": name}, 1)


def _fault(tx: Tx, webhook: Webhook, spec: str, now_us: int) -> str | None:
    """Why its maker may not have it any more; None: he may."""
    try:
        maker_rights.require_operator(tx, spec, webhook.by, _WHAT, now_us)
    except Forbidden as error:
        return str(error)
    return None


def _hand_over(tx: Tx, id_: int, webhook: Webhook, actor: Actor) -> Webhook:
    """Whoever resumes a webhook whose maker may not have it any more, or says where it is sent, answers for it from now
    on."""
    spec = _spec(webhook, maker_rights.new_entry(tx, actor))
    tx.run("update webhooks set spec = ?, by = ? where id = ?", (spec, actor.by, id_))
    return replace(webhook, by=actor.by)


def _spec_text(tx: Tx, id_: int) -> str:
    return str(tx.value("select spec from webhooks where id = ?", (id_,)))


def _find(tx: Tx, name: str) -> tuple[int, Webhook]:
    row = tx.one(f"select id, {_WEBHOOK} from webhooks where name = ?", (name,))
    if row is None:
        known = [known for (known,) in tx.all("select name from webhooks order by name")]
        raise NoSuch(
            f"there is no webhook {name!r:.80}{did_you_mean(name, known)}; 'spinney webhook list' shows those there are"
        )
    return row[0], _webhook(row[1:])


def _find_delivery(tx: Tx, delivery: str) -> Delivery:
    mark, _, seq = delivery.rpartition("-")
    row = None
    if seq.isascii() and seq.isdigit() and len(seq) <= 18:
        row = tx.one(f"select {_DELIVERY} from {_JOINED} where e.seq = ? and w.mark = ?", (int(seq), mark))
    if row is None:
        raise NoSuch(
            f"there is no delivery {delivery!r:.80}; 'spinney webhook deliveries NAME' shows those of 30 days"
        )
    return _delivery(row)


def _one(tx: Tx, seq: int) -> Delivery:
    return _delivery(tx.one(f"select {_DELIVERY} from {_JOINED} where e.seq = ?", (seq,)))


def _delivery(row: Sequence[Any]) -> Delivery:
    seq, event, batch, job_id, at_us, outcome, tries, next_us, tried_us, status, answer, mark, name = row
    return Delivery(
        delivery=f"{mark}-{seq}",
        seq=seq,
        webhook=name,
        event=event,
        batch=bool(batch),
        job_id=job_id,
        at_us=at_us,
        outcome=DeliveryOutcome(outcome),
        tries=tries,
        next_us=next_us,
        tried_us=tried_us,
        status=status,
        answer=answer,
    )


def _webhook(row: Sequence[Any]) -> Webhook:
    name, spec, paused, by, at_us = row
    read = read_webhook(name, spec)
    return replace(read, paused=paused or read.paused, by=by, at_us=at_us)


def _spec(webhook: Webhook, maker: Mapping[str, Any]) -> str:
    return orjson.dumps({**webhook.to_json(), **maker}).decode()


def _told_of(webhook: Webhook) -> Mapping[str, Any]:
    """For the audit: without what may be a token in the URL."""
    said = {key: value for key, value in webhook.to_json().items() if value is not None and key != "within"}
    return {"webhook": webhook.name, **said, "url": shown(webhook.url)}
