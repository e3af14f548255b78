"""One delivery of a webhook: its body, one try to send it, and the result.

The body is read from the store when it is sent, with the rights that the webhook's maker has at that time:
secrets are redacted, a job that the maker may not see is not reported, and of a job that retention has
removed only the id is. No state is kept in between: if a sender dies, the delivery is due again a little
later, under the same id.

The order is lease (``SqlWebhooks.lease``), ``body``, ``send``, ``SqlWebhooks.record_result``. Between the
second and the last, no transaction is open.
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
from spinney.store.parts import Store

TIMEOUT_S = 10.0
"""The time limit of the connection, and of each read of the answer, in seconds."""
DELIVERY_LEASE_US = 120_000_000
"""How long a sender has a delivery, which is longer than it can take to send; then it is due again for any
sender."""
RETRY_LEAST_S, RETRY_MOST_S = 10.0, 3600.0
"""The limits of the time between two tries, which is about a quarter of the time since the first one."""
GIVE_UP_S = 86_400.0
"""How many seconds after the first try a delivery that has not been accepted has failed for good: a day."""
PARAMS_MAX_BYTES = 65_536
"""Longer parameters are left out; a receiver can read them from the API."""
_REASON_MAX = 500
"""How many characters of a reason are kept with a delivery."""

PRIVATE_ADVICE = (
    "give a public address, or set webhook_private = true in [server] of spinney.toml, start the server again and "
    "retry this delivery"
)
"""What to do about an address that is not allowed, where a server sends."""
Body = Mapping[str, Any]
"""The body of a delivery, before it becomes JSON."""


class NotVisible(Exception):
    """The webhook's maker may not see the job; nothing is sent, and the message is kept with the delivery."""


def deliver(
    store: Store, due: DueDelivery, *, clock: Callable[[], int], transport: Transport
) -> DeliveryResult:
    """Send a delivery, record its result in the store, and return it.

    ``clock`` returns microseconds since 1970 UTC. A delivery that the maker may not see is recorded as
    failed. Raises SendAborted; nothing is recorded then, and the delivery is due again when its lease
    ends.
    """
    try:
        result = send(due, body(store, due, clock), clock=clock, transport=transport)
    except NotVisible as error:
        result = dropped(error)
    store.webhooks.record_result(due, result, now_us=clock())
    return result


def body(store: Store, due: DueDelivery, clock: Callable[[], int]) -> Body:
    """Return the body of a delivery as a JSON object: the event, and the job as the webhook's maker may
    see it now.

    Parameters of more than ``PARAMS_MAX_BYTES`` are left out (null), and of a job that was removed there
    is only the id. A batch has the numbers of the jobs below it by state, as they are now, not as they were
    when it settled. Raises NotVisible.
    """
    delivery = due.delivery
    fields: dict[str, Any] = {
        "event": delivery.event,
        "delivery": delivery.delivery,
        "seq": delivery.seq,
        "at_us": delivery.at_us,
        "webhook": delivery.webhook,
        "batch": delivery.batch,
        "job": None,
    }
    if delivery.job_id is None:
        return fields
    queries = Queries(
        store=store,
        clock=clock,
        wake_nodes=lambda: None,
        by=due.by,
        rights=Rights(role=Role.VIEWER, within=due.within),
    )
    try:
        job = queries.job(delivery.job_id)
    except NoSuchJob:
        _require_removed(store, due, delivery.job_id)
        return fields | {"job": {"id": delivery.job_id}}
    fields["job"] = asdict(job)
    if len(orjson.dumps(job.params)) > PARAMS_MAX_BYTES:
        fields["job"]["params"] = None
    if delivery.batch:
        counts = queries.counts(Filter(root_id=job.root_id, below=job.lineage))
        fields["counts"] = {str(state): number for state, number in counts.items() if number}
    return fields


def _require_removed(store: Store, due: DueDelivery, job_id: int) -> None:
    """Raise NotVisible unless the job does not exist any more, and the maker would have been allowed to see it."""
    try:
        store.job(job_id)
    except NoSuchJob:
        if not due.narrowed:
            return
        raise NotVisible(
            f"not sent: job {job_id} was removed, so that it is unknown whether {due.by}, whose limits are narrower "
            f"now, might see it"
        ) from None
    raise NotVisible(
        f"not sent: {due.by}, who made this webhook, may not see job {job_id}; give {due.by} other limits and retry "
        f"this delivery, or make a webhook of your own"
    )


def send(
    due: DueDelivery,
    fields: Body,
    *,
    clock: Callable[[], int],
    transport: Transport,
) -> DeliveryResult:
    """Post a signed delivery, and return the result.

    It is delivered for a 2xx answer. It has failed for 410, which also pauses the webhook; for an address
    that is not allowed; and ``GIVE_UP_S`` after the first try. Otherwise it is due again later, not
    before the time in a ``Retry-After`` up to ``RETRY_MOST_S``. Redirects are not followed, and count as
    not accepted: they might lead to an internal address. Raises SendAborted.
    """
    try:
        answer = webhooks.post_signed(
            due.url,
            fields,
            due.secret,
            due.delivery.delivery,
            clock() / 1e6,
            timeout_s=TIMEOUT_S,
            transport=transport,
        )
    except ValueError as error:
        return DeliveryResult(outcome=DeliveryOutcome.FAILED, answer=printable(str(error), _REASON_MAX))
    except (OSError, Unreachable) as error:
        return _again(due, None, printable(str(error), _REASON_MAX), clock())
    if 200 <= answer.status < 300:
        return DeliveryResult(outcome=DeliveryOutcome.DELIVERED, status=answer.status, answer=answer.text)
    if answer.status == webhooks.GONE:
        return DeliveryResult(
            outcome=DeliveryOutcome.FAILED, status=answer.status, answer=answer.text, gone=True
        )
    retry_after_s = retry_times.retry_after_s(answer.retry_after, clock() / 1e6) or 0.0
    return _again(due, answer.status, _reason(answer), clock(), retry_after_s)


def dropped(error: NotVisible) -> DeliveryResult:
    """Return the result of a delivery that is not sent: failed, until an operator retries it."""
    return DeliveryResult(outcome=DeliveryOutcome.FAILED, answer=str(error), sent=False)


def aborted(clock: Callable[[], int]) -> DeliveryResult:
    """Return the result of a delivery that was interrupted: it may have arrived, and is due again at once."""
    return DeliveryResult(
        outcome=DeliveryOutcome.DUE, next_us=clock(), answer="its sender was stopped while it was being sent"
    )


def faulty(due: DueDelivery, clock: Callable[[], int]) -> DeliveryResult:
    """Return the result of an error in the sender: the delivery is tried again as if the receiver had been away."""
    return _again(due, None, "an internal error of the sender; see its log", clock())


def _again(
    due: DueDelivery, status: int | None, reason: str, now_us: int, retry_after_s: float = 0.0
) -> DeliveryResult:
    """Return the result of a try that was not accepted: due after a pause, or failed when ``GIVE_UP_S``
    are over."""
    age_s = max(0.0, (now_us - due.since_us) / 1e6)
    if age_s >= GIVE_UP_S:
        return DeliveryResult(outcome=DeliveryOutcome.FAILED, status=status, answer=reason)
    draw = random.random()  # noqa: S311 - spreads retries
    pause_s = retry_times.by_age_s(age_s, least_s=RETRY_LEAST_S, most_s=RETRY_MOST_S, draw=draw)
    pause_s = max(pause_s, min(retry_after_s, RETRY_MOST_S))
    return DeliveryResult(
        outcome=DeliveryOutcome.DUE, next_us=now_us + round(pause_s * 1e6), status=status, answer=reason
    )


def _reason(answer: Response) -> str:
    """Return the text that is kept of an answer that does not accept the delivery: its body, or the advice about a
    redirect."""
    if 300 <= answer.status < 400:
        return "redirects are not followed; set the URL that the answer redirects to"
    return answer.text
