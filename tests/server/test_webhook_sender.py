"""Webhooks sent by a server: everything that is due, by many servers at once, and nobody held up by another."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from contract.words import USUAL, RealClock, Site
from new_store import new_store
from reports.hook_server import Receiver, answer, receiver
from spinney.commands.control import Control
from spinney.features.accounts.commands import AddUser, ChangeUser, DeleteUser
from spinney.features.webhooks import delivery as webhook_delivery
from spinney.features.webhooks import sender as webhook_sender
from spinney.features.webhooks.commands import AddWebhook, ShowWebhook
from spinney.features.webhooks.sender import WebhookSender
from spinney.features.webhooks.sql import SqlWebhooks
from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import StoreUnavailable
from spinney.model.rights.actor import Actor
from spinney.model.settings.webhooks import Delivery, DeliveryOutcome, Webhook
from spinney.reports import verify
from spinney.store.sql import open_store
from spinney.web.request_context import now_us
from spinney.web.store_pool import StorePool

ANN = Actor(by="ann", call="c", reason=None)
Start = Callable[..., AbstractAsyncContextManager[WebhookSender]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    database = tmp_path / "jobs.db"
    with closing(open_store(new_store(database))) as store:
        store.register(USUAL, [])
    return database


@pytest.fixture
def site(file: Path) -> Iterator[Site]:
    with closing(open_store(f"sqlite:///{file}")) as store:
        yield Site(store, RealClock())


@pytest.fixture
def start(file: Path) -> Start:
    """Starts what a server has for webhooks."""

    @asynccontextmanager
    async def running(**more: Any) -> AsyncIterator[WebhookSender]:
        async with (
            StorePool(lambda: open_store(f"sqlite:///{file}"), threads=2) as stores,
            WebhookSender(stores, **{"private": True, "poll_s": 0.02} | more) as deliverer,
        ):
            yield deliverer

    return running


def watch(site: Site, name: str, url: str) -> None:
    site.store.webhooks.add(Webhook(name=name, url=url), f"secret of {name}", ANN, now_us=now_us())


def deliveries(site: Site, name: str = "w") -> list[Delivery]:
    return list(site.store.webhooks.deliveries(name, limit=1000))


async def until(condition: Callable[[], object], patience_s: float = 10.0) -> None:
    ends = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < ends, "it did not come true in time"
        await asyncio.sleep(0.01)


@contextmanager
def standing() -> Iterator[tuple[Receiver, threading.Event]]:
    """A receiver that answers nothing before the event is set."""
    go = threading.Event()

    def wait(handler: BaseHTTPRequestHandler) -> None:
        go.wait(20)
        answer(204)(handler)

    with receiver(wait) as made:
        try:
            yield made, go
        finally:
            go.set()


async def test_a_webhook_of_somebody_who_was_narrowed_and_then_deleted_sends_nothing_out_of_his_sight(
    site: Site, start: Start
) -> None:
    root = Control(store=site.store, clock=now_us, wake_nodes=lambda: None, by="root")
    root.do(AddUser(name="root", rights=ALL_RIGHTS))
    root.do(AddUser(name="ann", rights=Rights(role=Role.OPERATOR)))
    with receiver(answer(204)) as hook:
        replace(root, by="ann", rights=Rights(role=Role.OPERATOR)).do(AddWebhook(name="w", url=hook.url))
        root.do(
            ChangeUser(
                name="ann", rights=Rights(role=Role.OPERATOR, within=AccessScope(collections=("maps",)))
            )
        )
        seen, unseen = (site.submit_one(collection=name) for name in ("maps", "coins"))
        site.drain()
        async with start():
            await until(lambda: DeliveryOutcome.DUE not in {d.outcome for d in deliveries(site)})
        assert [json.loads(call.body)["job"]["id"] for call in hook.calls] == [seen]
        dropped = next(d for d in deliveries(site) if d.job_id == unseen)
        assert dropped.outcome is DeliveryOutcome.FAILED
        assert f"may not see job {unseen}" in str(dropped.answer)

        root.do(DeleteUser(name="ann"))
        site.submit_one(collection="maps")
        site.drain()
        async with start():
            await until(lambda: root.store.audit.entries(verb="webhook pause"))
        assert len(hook.calls) == 1
    assert "its maker ann was deleted" in str(root.do(ShowWebhook(name="w")).paused)


async def test_a_job_that_settles_is_told_of(site: Site, start: Start) -> None:
    with receiver(answer(200, b"thanks")) as hook:
        async with start():
            watch(site, "w", hook.url)
            job = site.submit_one()
            site.drain()
            await until(lambda: [d.outcome for d in deliveries(site)] == [DeliveryOutcome.DELIVERED])

    (call,) = hook.calls
    verify("secret of w", call.headers, call.body, time.time())
    assert (json.loads(call.body)["event"], json.loads(call.body)["job"]["id"]) == ("completed", job)
    (shown,) = deliveries(site)
    assert (shown.status, shown.answer, shown.tries) == (200, "thanks", 1)


async def test_two_servers_send_each_once(site: Site, start: Start) -> None:
    with receiver(answer(204)) as hook:
        watch(site, "w", hook.url)
        watch(site, "v", hook.url)
        site.submit(n=30)
        site.drain()
        async with start(), start():
            await until(
                lambda: {d.outcome for n in "wv" for d in deliveries(site, n)} == {DeliveryOutcome.DELIVERED}
            )

    sent = Counter(call.headers["Spinney-Delivery"] for call in hook.calls)
    assert len(sent) == 60
    assert set(sent.values()) == {1}


async def test_a_receiver_that_stands_still_keeps_back_its_own_alone(site: Site, start: Start) -> None:
    with standing() as (slow, go), receiver(answer(204)) as quick:
        watch(site, "slow", slow.url)
        watch(site, "quick", quick.url)
        site.submit(n=20)
        site.drain()
        async with start():
            await until(lambda: {d.outcome for d in deliveries(site, "quick")} == {DeliveryOutcome.DELIVERED})
            assert len(slow.calls) == webhook_sender.SENDS_PER_WEBHOOK
            go.set()
            await until(lambda: {d.outcome for d in deliveries(site, "slow")} == {DeliveryOutcome.DELIVERED})


async def test_one_that_does_not_take_what_it_is_sent_is_sent_one_at_a_time(site: Site, start: Start) -> None:
    at_once, most, changed = 0, [0], threading.Condition()

    def refuse(handler: BaseHTTPRequestHandler) -> None:
        nonlocal at_once
        with changed:
            at_once += 1
            most[0] = max(most[0], at_once)
            changed.notify_all()
            changed.wait_for(lambda: at_once > 1, timeout=0.05)  # for another that is sent meanwhile
            at_once -= 1  # before the answer, upon which the next may come
        answer(500)(handler)

    with receiver(refuse) as hook:
        watch(site, "w", hook.url)
        site.submit_one()
        site.drain()
        async with start():
            await until(lambda: deliveries(site)[0].status == 500)
            most[0] = 0
            site.submit(n=webhook_sender.REFUSALS_IN_A_ROW - 2)
            site.drain()
            await until(lambda: {d.status for d in deliveries(site)} == {500})
    assert most == [1]


async def test_a_receiver_that_accepts_none_of_many_is_tried_now_and_then_until_it_accepts_one(
    site: Site, start: Start
) -> None:
    back = threading.Event()

    def accept_when_back(handler: BaseHTTPRequestHandler) -> None:
        answer(204 if back.is_set() else 500)(handler)

    with (
        receiver(accept_when_back) as hook,
        receiver(answer(204)) as other,
        mock.patch.object(webhook_sender, "REFUSED_PAUSE_S", 3600.0),
    ):
        watch(site, "w", hook.url)
        watch(site, "other", other.url)
        site.submit(n=3 * webhook_sender.REFUSALS_IN_A_ROW)
        site.drain()
        async with start() as sender:
            await until(lambda: {d.outcome for d in deliveries(site, "other")} == {DeliveryOutcome.DELIVERED})
            await until(lambda: len(hook.calls) >= webhook_sender.REFUSALS_IN_A_ROW)
            for _ in range(3):  # for others the sender goes on
                before = len(other.calls)
                site.submit_one()
                site.drain()
                await until(lambda before=before: len(other.calls) > before)
            # Two are sent at once until the first is not accepted.
            assert len(hook.calls) <= webhook_sender.REFUSALS_IN_A_ROW + 1
            back.set()
            sender._pause_until_s.clear()  # the pause is over
            await until(lambda: sum(d.outcome is DeliveryOutcome.DELIVERED for d in deliveries(site)) > 3)


async def test_at_the_end_what_is_on_its_way_is_called_off_and_due_for_others(
    site: Site, start: Start
) -> None:
    with standing() as (hook, go):
        watch(site, "w", hook.url)
        site.submit_one()
        site.drain()
        async with start():
            await until(lambda: hook.calls)
        (left,) = deliveries(site)
        assert (left.outcome, (left.next_us or 0) <= now_us()) == (DeliveryOutcome.DUE, True)

        go.set()
        async with start():
            await until(lambda: deliveries(site)[0].outcome is DeliveryOutcome.DELIVERED)
    assert len({call.headers["Spinney-Delivery"] for call in hook.calls}) == 1


async def test_private_addresses_are_closed_unless_somebody_opens_them(site: Site, start: Start) -> None:
    with receiver(answer(204)) as hook:
        watch(site, "w", hook.url)
        site.submit_one()
        site.drain()
        async with start(private=False):
            await until(lambda: deliveries(site)[0].outcome is DeliveryOutcome.FAILED)
    assert "webhook_private = true" in (deliveries(site)[0].answer or "")
    assert hook.calls == []


async def test_a_store_that_is_away_for_a_while_is_told_what_was_answered(
    site: Site, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_sender, "STORE_RETRY_S", 0.02)
    fails = [StoreUnavailable("it is away"), StoreUnavailable("it is away")]
    really = SqlWebhooks.record_result

    def record_result(self: SqlWebhooks, *args: Any, **more: Any) -> None:
        if fails:
            raise fails.pop()
        really(self, *args, **more)

    with receiver(answer(204)) as hook, mock.patch.object(SqlWebhooks, "record_result", record_result):
        watch(site, "w", hook.url)
        site.submit_one()
        site.drain()
        async with start():
            await until(lambda: deliveries(site)[0].outcome is DeliveryOutcome.DELIVERED)
    assert (len(hook.calls), fails) == (1, [])


async def test_a_fault_of_our_own_is_tried_again_and_ends_nothing(site: Site, start: Start) -> None:
    with receiver(answer(204)) as hook:
        watch(site, "w", hook.url)
        site.submit_one()
        site.drain()
        with mock.patch.object(webhook_delivery, "body", side_effect=RuntimeError("a fault")):
            async with start():
                await until(lambda: deliveries(site)[0].answer is not None)
        (shown,) = deliveries(site)
        assert (shown.outcome, "internal error" in str(shown.answer)) == (DeliveryOutcome.DUE, True)
        assert (shown.next_us or 0) > now_us()


async def test_what_is_too_old_is_removed(site: Site, start: Start) -> None:
    watch(site, "w", "http://example.org/")
    site.store.webhooks.ping("w", ANN, now_us=now_us() - 31 * 86_400 * 10**6)
    site.store.webhooks.pause("w", ANN, paused=True, now_us=now_us())
    async with start():
        await until(lambda: deliveries(site) == [])


async def test_each_try_is_counted_with_its_outcome(site: Site, start: Start) -> None:
    tries: list[tuple[str, float]] = []
    with receiver(answer(204)) as good, receiver(answer(410)) as gone:
        watch(site, "good", good.url)
        watch(site, "gone", gone.url)
        site.submit_one()
        site.drain()
        async with start(measure=lambda *one_try: tries.append(one_try)):
            await until(lambda: len(tries) == 2)
    assert sorted(outcome for outcome, _ in tries) == ["delivered", "failed"]
    assert all(took_s > 0 for _, took_s in tries)
