"""The stage of a webhook: whether it was taken, and when it is tried again."""

import os
import random
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

Admit = Callable[[str], None]
"""Says whether a URL may be called: returns, or raises ValueError (never: the job fails) or OSError (nobody can tell
now: it is tried again). Called before each try."""


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
    """Send it once. Returns the answer when it was taken (2xx); else raises what becomes of the job.

    ``secret``: its name. 410 fails for good; any other answer, a redirect too, or none is tried again, a finite
    number of times.
    """
    if admit is None and transport is None:
        raise Fail(
            "nothing says which hosts may be called; hand Outbox an admit= or a transport=", retryable=False
        )
    try:
        where = settings()
        key = where.secret(secret, os.environ)
    except UsageError as error:
        raise Hold(f"{error}; then release this job") from None
    kept: dict[str, Any] = job.data.get(ENTRY) or {"delivery": delivery or uuid.uuid4().hex, "tries": 0}
    # Counted before it goes out: what kills the worker each time must come to an end, too.
    job.data[ENTRY] = kept = kept | {"tries": kept["tries"] + 1}
    now = clock()
    try:
        if admit is not None:
            admit(url)
        answer = post_signed(
            url, body, key, kept["delivery"], now, timeout_s=where.timeout_s, transport=transport
        )
    except ValueError as error:
        raise Fail(f"{shown(url)} may not be called: {error}", retryable=False) from None
    except (OSError, Unreachable) as error:
        _again(job, kept, where, f"{shown(url)} did not answer: {error}", None)
    job.data[ENTRY] = kept = kept | {"status": answer.status, "answer": answer.text}
    if 200 <= answer.status < 300:
        return kept
    told = f"{shown(url)} answered {answer.status}{': ' if answer.text else ''}{answer.text}"
    if answer.status == GONE:
        _afresh(job, kept)
        raise Fail(f"{told}; it wants no more of these, so take it out of the settings", retryable=False)
    if 300 <= answer.status < 400:
        told = f"{told} (redirects are not followed: give the URL that it leads to)"
    return _again(job, kept, where, told, retry_times.retry_after_s(answer.retry_after, now))


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
    """Send it, signed with ``key``. Raises Unreachable when there was no answer, ValueError where it may not go."""
    text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    headers = {
        signatures.DELIVERY: delivery,
        signatures.TIMESTAMP: str(int(now)),
        signatures.SIGNATURE: signatures.sign(key, text, int(now)),
    }
    return http_post.post(url, text, headers, timeout_s=timeout_s, transport=transport)


def _again(
    job: Job, kept: dict[str, Any], settings: WebhookSettings, why: str, asked_s: float | None
) -> NoReturn:
    tries = kept["tries"]
    if tries >= settings.tries:
        _afresh(job, kept)
        raise Fail(f"given up after {tries} tries: {why}; mend that and retry this job", retryable=False)
    draw = random.random()  # noqa: S311 - it only spreads what failed together
    pause_s = retry_times.by_tries_s(
        tries, least_s=settings.retry_least_s, most_s=settings.retry_most_s, draw=draw
    )
    raise Defer(max(pause_s, min(asked_s or 0.0, settings.retry_after_most_s)), why)


def _afresh(job: Job, kept: dict[str, Any]) -> None:
    """Whoever retries the job gives it all its tries again, under the same delivery."""
    job.data[ENTRY] = kept | {"tries": 0}
