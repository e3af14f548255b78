"""What a server counts beside its requests: webhooks, sign-ins, errors of the database.

Labels are words of this module and classes of errors, never names that a client sends."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram

from spinney.model.errors import BadLogin, Forbidden, StoreUnusable, TooManyAttempts, store_error_kinds
from spinney.web.problems import TooMany

SignInMethod = Literal["password", "link", "provider"]
SignInOutcome = Literal["ok", "refused", "throttled"]

_WEBHOOK_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class ServerCounters:
    """The counters of one application. Any thread may add to them.

    Each is there with 0 from the start: Prometheus sees no increase where a counter begins with 1."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._deliveries = Counter(
            "spinney_webhook_deliveries", "Tries to deliver a webhook.", ["outcome"], registry=registry
        )
        self._delivery_seconds = Histogram(
            "spinney_webhook_delivery_seconds",
            "Time to the receiver's answer, or until it was given up.",
            buckets=_WEBHOOK_BUCKETS,
            registry=registry,
        )
        self._sign_ins = Counter(
            "spinney_sign_ins", "Sign-ins of people.", ["method", "outcome"], registry=registry
        )
        self._errors = Counter(
            "spinney_database_errors", "Calls of the store that failed.", ["kind"], registry=registry
        )
        for outcome in ("delivered", "due", "failed"):
            self._deliveries.labels(outcome)
        for method, outcome in product(get_args(SignInMethod), get_args(SignInOutcome)):
            self._sign_ins.labels(method, outcome)
        for kind in store_error_kinds():
            self._errors.labels(kind)

    def delivered(self, outcome: str, took_s: float) -> None:
        """Count a try. ``outcome``: ``delivered``, ``due`` (it is tried again) or ``failed``."""
        self._deliveries.labels(outcome).inc()
        self._delivery_seconds.observe(took_s)

    def store_failed(self, error: StoreUnusable) -> None:
        """Count a call of the store that failed because of the database."""
        self._errors.labels(type(error).__name__).inc()

    @contextmanager
    def sign_in(self, method: SignInMethod) -> Iterator[None]:
        """Count what the block does as ``ok``, ``refused`` or ``throttled``; other errors, such as those of a
        database that does not answer, are not counted. Errors are raised as they are."""
        outcome: SignInOutcome | None = None
        try:
            yield
            outcome = "ok"
        except (BadLogin, Forbidden):
            outcome = "refused"
            raise
        except (TooManyAttempts, TooMany):
            outcome = "throttled"
            raise
        finally:
            if outcome is not None:
                self._sign_ins.labels(method, outcome).inc()
