"""Send the deliveries of webhooks from a server, in the background.

Any number of servers share the work: a server leases due deliveries from the store for a while, sends them,
and records the results there. It sends up to eight deliveries at once, two for each webhook, or one while the
receiver of that webhook fails to accept them. The webhook that was served longest ago comes first. So a
receiver that is slow or down delays its own deliveries, and hardly those of others. One that has accepted
none for a while is tried every few seconds only, however many deliveries wait for it: each try is two
durable transactions of the store.

The loop runs in the server's event loop; requests block in threads of their own, of which there are as many
as deliveries at once. A server that dies leaves leases, which end by themselves. One that is stopped ends its
requests and gives the deliveries back at once.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from spinney.features.webhooks import delivery as webhook_delivery
from spinney.model.errors import StoreUnavailable, StoreUnusable
from spinney.model.settings.webhooks import DeliveryOutcome, DeliveryResult, DueDelivery
from spinney.reports.http_post import SendAborted
from spinney.web.request_context import now_us
from spinney.web.store_pool import StorePool

if TYPE_CHECKING:
    from spinney.reports.safe_transport import SafeTransport

log = logging.getLogger(__name__)

SENDS_MAX = 8
"""The maximum number of deliveries that are being sent at once."""
SENDS_PER_WEBHOOK = 2
"""The maximum number of deliveries of one webhook that are being sent at once."""
REFUSALS_IN_A_ROW = 8
"""When a receiver has refused so many deliveries in a row, the sender pauses between two of them."""
REFUSED_PAUSE_S = 5.0
"""The length of that pause, in seconds."""
POLL_S = 1.0
"""The time between two queries for due deliveries."""
STORE_RETRY_S = 5.0
"""The time until the next attempt when the store did not answer."""
EXPIRE_EVERY_S = 3600.0
"""The time between two removals of old deliveries."""
STOP_S = 15.0
"""How long to wait at the end for deliveries that are being sent, after they have been told to stop."""


class WebhookSender:
    """Sends due deliveries inside ``async with``.

    Leaving the block stops those that are being sent; they are due at once again, for other servers. It
    waits at most ``STOP_S`` seconds for that. An error of the store or of a delivery never ends the task.
    """

    def __init__(
        self,
        stores: StorePool,
        *,
        private: bool = False,
        poll_s: float = POLL_S,
        measure: Callable[[str, float], None] = lambda outcome, took_s: None,
    ) -> None:
        """``private``: URLs may lead to loopback and private addresses. ``measure`` is called with the outcome of each
        try and the seconds that it took."""
        self._stores, self._private, self._poll_s, self._measure = stores, private, poll_s, measure
        self._halt = threading.Event()
        self._post_threads = ThreadPoolExecutor(SENDS_MAX, thread_name_prefix="webhook")
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending: Counter[str] = Counter()
        """The number of deliveries that are being sent, by webhook."""
        self._refusals: Counter[str] = Counter()
        """How many deliveries in a row the receiver of each webhook has refused."""
        self._pause_until_s: dict[str, float] = {}
        """Until when the sender pauses, by webhook; monotonic, in seconds."""
        self._last_turn: dict[str, int] = {}
        """The turn in which each webhook was last served."""
        self._turn = 0
        """Grows with each delivery that is chosen."""
        self._wakeup = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._loops = [asyncio.create_task(loop()) for loop in (self._deliver, self._expire)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._halt.set()
        self._wakeup.set()
        deliver, expire = self._loops
        expire.cancel()
        # Not cancelled: in Python 3.11 ``wait_for`` may lose a cancellation that comes together with the event.
        await asyncio.gather(deliver, expire, return_exceptions=True)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_S)
        # Not waited for: a thread may be in a name look-up, which cannot be interrupted.
        self._post_threads.shutdown(wait=False, cancel_futures=True)

    def _safe_transport(self) -> "SafeTransport":
        from spinney.reports.safe_transport import (
            SafeTransport,  # with httpx, which no server without webhooks needs
        )

        return SafeTransport(private=self._private, advice=webhook_delivery.PRIVATE_ADVICE, halt=self._halt)

    # --- the loops ------------------------------------------------------------------------

    async def _deliver(self) -> None:
        """Start due deliveries, at each poll and whenever the task is woken, until the sender is stopped."""
        while not self._halt.is_set():
            rest_s = self._poll_s
            self._wakeup.clear()
            try:
                await self._start_due()
            except StoreUnusable as error:
                log.warning("webhooks are not delivered now: %s", error)
                rest_s = STORE_RETRY_S
            except Exception:
                log.exception("the delivery of webhooks failed; it is tried again in %g s", STORE_RETRY_S)
                rest_s = STORE_RETRY_S
            if not self._halt.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wakeup.wait(), rest_s)

    async def _expire(self) -> None:
        """Remove old deliveries, now and then, in bounded transactions. Sweeps of nodes do so, too; a
        server may run without any."""
        while True:
            try:
                while await self._stores.run(lambda store: store.webhooks.remove_expired(now_us=now_us())):
                    pass
            except StoreUnusable as error:
                log.warning("old deliveries of webhooks are not removed now: %s", error)
            await asyncio.sleep(EXPIRE_EVERY_S)

    # --- deliveries -----------------------------------------------------------------------

    async def _start_due(self) -> None:
        """Lease due deliveries, as many as may be sent now, and start a task for each."""
        if len(self._tasks) >= SENDS_MAX:
            return
        first_due_us = await self._stores.run(lambda store: store.webhooks.first_due_us())
        now = now_us()
        chosen = self._choose([name for name, due_us in first_due_us.items() if due_us <= now])
        if not chosen:
            return
        until = now + webhook_delivery.DELIVERY_LEASE_US
        leased = await self._stores.run(
            lambda store: store.webhooks.lease(chosen, now_us=now, until_us=until)
        )
        for due in leased:
            self._sending[due.delivery.webhook] += 1
            task = asyncio.create_task(self._deliver_one(due))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _choose(self, names: list[str]) -> dict[str, int]:
        """Choose among these webhooks, which have due deliveries, and return how many deliveries of
        each to send now.

        One delivery of each webhook is chosen before a second one of any, and the one that was served
        longest ago first. A webhook that is chosen has had its turn, even if another server takes the
        delivery.
        """
        leases: Counter[str] = Counter()
        free, now_s = SENDS_MAX - len(self._tasks), time.monotonic()
        names = [name for name in names if self._pause_until_s.get(name, 0.0) <= now_s]
        names.sort(key=lambda name: self._last_turn.get(name, 0))
        for _ in range(SENDS_PER_WEBHOOK):
            for name in names:
                at_once = 1 if self._refusals[name] else SENDS_PER_WEBHOOK
                if free and self._sending[name] + leases[name] < at_once:
                    leases[name] += 1
                    free -= 1
                    self._turn += 1
                    self._last_turn[name] = self._turn
        return dict(leases)

    async def _deliver_one(self, due: DueDelivery) -> None:
        """Send one delivery and record its result.

        Whatever becomes of it, its place among those being sent is free again, and the loop is woken
        to fill that. What cannot be recorded is sent again when its lease ends.
        """
        name, begun_s = due.delivery.webhook, time.monotonic()
        try:
            result = await self._send(due)
            if result.sent:
                self._measure(str(result.outcome), time.monotonic() - begun_s)
                self._count_refusals(name, accepted=result.outcome is DeliveryOutcome.DELIVERED)
            await self._record(due, result)
        except StoreUnusable as error:
            log.warning("delivery %s is sent again later: %s", due.delivery.delivery, error)
        finally:
            self._sending[name] -= 1
            if not self._sending[name]:
                del self._sending[name]
            self._wakeup.set()

    def _count_refusals(self, name: str, *, accepted: bool) -> None:
        """Count how many deliveries in a row the receiver of a webhook has refused, and pause after many."""
        if accepted:
            self._refusals.pop(name, None)
            self._pause_until_s.pop(name, None)
            return
        self._refusals[name] += 1
        if self._refusals[name] >= REFUSALS_IN_A_ROW:
            self._pause_until_s[name] = time.monotonic() + REFUSED_PAUSE_S

    async def _send(self, due: DueDelivery) -> DeliveryResult:
        """Send a delivery. Its errors become results; raises StoreUnusable when the store cannot be read."""
        try:
            body = await self._stores.run(lambda store: webhook_delivery.body(store, due, now_us))
            return await asyncio.get_running_loop().run_in_executor(
                self._post_threads,
                lambda: webhook_delivery.send(due, body, clock=now_us, transport=self._safe_transport),
            )
        except SendAborted:
            return webhook_delivery.aborted(now_us)
        except webhook_delivery.NotVisible as error:
            return webhook_delivery.dropped(error)
        except StoreUnusable:
            raise
        except Exception:
            log.exception("delivery %s could not be made", due.delivery.delivery)
            return webhook_delivery.faulty(due, now_us)

    async def _record(self, due: DueDelivery, result: DeliveryResult) -> None:
        """Record the result, and try again while the store is unavailable, until the lease of the
        delivery ends.

        After that another server may have sent it, and the result would be ignored. Raises
        StoreUnavailable then, and when the sender is stopped.
        """
        while True:
            try:
                await self._stores.run(
                    lambda store: store.webhooks.record_result(due, result, now_us=now_us())
                )
            except StoreUnavailable:
                if self._halt.is_set() or now_us() > (due.delivery.next_us or 0):
                    raise
                await asyncio.sleep(STORE_RETRY_S)
            else:
                return
