"""Traces by OpenTelemetry, sent to an OTLP/HTTP receiver: loaded only when ``otlp`` of ``[server]`` asks for them.

A request that has a header ``traceparent`` (W3C Trace Context) is a part of that trace.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

# First, because it raises UsageError where the packages are missing that are imported below.
from spinney.tracing import otlp  # isort: skip

from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider

from spinney.tracing import current
from spinney.web.telemetry.request_spans import Span


class Tracing:
    """Makes and sends spans within ``async with``; leaving sends what has not been sent yet."""

    def __init__(self, receiver: str) -> None:
        self._provider = TracerProvider(resource=otlp.resource("spinney-server"), shutdown_on_exit=False)
        self._provider.add_span_processor(otlp.SpanBatches(receiver))
        self._tracer = self._provider.get_tracer("spinney.server")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._provider.shutdown)

    @contextmanager
    def span(self, method: str, headers: list[tuple[bytes, bytes]]) -> Iterator[Span]:
        """Begin the span of one request; it continues the trace that ``headers`` name, if they do (W3C Trace
        Context)."""
        context = propagate.extract({n.decode("latin-1"): v.decode("latin-1") for n, v in headers})
        current.use_tracer(self._tracer)
        # Not that of whoever started the server, where the SDK is disabled and makes no spans.
        current.enter(None)
        with self._tracer.start_as_current_span(method, context, kind=trace.SpanKind.SERVER) as span:
            yield _Request(span, method)


class _Request:
    """The span of one request. Its attributes are named after OpenTelemetry's semantic conventions for
    HTTP."""

    def __init__(self, span: trace.Span, method: str) -> None:
        self._span, self._method = span, method

    def end(self, route: str, status: int, principal: str | None) -> None:
        """Set name and attributes of the span, now that route and status are known, and mark it as an error
        for a status of 500 or more."""
        self._span.update_name(f"{self._method} {route}")
        self._span.set_attribute("http.request.method", self._method)
        self._span.set_attribute("http.route", route)
        self._span.set_attribute("http.response.status_code", status)
        if principal is not None:
            self._span.set_attribute("enduser.id", principal)
        if status >= 500:
            self._span.set_status(trace.StatusCode.ERROR)
