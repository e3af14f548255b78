"""One delivery: what it says, and what becomes of it."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import job_verbs
from contract.words import USUAL, Clock, Site, kind
from new_store import new_store
from spinney.features.webhooks import delivery as webhook_delivery
from spinney.model.access import AccessScope
from spinney.model.rights.actor import Actor
from spinney.model.settings.webhooks import DeliveryOutcome, DeliveryResult, DueDelivery, Webhook
from spinney.model.types import TypeSpec
from spinney.reports import BadSignature, verify
from spinney.reports.safe_transport import SafeTransport
from spinney.store.sql import open_store

from .hook_server import Receiver, answer, cut, receiver

ANN = Actor(by="ann", call="c", reason=None)
SAFE = TypeSpec(
    name="safe",
    stages=kind("x", "open").stages,
    schema={
        "type": "object",
        "properties": {"pin": {"type": "string", "writeOnly": True}, "n": {"type": "integer"}},
    },
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with closing(open_store(new_store(tmp_path / "jobs.db"))) as store:
        made = Site(store, Clock())
        made.knows(*USUAL, SAFE)
        yield made


def watch(site: Site, url: str = "http://example.org/", **more: Any) -> None:
    site.store.webhooks.add(Webhook(**{"name": "w", "url": url} | more), "the secret", ANN, now_us=site.now)


def take(site: Site) -> DueDelivery:
    (due,) = site.store.webhooks.lease(
        {"w": 1}, now_us=site.now, until_us=site.now + webhook_delivery.DELIVERY_LEASE_US
    )
    return due


def deliver(site: Site, private: bool = True) -> DeliveryResult:
    return webhook_delivery.deliver(
        site.store,
        take(site),
        clock=lambda: site.now,
        transport=lambda: SafeTransport(private=private, advice="open it"),
    )


def delivery_body(site: Site) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        json.dumps(webhook_delivery.body(site.store, take(site), lambda: site.now), default=str)
    )
    return document


# --- what it says -----------------------------------------------------------------------------


def test_it_says_what_happened_and_shows_the_job(site: Site) -> None:
    watch(site)
    job = site.submit_one("one", {"n": 1}, collection="maps")
    site.drain()

    sentence = delivery_body(site)

    assert (
        sentence["event"],
        sentence["seq"],
        sentence["at_us"],
        sentence["webhook"],
        sentence["batch"],
    ) == (
        "completed",
        1,
        site.now,
        "w",
        False,
    )
    shown = {key: sentence["job"][key] for key in ("id", "type", "state", "params", "collection")}
    assert shown == {"id": job, "type": "one", "state": "completed", "params": {"n": 1}, "collection": "maps"}
    assert "counts" not in sentence


def test_a_batch_is_told_with_what_became_of_its_members(site: Site) -> None:
    watch(site)
    batch, children = site.family("batch", n=3)
    site.drain(failing=children[:1])

    sentence = delivery_body(site)

    assert (sentence["job"]["id"], sentence["batch"], sentence["event"]) == (batch, True, "failed")
    assert sentence["counts"] == {"completed": 2, "failed": 1}


def test_members_that_its_maker_may_not_see_are_not_counted(site: Site) -> None:
    watch(site, within=AccessScope(collections=("maps",)))
    batch = site.submit_one("batch", collection="maps")
    lease = site.run(batch)
    site.spawn(lease, "one", n=2)
    site.spawn(lease, "one", n=1, collection="coins")
    site.pass_(lease)
    site.drain()
    assert delivery_body(site)["counts"] == {"completed": 2}


def test_secrets_are_masked(site: Site) -> None:
    watch(site)
    site.submit_one("safe", {"pin": "open sesame", "n": 7})
    site.drain()
    sentence = delivery_body(site)
    assert sentence["job"]["params"]["n"] == 7
    assert "sesame" not in json.dumps(sentence)


def test_a_job_that_went_out_of_sight_is_not_told_of_and_the_delivery_says_why(site: Site) -> None:
    watch(site, within=AccessScope(queues=("q",)), roots_only=False)
    job = site.submit_one(queue="q")
    site.drain(failing=[job])
    site.retry(job)
    site.store.bulk.apply(order_to("elsewhere"), [job], ANN, now_us=site.now)

    sent = deliver(site)

    assert sent.outcome is DeliveryOutcome.FAILED
    assert f"ann, who made this webhook, may not see job {job}" in str(sent.answer)
    (delivery,) = site.store.webhooks.deliveries("w")
    assert (delivery.outcome, delivery.answer, delivery.next_us) == (
        DeliveryOutcome.FAILED,
        sent.answer,
        None,
    )


def test_of_a_job_that_is_no_more_only_its_number_is_told(site: Site) -> None:
    watch(site)
    job = site.submit_one()
    site.drain()
    job_verbs.delete(site.store, job, by="ann", now_us=site.now)
    site.store.retention.set("one", "deleted", 0.0, ANN, now_us=site.now)
    site.later(60)
    after: int | None = 0
    while after is not None:
        _, after = site.store.retention.sweep(after, ANN, now_us=site.now)

    assert delivery_body(site)["job"] == {"id": job}


def test_long_parameters_are_left_out(site: Site) -> None:
    watch(site)
    site.submit_one("one", {"text": "x" * webhook_delivery.PARAMS_MAX_BYTES})
    site.drain()
    assert delivery_body(site)["job"]["params"] is None


def test_a_ping_is_about_no_job(site: Site) -> None:
    watch(site)
    site.store.webhooks.ping("w", ANN, now_us=site.now)
    sentence = delivery_body(site)
    assert (sentence["event"], sentence["job"]) == ("ping", None)


def order_to(queue: str) -> Any:
    from spinney.model.operators.bulk_orders import Order, Verb

    return Order(verb=Verb.MOVE, queue=queue)


# --- what becomes of it -----------------------------------------------------------------------


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture
def waiting(site: Site, hook: Receiver) -> Site:
    """A ping waits for the hook."""
    watch(site, hook.url)
    site.store.webhooks.ping("w", ANN, now_us=site.now)
    return site


def test_it_is_signed_and_bears_its_id(waiting: Site, hook: Receiver) -> None:
    assert deliver(waiting).outcome is DeliveryOutcome.DELIVERED
    (call,) = hook.calls
    verify("the secret", call.headers, call.body, waiting.now / 1e6)
    with pytest.raises(BadSignature):
        verify("another", call.headers, call.body, waiting.now / 1e6)
    (shown,) = waiting.store.webhooks.deliveries("w")
    assert call.headers["Spinney-Delivery"] == shown.delivery == json.loads(call.body)["delivery"]
    assert (shown.outcome, shown.status, shown.next_us) == (DeliveryOutcome.DELIVERED, 204, None)


def test_it_is_tried_again_under_the_same_id_until_it_is_taken(waiting: Site, hook: Receiver) -> None:
    hook.answers[:] = [
        answer(500, b"oh dear"),
        cut,
        answer(302, Location="http://x/"),
        answer(200, b"thanks"),
    ]
    answers, pauses = [], []
    while (delivery := deliver(waiting)).outcome is DeliveryOutcome.DUE:
        answers.append((delivery.status, delivery.answer))
        pauses.append((delivery.next_us or 0) - waiting.now)
        waiting.clock.forward(pauses[-1] / 1e6)

    assert answers[0] == (500, "oh dear")
    assert answers[1][0] is None
    assert (answers[2][0], "redirects are not followed" in str(answers[2][1])) == (302, True)
    assert (delivery.status, delivery.answer) == (200, "thanks")
    assert len({call.headers["Spinney-Delivery"] for call in hook.calls}) == 1
    assert all(7.5e6 <= pause <= 10e6 for pause in pauses)


def test_it_is_tried_for_a_day_ever_more_seldom(waiting: Site, hook: Receiver) -> None:
    hook.answers[:] = [answer(503)]
    began, pauses = waiting.now, []
    while (delivery := deliver(waiting)).outcome is DeliveryOutcome.DUE:
        pauses.append(((delivery.next_us or 0) - waiting.now) / 1e6)
        waiting.clock.forward(pauses[-1])

    assert 86_400 <= (waiting.now - began) / 1e6 < 86_400 + 3600
    assert max(pauses) <= 3600
    assert pauses[-1] > 2700
    assert 30 < len(pauses) < 80
    assert (delivery.outcome, delivery.status) == (DeliveryOutcome.FAILED, 503)


def test_a_receiver_may_ask_for_a_rest(waiting: Site, hook: Receiver) -> None:
    hook.answers[:] = [answer(429, Retry_After="600"), answer(429, Retry_After="999999")]
    assert (deliver(waiting).next_us or 0) - waiting.now == 600_000_000
    waiting.clock.forward(600)
    assert (deliver(waiting).next_us or 0) - waiting.now == 3600_000_000


def test_a_receiver_that_is_gone_is_sent_nothing_more(waiting: Site, hook: Receiver) -> None:
    hook.answers[:] = [answer(410, b"nobody lives here")]
    assert deliver(waiting).outcome is DeliveryOutcome.FAILED
    assert "410" in (waiting.store.webhooks.get("w").paused or "")


def test_to_a_private_address_it_goes_only_when_that_is_allowed(waiting: Site, hook: Receiver) -> None:
    delivery = deliver(waiting, private=False)
    assert delivery.outcome is DeliveryOutcome.FAILED
    assert "127.0.0.1" in (delivery.answer or "")
    assert "tell-nobody" not in (delivery.answer or "")
    assert hook.calls == []


def test_of_an_answer_the_beginning_is_kept_and_nothing_unprintable(waiting: Site, hook: Receiver) -> None:
    hook.answers[:] = [answer(500, b"\x1b[31m" + b"x" * 100_000)]
    delivery = deliver(waiting)
    assert len(delivery.answer or "") <= 500
    assert "\x1b" not in (delivery.answer or "")
