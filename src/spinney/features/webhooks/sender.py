"""What webhooks are to be told, sent.

Any number of servers share the work: what is due is taken from the store, for a while, and recorded there. Each sends
eight at once, of one webhook at most two, and one while its receiver does not take what it is sent; whoever was served
longest ago comes first. So a receiver that is slow, or away, keeps back its own deliveries and hardly those of others.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Self

from spinney.features.webhooks import delivery as webhook_delivery
from spinney.model.errors import StoreUnavailable, StoreUnusable
from spinney.model.settings.webhooks import DeliveryOutcome, DeliveryResult, DueDelivery
from spinney.reports.http_post import Transport
from spinney.reports.safe_transport import SafeTransport, SendAborted
from spinney.web.request_context import now_us
from spinney.web.store_pool import StorePool

log = logging.getLogger(__name__)

MOST = 8
"""Deliveries that are on their way at once."""
EACH = 2
"""Of one webhook."""
POLL_S = 1.0
"""How often the store is asked for what is due."""
AWAY_S = 5.0
"""A rest where the store does not answer."""
FORGET_EVERY_S = 3600.0
LEAVE_S = 15.0
"""So long what is on its way is waited for at the end; it is called off before."""


class WebhookSender:
    """``async with`` starts it; leaving calls off what is on its way, which is then due at once for other servers."""

    def __init__(
        self,
        stores: StorePool,
        *,
        private: bool = False,
        clock: Callable[[], int] = now_us,
        transport: Transport | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        """``private``: URLs may lead to loopback and private addresses. ``transport``: in the place of
        ``SafeTransport``."""
        self._stores, self._clock, self._poll_s = stores, clock, poll_s
        self._halt = threading.Event()
        self._transport: Transport = transport or (
            lambda: SafeTransport(private=private, advice=webhook_delivery.PRIVATE_ADVICE, halt=self._halt)
        )
        self._posting = ThreadPoolExecutor(MOST, thread_name_prefix="webhook")
        self._going: set[asyncio.Task[None]] = set()
        self._busy: Counter[str] = Counter()
        self._refusing: set[str] = set()
        """Webhooks whose receivers did not take what they were sent last."""
        self._served: dict[str, int] = {}
        """When each was served last, by a count."""
        self._turn = 0
        self._again = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._loops = [asyncio.create_task(loop()) for loop in (self._deliver, self._forget)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._halt.set()
        self._again.set()
        deliver, forget = self._loops
        forget.cancel()
        # Not cancelled: in Python 3.11 ``wait_for`` may swallow that when what it waits for comes at the same moment.
        await asyncio.gather(deliver, forget, return_exceptions=True)
        if self._going:
            await asyncio.wait(self._going, timeout=LEAVE_S)
        self._posting.shutdown(wait=False, cancel_futures=True)

    def wake(self) -> None:
        """Look at once: something may be due."""
        self._again.set()

    # --- the loops ------------------------------------------------------------------------

    async def _deliver(self) -> None:
        while not self._halt.is_set():
            rest_s = self._poll_s
            self._again.clear()
            try:
                await self._start_due()
            except StoreUnusable as error:
                log.warning("no webhook is told now: %s", error)
                rest_s = AWAY_S
            except Exception:
                log.exception("a fault in telling webhooks; it goes on in %g s", AWAY_S)
                rest_s = AWAY_S
            if not self._halt.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._again.wait(), rest_s)

    async def _forget(self) -> None:
        while True:
            try:
                while await self._stores.run(lambda store: store.webhooks.forget(now_us=self._clock())):
                    pass
            except StoreUnusable as error:
                log.warning("old deliveries of webhooks are not removed now: %s", error)
            await asyncio.sleep(FORGET_EVERY_S)

    # --- deliveries -----------------------------------------------------------------------

    async def _start_due(self) -> None:
        if len(self._going) >= MOST:
            return
        due = await self._stores.run(lambda store: store.webhooks.due())
        now = self._clock()
        wanted = self._wanted([name for name, next_us in due.items() if next_us <= now])
        if not wanted:
            return
        until = now + webhook_delivery.DELIVERY_LEASE_US
        taken = await self._stores.run(lambda store: store.webhooks.take(wanted, now_us=now, until_us=until))
        for each in taken:
            self._busy[each.delivery.webhook] += 1
            task = asyncio.create_task(self._one(each))
            self._going.add(task)
            task.add_done_callback(self._going.discard)

    def _wanted(self, names: list[str]) -> dict[str, int]:
        """Whose deliveries are sent next, and how many of each."""
        wanted: Counter[str] = Counter()
        room = MOST - len(self._going)
        names.sort(key=lambda name: self._served.get(name, 0))
        for _ in range(EACH):
            for name in names:
                at_once = 1 if name in self._refusing else EACH
                if room and self._busy[name] + wanted[name] < at_once:
                    wanted[name] += 1
                    room -= 1
                    self._turn += 1
                    self._served[name] = self._turn
        return dict(wanted)

    async def _one(self, due: DueDelivery) -> None:
        name = due.delivery.webhook
        try:
            told = await self._sent(due)
            if told.sent:
                (self._refusing.discard if told.outcome is DeliveryOutcome.DELIVERED else self._refusing.add)(
                    name
                )
            await self._record(due, told)
        except StoreUnusable as error:
            log.warning("delivery %s is sent again later: %s", due.delivery.delivery, error)
        finally:
            self._busy[name] -= 1
            if not self._busy[name]:
                del self._busy[name]
            self._again.set()

    async def _sent(self, due: DueDelivery) -> DeliveryResult:
        try:
            said = await self._stores.run(lambda store: webhook_delivery.body(store, due, self._clock))
            return await asyncio.get_running_loop().run_in_executor(
                self._posting,
                lambda: webhook_delivery.send(due, said, clock=self._clock, transport=self._transport),
            )
        except SendAborted:
            return webhook_delivery.aborted(self._clock)
        except webhook_delivery.NotVisible as error:
            return webhook_delivery.dropped(error)
        except StoreUnusable:
            raise
        except Exception:
            log.exception("delivery %s could not be made", due.delivery.delivery)
            return webhook_delivery.faulty(due, self._clock)

    async def _record(self, due: DueDelivery, told: DeliveryResult) -> None:
        """What was answered is kept, however long the store is away; but no longer than the delivery is ours."""
        while True:
            try:
                await self._stores.run(lambda store: store.webhooks.told(due, told, now_us=self._clock()))
            except StoreUnavailable:
                if self._halt.is_set() or self._clock() > (due.delivery.next_us or 0):
                    raise
                await asyncio.sleep(AWAY_S)
            else:
                return
