"""Webhooks: what the settling transaction writes down for them, and who sends it."""

import json
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import pytest

from spinney.features.webhooks import health_sql
from spinney.features.webhooks import sql as sql_webhooks
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import BadParameters, NoSuch, Refused, UsageError
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.outcomes import Outcome as Ended
from spinney.model.rights.accounts import Token
from spinney.model.rights.actor import Actor
from spinney.model.settings.webhooks import Delivery, DeliveryOutcome, DeliveryResult, DueDelivery, Webhook
from spinney.store.parts import Store

from .behind import damage, rows
from .everything import FRAGILE
from .words import SECOND_US, Site

ANN = Actor(by="ann", call="c", reason="because")
URL = "https://example.org/hook?token=hush"
DONE = DeliveryResult(outcome=DeliveryOutcome.DELIVERED, status=204, answer="")
NOT_NOW = DeliveryResult(outcome=DeliveryOutcome.DUE, next_us=2**60, status=503, answer="later")
REFUSED = DeliveryResult(outcome=DeliveryOutcome.FAILED, status=500, answer="no disk")


def watch(site: Site, name: str = "all", **more: Any) -> Webhook:
    made = Webhook(**{"name": name, "url": URL} | more)
    return site.store.webhooks.add(made, f"secret of {name}", ANN, now_us=site.now)


def deliveries(site: Site, name: str = "all") -> list[tuple[int | None, str, bool]]:
    """Return (job, event, batch) of all deliveries of the webhook, oldest first."""
    return [(d.job_id, d.event, d.batch) for d in reversed(site.store.webhooks.deliveries(name, limit=1000))]


def take(site: Site, most: int = 100, name: str = "all", store: Store | None = None) -> list[DueDelivery]:
    part = (store or site.store).webhooks
    return list(part.lease({name: most}, now_us=site.now, until_us=site.now + 60 * SECOND_US))


def one(site: Site, name: str = "all") -> Delivery:
    (delivery,) = site.store.webhooks.deliveries(name)
    return delivery


# --- what is told -----------------------------------------------------------------------------


def test_nothing_is_told_of_what_settled_before(site: Site) -> None:
    site.submit()
    site.drain()

    watch(site)

    assert deliveries(site) == []
    assert site.store.webhooks.first_due_us() == {}


def test_plain_jobs_are_told_of_each_once_in_order(site: Site) -> None:
    watch(site)

    made = site.submit(n=20)
    site.drain()

    assert deliveries(site) == [(job, "completed", False) for job in made]
    seqs = [d.seq for d in site.store.webhooks.deliveries("all")]
    assert seqs == sorted(seqs, reverse=True)
    assert len({d.delivery for d in site.store.webhooks.deliveries("all")}) == 20


def test_every_way_to_settle_is_told(site: Site) -> None:
    watch(site)
    site.knows(FRAGILE)
    passed, failed, cancelled = site.submit_one(), site.submit_one(), site.submit_one()
    site.cancel(cancelled)
    site.drain(failing=[failed])
    orphan = site.submit_one("fragile")
    site.run(orphan)
    site.recover(site.here, {})

    assert sorted((str(job), event) for job, event, _ in deliveries(site)) == sorted(
        [
            (str(passed), "completed"),
            (str(failed), "failed"),
            (str(cancelled), "cancelled"),
            (str(orphan), "orphaned"),
        ]
    )


def test_a_job_that_fails_because_of_another_is_told_of_too(site: Site) -> None:
    watch(site)
    first = site.submit_one()
    second = site.submit_one(needs=(first,))

    site.drain(failing=[first])

    assert deliveries(site) == [(first, "failed", False), (second, "failed", False)]


def test_a_job_that_fails_as_it_is_born_is_told_of(site: Site) -> None:
    first = site.submit_one()
    site.drain(failing=[first])
    watch(site)
    second = site.submit_one(needs=(first,))
    assert deliveries(site) == [(second, "failed", False)]


def test_a_verb_on_many_jobs_is_told_of_each(site: Site) -> None:
    watch(site, events=("cancelled",), roots_only=False)
    jobs = site.submit(n=5)
    order = Order(verb=Verb.CANCEL, reason="wrong batch")
    todo: Sequence[int] = jobs
    while todo:  # a step ends after a while, however many are left
        todo = site.store.bulk.apply(order, todo, ANN, now_us=site.now).unfinished
    batch, children = site.family("batch", n=3)
    site.cancel(batch, tree=True)
    site.sweep()
    assert sorted(job or 0 for job, _, _ in deliveries(site)) == sorted([*jobs, batch, *children])


def test_what_ends_an_attempt_and_not_the_job_is_not_told(site: Site) -> None:
    watch(site)
    job = site.submit_one("tenacious")
    site.record(site.run(job), Ended.ERROR, message="again")
    site.later(5)
    site.record(site.run(job), Ended.HOLD, message="look at it")
    assert deliveries(site) == []


def test_settled_again_it_is_told_again_under_another_id(site: Site) -> None:
    watch(site)
    job = site.submit_one()
    site.drain(failing=[job])
    site.retry(job)
    site.drain()

    newer, older = site.store.webhooks.deliveries("all")

    assert (older.event, newer.event) == ("failed", "completed")
    assert older.delivery != newer.delivery


def test_a_deleted_job_is_not_told_of(site: Site) -> None:
    job = site.submit_one()
    site.drain()
    watch(site)
    site.delete(job)
    assert deliveries(site) == []


def test_subjobs_are_told_of_only_where_that_is_asked_for(site: Site) -> None:
    watch(site)
    watch(site, "each", roots_only=False)

    batch, children = site.family("batch", n=3)
    site.drain(failing=children[:1])

    assert deliveries(site) == [(batch, "failed", True)]
    assert sorted(deliveries(site, "each")) == sorted(
        [
            (children[0], "failed", False),
            *((child, "completed", False) for child in children[1:]),
            (batch, "failed", True),
        ]
    )


def test_batch_means_a_top_with_children_however_it_ended(site: Site) -> None:
    watch(site, events=("batch",))
    watch(site, "each", events=("batch",), roots_only=False)
    alone = site.submit_one()
    site.drain()
    batch, _ = site.family("parent", n=2)
    site.drain()
    bad, bad_children = site.family("parent", n=1)
    site.drain(failing=bad_children)

    assert deliveries(site) == deliveries(site, "each") == [(batch, "completed", True), (bad, "failed", True)]
    assert alone not in {job for job, _, _ in deliveries(site)}


def test_a_batch_that_grows_again_is_told_again(site: Site) -> None:
    watch(site, events=("batch",))
    batch, children = site.family("batch", n=2)
    site.drain(failing=children[:1])
    site.retry(children[0])
    site.drain()

    assert deliveries(site) == [(batch, "failed", True), (batch, "completed", True)]


@pytest.mark.parametrize(
    ("options", "fits"),
    [
        ({"events": ("failed",)}, False),
        ({"events": ("failed", "completed")}, True),
        ({"type": "one"}, True),
        ({"type": "three"}, False),
        ({"queue": "q"}, True),
        ({"queue": "default"}, False),
        ({"collection": "maps"}, True),
        ({"collection": "coins"}, False),
        ({"within": AccessScope(collections=("coins", "maps"))}, True),
        ({"within": AccessScope(collections=("coins",))}, False),
        ({"within": AccessScope(collections=())}, False),
        ({"within": AccessScope(queues=("q",))}, True),
        ({"within": AccessScope(queues=("p",))}, False),
        ({"collection": "maps", "within": AccessScope(collections=("coins",))}, False),
    ],
)
@pytest.mark.parametrize("plain", [True, False])
def test_only_what_fits_is_told(site: Site, options: dict[str, Any], fits: bool, plain: bool) -> None:
    watch(site, **options)

    job = site.submit_one(queue="q", collection="maps")
    site.record(site.run(job), Ended.OK, message=None if plain else "it says something")

    assert deliveries(site) == ([(job, "completed", False)] if fits else [])


def test_without_a_collection_it_is_in_none(site: Site) -> None:
    watch(site, within=AccessScope(collections=("maps",)))
    site.submit_one()
    site.drain()
    assert deliveries(site) == []


def test_another_store_object_tells_at_once(site: Site, open_another: Callable[[], Store]) -> None:
    job = site.submit_one()
    lease = site.run(job)
    open_another().webhooks.add(Webhook(name="all", url=URL), "secret", ANN, now_us=site.now)

    site.pass_(lease)

    assert deliveries(site) == [(job, "completed", False)]


# --- who sends --------------------------------------------------------------------------------


@pytest.fixture
def waiting(site: Site) -> Site:
    """Two deliveries wait."""
    watch(site)
    site.submit(n=2)
    site.drain()
    return site


def test_a_delivery_is_given_to_one_sender_only(waiting: Site, open_another: Callable[[], Store]) -> None:
    first = take(waiting, 1)
    second = take(waiting, store=open_another())
    assert [len(first), len(second)] == [1, 1]
    assert first[0].delivery.seq < second[0].delivery.seq
    assert take(waiting) == []
    assert (first[0].secret, first[0].url, first[0].by, first[0].since_us) == (
        "secret of all",
        URL,
        "ann",
        waiting.now,
    )


def test_what_came_of_it_is_shown(waiting: Site) -> None:
    good, bad = take(waiting)
    waiting.store.webhooks.record_result(good, DONE, now_us=waiting.now)
    again = DeliveryResult(
        outcome=DeliveryOutcome.DUE, next_us=waiting.now + 9 * SECOND_US, status=500, answer="oh dear"
    )
    waiting.store.webhooks.record_result(bad, again, now_us=waiting.now)

    second, first = waiting.store.webhooks.deliveries("all")

    assert (first.outcome, first.next_us, first.status, first.answer, first.tries) == (
        "delivered",
        None,
        204,
        "",
        1,
    )
    assert (second.outcome, second.status, second.answer, second.tries) == ("due", 500, "oh dear", 1)
    assert waiting.store.webhooks.first_due_us() == {"all": waiting.now + 9 * SECOND_US}
    assert take(waiting) == []
    waiting.clock.forward(9)
    (due,) = take(waiting)
    assert (due.delivery.tries, due.delivery.delivery) == (2, second.delivery)


def test_a_sender_that_died_is_followed_by_another_with_the_same_id(waiting: Site) -> None:
    died = take(waiting)
    waiting.clock.forward(61)

    again = take(waiting)

    assert [due.delivery.delivery for due in again] == [due.delivery.delivery for due in died]
    waiting.store.webhooks.record_result(again[0], DONE, now_us=waiting.now)
    late = DeliveryResult(outcome=DeliveryOutcome.FAILED, status=500, answer="too late")
    waiting.store.webhooks.record_result(died[0], late, now_us=waiting.now)
    waiting.store.webhooks.record_result(died[1], late, now_us=waiting.now)
    outcomes = [d.outcome for d in waiting.store.webhooks.deliveries("all")]
    assert outcomes == [DeliveryOutcome.DUE, DeliveryOutcome.DELIVERED]


def test_a_receiver_that_is_gone_pauses_its_webhook(waiting: Site) -> None:
    first, second = take(waiting)
    gone = DeliveryResult(outcome=DeliveryOutcome.FAILED, status=410, answer="no more", gone=True)
    waiting.store.webhooks.record_result(first, gone, now_us=waiting.now)
    waiting.store.webhooks.record_result(second, gone, now_us=waiting.now)

    assert "410" in (waiting.store.webhooks.get("all").paused or "")
    entries = [e for e, _ in waiting.store.audit.entries() if e.verb == "webhook pause"]
    assert [(e.by, e.reason) for e in entries] == [("spinney", sql_webhooks.GONE)]


def test_while_it_is_paused_it_is_sent_nothing_and_hears_it_later(waiting: Site) -> None:
    assert waiting.store.webhooks.pause("all", ANN, paused=True, now_us=waiting.now).paused == "because"
    job = waiting.submit_one()
    waiting.drain()
    assert (waiting.store.webhooks.first_due_us(), take(waiting)) == ({}, [])

    waiting.clock.forward(100_000)
    assert waiting.store.webhooks.pause("all", ANN, paused=False, now_us=waiting.now).paused is None

    due = take(waiting)
    assert due[-1].delivery.job_id == job
    assert [d.since_us for d in due] == [waiting.now] * 3


def test_one_that_cannot_be_read_is_due_for_nothing(waiting: Site) -> None:
    damage(waiting.store, "update webhooks set spec = ?", '{"url": 3}')

    assert waiting.store.webhooks.first_due_us() == {}
    assert take(waiting) == []


def test_resumed_what_had_been_tried_before_has_a_whole_term_again(waiting: Site) -> None:
    first, _ = take(waiting)
    waiting.store.webhooks.record_result(
        first,
        DeliveryResult(outcome=DeliveryOutcome.DUE, next_us=waiting.now + SECOND_US, status=500),
        now_us=waiting.now,
    )
    waiting.store.webhooks.pause("all", ANN, paused=True, now_us=waiting.now)
    waiting.clock.forward(100_000)
    waiting.store.webhooks.pause("all", ANN, paused=False, now_us=waiting.now)

    assert {d.since_us for d in take(waiting)} == {waiting.now}


def test_what_failed_is_sent_again_when_somebody_asks(waiting: Site) -> None:
    first, second = take(waiting)
    waiting.store.webhooks.record_result(
        first, DeliveryResult(outcome=DeliveryOutcome.FAILED, status=500, answer="no"), now_us=waiting.now
    )
    waiting.store.webhooks.record_result(second, DONE, now_us=waiting.now)
    waiting.clock.forward(100_000)
    assert take(waiting) == []

    shown = waiting.store.webhooks.retry(first.delivery.delivery, ANN, now_us=waiting.now)

    assert (shown.outcome, shown.next_us, shown.status) == (DeliveryOutcome.DUE, waiting.now, 500)
    (due,) = take(waiting)
    assert (due.delivery.delivery, due.delivery.tries, due.since_us) == (
        first.delivery.delivery,
        2,
        waiting.now,
    )


@pytest.mark.parametrize("late", [DeliveryOutcome.FAILED, DeliveryOutcome.DUE])
@pytest.mark.parametrize("gone", [False, True])
def test_a_try_that_was_on_its_way_undoes_no_retry(waiting: Site, late: DeliveryOutcome, gone: bool) -> None:
    first, _ = take(waiting)
    waiting.store.webhooks.retry(first.delivery.delivery, ANN, now_us=waiting.now)

    next_us = None if late is DeliveryOutcome.FAILED else waiting.now + 3600 * SECOND_US
    result = DeliveryResult(outcome=late, next_us=next_us, status=410, answer="late", gone=gone)
    waiting.store.webhooks.record_result(first, result, now_us=waiting.now)

    assert waiting.store.webhooks.get("all").paused is None
    (due,) = take(waiting)
    assert (due.delivery.delivery, due.delivery.tries) == (first.delivery.delivery, 2)
    waiting.store.webhooks.record_result(due, DONE, now_us=waiting.now)
    shown = waiting.store.webhooks.delivery(first.delivery.delivery)
    assert (shown.outcome, shown.tries) == (DeliveryOutcome.DELIVERED, 2)


@pytest.mark.parametrize("gone", [False, True])
def test_what_failed_at_a_former_url_is_sent_to_the_new_one_and_pauses_nothing(
    waiting: Site, gone: bool
) -> None:
    first, _ = take(waiting)
    waiting.store.webhooks.change("all", {"url": "https://new.example.org/"}, ANN, now_us=waiting.now)

    result = DeliveryResult(outcome=DeliveryOutcome.FAILED, status=410, answer="no more", gone=gone)
    waiting.store.webhooks.record_result(first, result, now_us=waiting.now)

    assert waiting.store.webhooks.get("all").paused is None
    (due,) = take(waiting)
    assert (due.delivery.delivery, due.url) == (first.delivery.delivery, "https://new.example.org/")


@pytest.mark.parametrize("delivery", ["", "1", "-1", "nobody-1", "x-" + "9" * 30, "ünïcode-½"])
def test_a_delivery_that_is_not_there_is_refused(waiting: Site, delivery: str) -> None:
    with pytest.raises(NoSuch, match="there is no delivery"):
        waiting.store.webhooks.retry(delivery, ANN, now_us=waiting.now)


def test_deliveries_are_listed_newest_first_and_by_outcome(site: Site) -> None:
    watch(site)
    jobs = site.submit(n=5)
    site.drain()
    (first, *_) = take(site, 1)
    site.store.webhooks.record_result(first, DONE, now_us=site.now)

    page = site.store.webhooks.deliveries("all", limit=2)
    rest = site.store.webhooks.deliveries("all", after=page[-1].seq, limit=10)

    assert [d.job_id for d in (*page, *rest)] == jobs[::-1]
    assert [
        d.job_id for d in site.store.webhooks.deliveries("all", outcome=DeliveryOutcome.DELIVERED)
    ] == jobs[:1]


def test_deliveries_are_kept_for_a_month(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_webhooks, "STEP", 2)
    watch(site)
    site.submit(n=5)
    site.drain()
    site.clock.forward(29 * 86_400)
    newer = site.submit_one()
    site.drain()
    site.sweep()
    assert len(deliveries(site)) == 6

    site.clock.forward(2 * 86_400)
    site.sweep()

    assert deliveries(site) == [(newer, "completed", False)]


def test_a_ping_goes_the_same_way(site: Site) -> None:
    watch(site, events=("failed",))

    made = site.store.webhooks.ping("all", ANN, now_us=site.now)

    (due,) = take(site)
    assert due.delivery.delivery == made.delivery
    assert (made.event, made.job_id, made.batch, made.outcome) == ("ping", None, False, DeliveryOutcome.DUE)


def test_a_ping_and_what_is_retried_go_before_what_waits_already(waiting: Site) -> None:
    store = waiting.store.webhooks
    newest, _ = store.deliveries("all")
    waiting.clock.forward(100)

    ping = store.ping("all", ANN, now_us=waiting.now)
    retried = store.retry(newest.delivery, ANN, now_us=waiting.now)

    in_turn = [take(waiting, most=1)[0].delivery.delivery for _ in range(2)]
    assert in_turn == [retried.delivery, ping.delivery]


# --- what people decide -----------------------------------------------------------------------


def test_a_webhook_comes_back_as_it_was_made(site: Site, open_another: Callable[[], Store]) -> None:
    webhook = Webhook(
        name="w",
        url=URL,
        events=("failed", "batch"),
        type="one",
        collection="maps",
        queue="q",
        roots_only=False,
        within=AccessScope(collections=("maps",), queues=("q", "p")),
    )
    made = site.store.webhooks.add(webhook, "secret", ANN, now_us=site.now)

    assert open_another().webhooks.all(now_us=site.now) == [made]
    assert (made.by, made.at_us, made.within) == ("ann", site.now, webhook.within)
    assert "secret" not in str(made)


def test_a_name_is_taken_once(site: Site) -> None:
    watch(site)
    with pytest.raises(Refused, match="already; choose another name"):
        watch(site)


@pytest.mark.parametrize("name", ["rotate", "change", "pause", "remove", "ping", "get", "deliveries"])
def test_one_that_is_not_there_is_refused_with_the_nearest(site: Site, name: str) -> None:
    watch(site)
    verb = getattr(site.store.webhooks, name)
    args: dict[str, tuple[Any, ...]] = {
        "rotate": ("secret", ANN),
        "change": ({}, ANN),
        "get": (),
        "deliveries": (),
    }
    more = {"now_us": site.now} if name not in ("get", "deliveries") else {}
    if name == "pause":
        more["paused"] = True
    with pytest.raises(NoSuch, match="did you mean 'all'"):
        verb("al", *args.get(name, (ANN,)), **more)


def test_set_otherwise_it_is_told_otherwise(site: Site) -> None:
    watch(site)
    assert site.store.webhooks.change("all", {"events": ("failed",)}, ANN, now_us=site.now).events == (
        "failed",
    )
    site.submit()
    site.drain()
    assert deliveries(site) == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"secret": "mine"}, UsageError),
        ({"within": AccessScope()}, UsageError),
        ({"events": ()}, UsageError),
        ({"events": ("held",)}, UsageError),
        ({"url": "ftp://x/"}, UsageError),
        ({"url": "//x"}, UsageError),
        ({"url": "http://x:99999/"}, UsageError),
        ({"url": "http://x:abc/"}, UsageError),
        ({"url": "http://u:p@x/"}, BadParameters),
        ({"url": 7}, UsageError),
        ({"roots_only": "yes"}, UsageError),
    ],
)
def test_what_cannot_be_meant_is_refused(site: Site, change: dict[str, Any], error: type[Exception]) -> None:
    before = watch(site)
    with pytest.raises(error):
        site.store.webhooks.change("all", change, ANN, now_us=site.now)
    assert site.store.webhooks.get("all") == before


def test_another_secret_signs_what_is_sent_from_then_on(waiting: Site) -> None:
    waiting.store.webhooks.rotate("all", "another", ANN, now_us=waiting.now)
    assert [due.secret for due in take(waiting)] == ["another"] * 2


def test_removed_it_goes_with_its_deliveries(waiting: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_webhooks, "STEP", 1)
    (due, _) = take(waiting)

    waiting.store.webhooks.remove("all", ANN, now_us=waiting.now)

    waiting.store.webhooks.record_result(due, DONE, now_us=waiting.now)
    waiting.submit()
    waiting.drain()
    assert (
        waiting.store.webhooks.all(now_us=waiting.now),
        waiting.store.webhooks.first_due_us(),
        take(waiting),
    ) == (
        [],
        {},
        [],
    )
    watch(waiting)
    assert deliveries(waiting) == [], "another one of that name has nothing of it"


def test_the_audit_tells_who_did_what_and_no_secret(site: Site) -> None:
    part = site.store.webhooks
    watch(site)
    part.change("all", {"type": "one"}, ANN, now_us=site.now)
    part.rotate("all", "another", ANN, now_us=site.now)
    part.pause("all", ANN, paused=True, now_us=site.now)
    part.pause("all", ANN, paused=True, now_us=site.now)
    part.pause("all", ANN, paused=False, now_us=site.now)
    made = part.ping("all", ANN, now_us=site.now)
    part.retry(made.delivery, ANN, now_us=site.now)
    part.remove("all", ANN, now_us=site.now)

    entries = [entry for entry, _ in site.store.audit.entries()]

    assert [e.verb for e in entries] == [
        f"webhook {verb}" for verb in ("add", "set", "rotate", "pause", "resume", "test", "retry", "remove")
    ]
    entry_text = " ".join(e.what for e in entries)
    assert "secret" not in entry_text
    assert "another" not in entry_text
    assert "hush" not in entry_text
    site.store.audit.verify()


def test_its_secret_is_in_no_facts(site: Site) -> None:
    watch(site)
    assert "secret of" not in str(site.store.facts())


# --- with whose rights ------------------------------------------------------------------------

BOB = Actor(by="bob", call="d", account="bob")
OPERATOR = Rights(role=Role.OPERATOR)


def watch_as(site: Site, account: str = "ann", rights: Rights = OPERATOR, **more: Any) -> None:
    """Somebody makes the webhook ``all`` through a server."""
    if account.startswith("token:"):
        made = Token(
            id="0" * 16,
            name=account.removeprefix("token:"),
            owner=None,
            rights=rights,
            created_us=site.now,
            by="root",
            **more,
        )
        site.store.accounts.make_token(made, "digest", BOB, now_us=site.now)
    else:
        for name, its in ((account, rights), ("root", ALL_RIGHTS)):
            site.store.accounts.add(name, its, None, BOB, now_us=site.now)
    actor = Actor(by=account, call="c", account=account)
    site.store.webhooks.add(Webhook(name="all", url=URL), "secret", actor, now_us=site.now)


def all_of(site: Site) -> Webhook:
    (webhook,) = site.store.webhooks.all(now_us=site.now)
    return webhook


def _disable(site: Site) -> None:
    site.store.accounts.disable("ann", BOB, disabled=True, now_us=site.now)


def _delete(site: Site) -> None:
    site.store.accounts.delete("ann", BOB, now_us=site.now)


def _replace(site: Site) -> None:
    _delete(site)
    site.later(1)
    site.store.accounts.add("ann", OPERATOR, None, BOB, now_us=site.now)


def _lower(site: Site) -> None:
    site.store.accounts.change("ann", Rights(role=Role.SUBMITTER), BOB, now_us=site.now)


@pytest.mark.parametrize(
    ("deed", "why"),
    [
        (_disable, "ann is disabled"),
        (_delete, "ann was deleted"),
        (_replace, "ann was deleted"),
        (_lower, "ann is only a submitter now"),
    ],
)
def test_one_whose_maker_may_not_have_it_any_more_is_paused_until_somebody_answers_for_it(
    site: Site, deed: Callable[[Site], None], why: str
) -> None:
    watch_as(site)
    job = site.submit_one()
    site.drain()
    sentence = f"its maker {why} and may not keep webhooks; the user who resumes it becomes its maker"

    deed(site)

    assert all_of(site).paused == sentence, "it is shown at once"
    assert take(site) == []
    assert (one(site).outcome, one(site).tries) == (DeliveryOutcome.DUE, 0), "it is kept"
    assert site.store.webhooks.first_due_us() == {}
    (entry,) = [entry for entry, _ in site.store.audit.entries(verb="webhook pause")]
    assert (entry.by, entry.reason) == ("spinney", sentence)

    site.store.accounts.add("bob", OPERATOR, None, BOB, now_us=site.now)
    site.store.webhooks.pause("all", BOB, paused=False, now_us=site.now)
    assert [due.delivery.job_id for due in take(site)] == [job]
    assert (all_of(site).by, all_of(site).paused) == ("bob", None)
    site.store.accounts.delete("bob", BOB, now_us=site.now)
    assert "bob was deleted" in str(all_of(site).paused)


def test_resumed_before_anything_was_due_it_is_handed_over_too(site: Site) -> None:
    watch_as(site)
    _delete(site)
    site.store.accounts.add("bob", OPERATOR, None, BOB, now_us=site.now)

    site.store.webhooks.pause("all", BOB, paused=False, now_us=site.now)

    assert (all_of(site).by, all_of(site).paused) == ("bob", None)
    assert [entry.by for entry, _ in site.store.audit.entries(verb="webhook resume")] == ["bob"]


def test_resumed_while_its_maker_may_have_it_it_stays_the_makers(site: Site) -> None:
    watch_as(site)
    site.store.webhooks.pause("all", BOB, paused=True, now_us=site.now)
    site.store.webhooks.pause("all", BOB, paused=False, now_us=site.now)
    site.store.webhooks.change("all", {"roots_only": False}, BOB, now_us=site.now)

    assert all_of(site).by == "ann"
    _disable(site)
    assert "ann is disabled" in str(all_of(site).paused)


def test_whoever_changes_where_it_is_sent_answers_for_it(site: Site) -> None:
    watch_as(site)
    site.store.accounts.add("bob", OPERATOR, None, BOB, now_us=site.now)

    site.store.webhooks.change("all", {"url": URL + "2"}, BOB, now_us=site.now)

    assert all_of(site).by == "bob"
    site.store.accounts.disable("bob", BOB, disabled=True, now_us=site.now)
    assert "bob is disabled" in str(all_of(site).paused)


def test_it_is_told_what_its_maker_may_see_then_and_now(site: Site) -> None:
    watch_as(site)
    site.submit(n=2)
    site.drain()
    before = take(site, 1)
    site.store.accounts.change(
        "ann", Rights(role=Role.OPERATOR, within=AccessScope(queues=("quick",))), BOB, now_us=site.now
    )

    assert [(due.within, due.narrowed) for due in (*before, *take(site))] == [
        (AccessScope(), False),
        (AccessScope(queues=("quick",)), True),
    ]


def test_one_of_a_machines_token_goes_by_the_token(site: Site) -> None:
    watch_as(site, "token:ci", expires_us=site.now + 60 * SECOND_US)
    assert all_of(site).paused is None

    site.later(60)

    assert "its maker token:ci is revoked or has expired" in str(all_of(site).paused)


def test_one_that_was_made_where_the_store_is_at_hand_goes_by_no_user(site: Site) -> None:
    """``ann`` of that host is not the user of that name."""
    watch(site)
    site.store.accounts.add("root", ALL_RIGHTS, None, BOB, now_us=site.now)
    site.store.accounts.add("ann", Rights(role=Role.VIEWER), None, BOB, now_us=site.now)

    assert all_of(site).paused is None


@pytest.mark.parametrize(("role", "goes_on"), [(Role.OPERATOR, True), (Role.VIEWER, False), (None, True)])
def test_one_of_an_older_version_goes_by_the_user_who_has_the_name_of_its_maker(
    site: Site, role: Role | None, goes_on: bool
) -> None:
    watch(site)
    ((spec,),) = rows(site.store, "select spec from webhooks")
    settings = json.loads(spec)
    del settings["maker"]
    damage(site.store, "update webhooks set spec = ?", json.dumps(settings))
    if role is not None:
        site.store.accounts.add("ann", Rights(role=role), None, BOB, now_us=site.now)

    assert (all_of(site).paused is None) == goes_on


# --- how the latest tries went ----------------------------------------------------------------


def test_its_health_counts_what_was_not_accepted_since_the_last_that_was(site: Site) -> None:
    watch(site)
    assert site.store.webhooks.health() == {}
    for result in (DONE, NOT_NOW, REFUSED):
        site.submit()
        site.drain()
        (due,) = take(site, most=1)
        site.store.webhooks.record_result(due, result, now_us=site.now)
        site.clock.forward(1)
    site.submit()
    site.drain()  # of which nobody has tried to tell yet

    (health,) = site.store.webhooks.health().values()

    assert (health.accepted, health.failing, health.tries) == (False, 2, 1)
    assert (health.status, health.answer) == (500, "no disk")
    assert not health.is_unwell


def test_a_receiver_that_is_seldom_tried_is_unwell_though_much_settles_meanwhile(site: Site) -> None:
    """Tries are five seconds apart, and in each second forty jobs settle; none of these is tried."""
    watch(site)
    site.submit(n=10)
    site.drain()
    with mock.patch.object(health_sql, "NEWEST", 100):
        for _ in range(4):
            (due,) = take(site, most=1)
            later = DeliveryResult(
                outcome=DeliveryOutcome.DUE, next_us=site.now + 8 * SECOND_US, status=503, answer="later"
            )
            site.store.webhooks.record_result(due, later, now_us=site.now)
            site.clock.forward(5)
            site.submit(n=200)
            site.drain()

        assert site.store.webhooks.health()["all"].is_unwell
