"""One delivery of a webhook that an operator made: what it says, sent once, and what becomes of it then.

What is told is looked up when it is sent, through the eyes that the webhook's maker has then: secrets are masked, a
job that is out of his sight is not told of, and of one that is no more nothing is told but its number. In between
nothing is kept: who dies while he sends leaves a delivery that is due again a little later, under the same id.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import orjson

from spinney.model.access import Rights, Role
from spinney.model.errors import NoSuchJob
from spinney.model.jobs import Filter
from spinney.model.settings.webhooks import DeliveryOutcome, DeliveryResult, DueDelivery
from spinney.reports import retry_times, webhooks
from spinney.reports.http_post import Response, Transport, Unreachable
from spinney.reports.printable import printable
from spinney.service.queries import Queries
from spinney.store.contract import Store

TIMEOUT_S = 10.0
"""For connecting, and for each part of the answer."""
DELIVERY_LEASE_US = 120_000_000
"""So long a delivery is its sender's. Longer than it may take; then it is due again."""
RETRY_LEAST_S, RETRY_MOST_S = 10.0, 3600.0
"""Between two tries: a quarter of the time since the first, within these."""
GIVE_UP_S = 86_400.0
"""After the first try."""
PARAMS_MAX_BYTES = 65_536
"""Longer parameters are left out: who wants them asks for the job."""
_REASON_MAX = 500

PRIVATE_ADVICE = (
    "give a public address, or set webhook_private = true in [server] of spinney.toml, start the server again and "
    "retry this delivery"
)
Body = Mapping[str, Any]


class NotVisible(Exception):
    """The webhook's maker may not see the job; nothing is sent, and the message is kept with the delivery."""


def deliver(
    store: Store, due: DueDelivery, *, clock: Callable[[], int], transport: Transport
) -> DeliveryResult:
    """Say it, and record what came of it. ``clock``: microseconds since 1970 UTC. Raises SendAborted."""
    try:
        told = send(due, body(store, due, clock), clock=clock, transport=transport)
    except NotVisible as error:
        told = dropped(error)
    store.webhooks.record_result(due, told, now_us=clock())
    return told


def body(store: Store, due: DueDelivery, clock: Callable[[], int]) -> Body:
    """What is said. Raises NotVisible."""
    what = due.delivery
    said: dict[str, Any] = {
        "event": what.event,
        "delivery": what.delivery,
        "seq": what.seq,
        "at_us": what.at_us,
        "webhook": what.webhook,
        "batch": what.batch,
        "job": None,
    }
    if what.job_id is None:
        return said
    queries = Queries(
        store=store,
        clock=clock,
        wake_nodes=lambda: None,
        by=due.by,
        rights=Rights(role=Role.VIEWER, within=due.within),
    )
    try:
        job = queries.job(what.job_id)
    except NoSuchJob:
        _require_in_sight(store, due, what.job_id)
        return said | {"job": {"id": what.job_id}}
    told = asdict(job)
    if len(orjson.dumps(job.params)) > PARAMS_MAX_BYTES:
        told["params"] = None
    said["job"] = told
    if what.batch:
        below = queries.counts(Filter(root_id=job.root_id, below=job.lineage))
        said["counts"] = {str(state): number for state, number in below.items() if number}
    return said


def _require_in_sight(store: Store, due: DueDelivery, job_id: int) -> None:
    """Raise NotVisible unless the job is out of sight for nobody: it is there no more."""
    try:
        store.job(job_id)
    except NoSuchJob:
        if not due.narrowed:
            return
        raise NotVisible(
            f"not sent: job {job_id} is there no more, so that nobody can tell whether {due.by}, whose limits are "
            f"narrower now, might see it"
        ) from None
    raise NotVisible(
        f"not sent: job {job_id} is out of sight of {due.by}, who made this webhook; give {due.by} other limits and "
        f"retry this delivery, or make a webhook of your own"
    )


def send(
    due: DueDelivery,
    said: Body,
    *,
    clock: Callable[[], int],
    transport: Transport,
    draw: Callable[[], float] = random.random,
) -> DeliveryResult:
    """Post it, signed. Raises SendAborted; all else that goes wrong is told."""
    try:
        answer = webhooks.post_signed(
            due.url,
            said,
            due.secret,
            due.delivery.delivery,
            clock() / 1e6,
            timeout_s=TIMEOUT_S,
            transport=transport,
        )
    except ValueError as error:
        return DeliveryResult(outcome=DeliveryOutcome.FAILED, answer=printable(str(error), _REASON_MAX))
    except (OSError, Unreachable) as error:
        return _again(due, None, printable(str(error), _REASON_MAX), 0.0, clock(), draw())
    if 200 <= answer.status < 300:
        return DeliveryResult(outcome=DeliveryOutcome.DELIVERED, status=answer.status, answer=answer.text)
    if answer.status == webhooks.GONE:
        return DeliveryResult(
            outcome=DeliveryOutcome.FAILED, status=answer.status, answer=answer.text, gone=True
        )
    asked_s = retry_times.retry_after_s(answer.retry_after, clock() / 1e6) or 0.0
    return _again(due, answer.status, _reason(answer), asked_s, clock(), draw())


def dropped(error: NotVisible) -> DeliveryResult:
    """It is not sent at all, unless somebody retries it."""
    return DeliveryResult(outcome=DeliveryOutcome.FAILED, answer=str(error), sent=False)


def aborted(clock: Callable[[], int]) -> DeliveryResult:
    """Nobody knows whether it came: it goes again at once, with whoever sends next."""
    return DeliveryResult(
        outcome=DeliveryOutcome.DUE, next_us=clock(), answer="its sender was stopped while it was on its way"
    )


def faulty(due: DueDelivery, clock: Callable[[], int]) -> DeliveryResult:
    """A fault of our own kept it back; it is tried again as if the receiver had been away."""
    return _again(due, None, "a fault of the sender's own; its log tells more", 0.0, clock(), random.random())  # noqa: S311


def _again(
    due: DueDelivery, status: int | None, why: str, asked_s: float, now_us: int, draw: float
) -> DeliveryResult:
    age_s = max(0.0, (now_us - due.since_us) / 1e6)
    if age_s >= GIVE_UP_S:
        return DeliveryResult(outcome=DeliveryOutcome.FAILED, status=status, answer=why)
    pause_s = retry_times.by_age_s(age_s, least_s=RETRY_LEAST_S, most_s=RETRY_MOST_S, draw=draw)
    pause_s = max(pause_s, min(asked_s, RETRY_MOST_S))
    return DeliveryResult(
        outcome=DeliveryOutcome.DUE, next_us=now_us + round(pause_s * 1e6), status=status, answer=why
    )


def _reason(answer: Response) -> str:
    if 300 <= answer.status < 400:
        return "redirects are not followed: set the URL that it leads to"
    return answer.text
