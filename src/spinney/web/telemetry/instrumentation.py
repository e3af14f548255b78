"""Measures every request: a line in the log, metrics for Prometheus, and a span for collectors of traces.

It is one layer around everything, so that requests that are refused before any route count, too. Figures are labelled
with the route (``/api/v1/jobs/{job}``), never with the address, of which there are as many as jobs.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spinney.tracing import current, traceparents
from spinney.web.media_types import EVENT_STREAM
from spinney.web.settings import ServerSettings
from spinney.web.telemetry.request_spans import Span, Spans

log = logging.getLogger("spinney.server.requests")

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0)
_OTHER = "(none)"
"""The label for requests to which no route belongs."""
_TRACE_HEADER = traceparents.HEADER.encode()


class Requests:
    """The Prometheus metrics of the requests to one application."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("method", "route", "status")
        self.count = Counter("spinney_http_requests", "Requests answered.", labels, registry=registry)
        self.seconds = Histogram(
            "spinney_http_request_seconds",
            "Time to the end of the answer; event streams left out.",
            labels[:2],
            buckets=_BUCKETS,
            registry=registry,
        )


def add_to(app: FastAPI, settings: ServerSettings) -> None:
    """Add the layer around everything that ``app`` already has. Raises UsageError where ``otlp`` is set and
    its packages are missing."""
    spans: Spans = _handed_on
    if settings.otlp is not None:
        from spinney.web.telemetry.tracing import Tracing

        tracing = Tracing(settings.otlp)
        app.state.beside.append(tracing)
        spans = tracing.span
    app.add_middleware(RequestMetrics, requests=app.state.requests, spans=spans)


@contextmanager
def _handed_on(method: str, headers: list[tuple[bytes, bytes]]) -> Iterator[None]:
    """Stand in for tracing where it is off: jobs that the request submits still join the trace that the request
    names."""
    header = next((value for name, value in headers if name == _TRACE_HEADER), b"")
    # White space behind a value is none of it, and some parsers leave it.
    current.enter(traceparents.valid(header.decode("latin-1").strip(" \t")))
    yield


class RequestMetrics:
    """The layer, in plain ASGI, so that event streams pass through it unbuffered. A request is counted when
    its answer has ended, also when it was broken off: then its status is ``cut off`` if nothing had been
    sent."""

    def __init__(self, app: ASGIApp, requests: Requests, spans: Spans) -> None:
        self._app, self._requests, self._spans = app, requests, spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status, streams = time.perf_counter(), 0, False

        async def measured(message: Message) -> None:
            nonlocal status, streams
            if message["type"] == "http.response.start":
                status = message["status"]
                kind = dict(message["headers"]).get(b"content-type", b"").decode("latin-1")
                streams = kind.startswith(EVENT_STREAM)
            await send(message)

        with self._spans(scope["method"], scope["headers"]) as span:
            try:
                await self._app(scope, receive, measured)
            finally:
                self._note(scope, status, streams, time.perf_counter() - begun, span)

    def _note(self, scope: Scope, status: int, streams: bool, took_s: float, span: Span | None) -> None:
        """Count a request that has been answered, end its span, and log it: without its query, which may contain
        secrets, and with control characters of the path escaped."""
        route = getattr(scope.get("route"), "path", _OTHER)
        # Methods are words of the client's: those that no route has are one.
        method = scope["method"] if route != _OTHER else _OTHER
        principal = getattr(scope.get("state", {}).get("principal"), "name", None)
        self._requests.count.labels(method, route, str(status or "cut off")).inc()
        if not streams:
            self._requests.seconds.labels(method, route).observe(took_s)
        if span is not None:
            span.end(route, status, principal)
        if log.isEnabledFor(logging.INFO):
            # The path as it came may hold control characters; a query may hold secrets, and is left out.
            log.info(
                "%s %s %s %.1f ms %s",
                scope["method"],
                ascii(scope["path"])[1:-1],
                status,
                took_s * 1000,
                ascii(principal)[1:-1] if principal else "-",
            )
