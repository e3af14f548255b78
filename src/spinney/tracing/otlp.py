"""Sends spans to a collector by OTLP/HTTP: loaded only where a setting names one, because it needs more packages."""

import logging
import threading
from collections.abc import Mapping

from spinney.model.errors import UsageError
from spinney.tracing.traceparents import ids
from spinney.version import VERSION

try:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ImportError as error:
    raise UsageError(
        f"otlp needs packages that are missing ({error}); install the extra 'tracing', or leave otlp out"
    ) from None

log = logging.getLogger(__name__)

TIMEOUT_S = 5
"""How long one request to the collector may take; an end of the process waits no longer than that for what is left."""


def resource(service: str, **attributes: str) -> Resource:
    """Return the description of this process that goes with each of its spans."""
    return Resource.create({"service.name": service, "service.version": VERSION, **attributes})


class SpanBatches(BatchSpanProcessor):
    """Sends spans in batches, from a thread of its own. What a collector does not take is dropped, and logged: no work
    ever waits for it."""

    def __init__(self, collector: str) -> None:
        super().__init__(OTLPSpanExporter(endpoint=collector, timeout=TIMEOUT_S))

    def shutdown(self) -> None:
        """Send what is left within ``TIMEOUT_S``, and drop the rest. By itself the SDK would wait so long for each of
        the batches."""
        end = threading.Thread(target=super().shutdown, name="spans-end", daemon=True)
        end.start()
        end.join(TIMEOUT_S)
        if end.is_alive():
            log.warning("the last spans are dropped: the collector did not take them within %s s", TIMEOUT_S)


class SpanSender:
    """Sends spans of a node that are over, with ids and times that are known."""

    def __init__(self, collector: str, node: str) -> None:
        self._batches = SpanBatches(collector)
        self._resource = resource("spinney-node", **{"service.instance.id": node})

    def send(
        self,
        name: str,
        *,
        traceparent: str,
        parent: str,
        begun_us: int,
        ended_us: int,
        attributes: Mapping[str, str | int],
        error: str | None = None,
    ) -> None:
        """Send a span from ``begun_us`` to ``ended_us`` (microseconds since 1970), below the span ``parent``.
        ``error``: why it failed."""
        status = trace.Status() if error is None else trace.Status(trace.StatusCode.ERROR, error)
        self._batches.on_end(
            ReadableSpan(
                name,
                context=_span_context(traceparent, is_remote=False),
                parent=_span_context(parent, is_remote=True),
                resource=self._resource,
                attributes=attributes,
                kind=trace.SpanKind.CONSUMER,
                status=status,
                start_time=begun_us * 1000,
                end_time=ended_us * 1000,
            )
        )

    def close(self) -> None:
        """Send what is left, and stop."""
        self._batches.shutdown()


def _span_context(traceparent: str, *, is_remote: bool) -> trace.SpanContext:
    trace_id, span_id, flags = ids(traceparent)
    return trace.SpanContext(trace_id, span_id, is_remote, trace.TraceFlags(flags))
