"""The stage that calls a webhook: it sends one request, and decides the outcome of its job.

One attempt of the stage is one request; the delays between them are kept by deferring. ``job.data`` counts
the tries, because attempts that were deferred are not counted. ``post_signed`` is also used for the webhooks
that operators made.
"""

import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import orjson

from spinney.define.job import Job
from spinney.model.attempts.signals import Defer, Fail, Hold
from spinney.model.errors import UsageError
from spinney.model.settings.webhooks import shown
from spinney.reports import http_post, retry_times, signatures
from spinney.reports.http_post import Response, Transport, Unreachable
from spinney.reports.settings import WebhookSettings

ENTRY = "webhook"
"""The entry of ``job.data``: ``delivery``, ``tries``, and of the last answer ``status`` and ``answer``."""
GONE = 410
"""The status by which a receiver says that it wants no more requests (RFC 9110, section 15.5.11): it is not retried."""

Admit = Callable[[str], None]
"""Checks whether a URL may be called, before each try: returns when it may, raises ValueError when it may not (the job
fails), or OSError when this cannot be decided now (the job is tried again)."""


def call(
    job: Job,
    url: str,
    body: Mapping[str, Any],
    *,
    secret: str,
    delivery: str | None,
    settings: Callable[[], WebhookSettings],
    clock: Callable[[], float],
    admit: Admit | None,
    transport: Transport | None,
) -> dict[str, Any]:
    """Send the request once, and return the entry of ``job.data`` when it was accepted (2xx).

    ``secret``: the name of the secret. ``delivery``: the id for the receiver; None: one is made at the first
    try. Raises Fail for 410, for a URL that may not be called and after the last try; Defer after any other
    answer (also a redirect) or none; Hold when the settings are unusable.
    """
    if admit is None and transport is None:
        raise Fail(
            "nothing says which hosts may be called; hand Outbox an admit= or a transport=", retryable=False
        )
    try:
        webhook_settings = settings()
        key = webhook_settings.secret(secret, os.environ)
    except UsageError as error:
        raise Hold(f"{error}; then release this job") from None
    entry = _entry_before_try(job.data.get(ENTRY), delivery)
    # Counted before the request is sent: a request that kills the worker each time must end, too.
    job.data[ENTRY] = entry = entry | {"tries": entry["tries"] + 1}
    now = clock()
    try:
        if admit is not None:
            admit(url)
        answer = post_signed(
            url, body, key, entry["delivery"], now, timeout_s=webhook_settings.timeout_s, transport=transport
        )
    except ValueError as error:
        _reset_tries(job, entry)
        raise Fail(f"{shown(url)} may not be called: {error}", retryable=False) from None
    except (OSError, Unreachable) as error:
        _try_again(job, entry, webhook_settings, f"{shown(url)} did not answer: {error}", None)
    job.data[ENTRY] = entry = entry | {"status": answer.status, "answer": answer.text}
    if _is_accepted(answer.status):
        return entry
    outcome = f"{shown(url)} answered {answer.status}{': ' if answer.text else ''}{answer.text}"
    if answer.status == GONE:
        raise Fail(f"{outcome}; it wants no more of these, so take it out of the settings", retryable=False)
    if 300 <= answer.status < 400:
        outcome = f"{outcome} (redirects are not followed: give the URL that it leads to)"
    return _try_again(
        job, entry, webhook_settings, outcome, retry_times.retry_after_s(answer.retry_after, now)
    )


def post_signed(
    url: str,
    body: Mapping[str, Any],
    key: str,
    delivery: str,
    now: float,
    *,
    timeout_s: float,
    transport: Transport | None,
) -> Response:
    """Send a request signed with ``key``, for webhooks of applications and of operators alike.

    The body is JSON with sorted keys, so that a repeated request has the same bytes. ``delivery``: the id by which a
    receiver recognizes a repeated request. ``now``: seconds since 1970.

    Raises Unreachable when there was no answer, ValueError for a forbidden URL."""
    text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    headers = {
        signatures.DELIVERY: delivery,
        signatures.TIMESTAMP: str(int(now)),
        signatures.SIGNATURE: signatures.sign(key, text, int(now)),
    }
    return http_post.post(url, text, headers, timeout_s=timeout_s, transport=transport)


def _entry_before_try(entry: dict[str, Any] | None, delivery: str | None) -> dict[str, Any]:
    """Return the entry with which a try begins. Where the last answer was final, a rerun or retry begins, which has all
    tries; its entry has no status, so that the next try of it is not taken for a beginning."""
    if not entry:
        return {"delivery": delivery or uuid.uuid4().hex, "tries": 0}
    status = entry.get("status", 0)
    is_final = _is_accepted(status) or status == GONE
    return {"delivery": entry["delivery"], "tries": 0} if is_final else entry


def _is_accepted(status: int) -> bool:
    return 200 <= status < 300


def _try_again(
    job: Job, entry: dict[str, Any], settings: WebhookSettings, why: str, requested_s: float | None
) -> NoReturn:
    """Raise Defer with the delay before the next try, or Fail after the last one; then the tries are reset, so that a
    retry of the job has all of them again. ``requested_s``: what the receiver asks for with Retry-After."""
    tries = entry["tries"]
    if tries >= settings.tries:
        _reset_tries(job, entry)
        raise Fail(f"given up after {tries} tries: {why}; fix that and retry this job", retryable=False)
    pause_s = retry_times.by_tries_s(tries, least_s=settings.retry_least_s, most_s=settings.retry_most_s)
    raise Defer(max(pause_s, min(requested_s or 0.0, settings.retry_after_most_s)), why)


def _reset_tries(job: Job, entry: dict[str, Any]) -> None:
    """Let a retry of the job begin with all its tries, under the same delivery."""
    job.data[ENTRY] = entry | {"tries": 0}
