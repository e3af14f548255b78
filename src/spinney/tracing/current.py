"""The span that this thread or task is in.

It is OpenTelemetry's current span where its API is loaded, and else the ``traceparent`` that was entered. Nothing is
imported for that: programs that do not use OpenTelemetry do not pay for it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import cache
from typing import Any

from spinney.tracing.traceparents import ids, of_attempt

_API = "opentelemetry.trace"
_entered: ContextVar[str | None] = ContextVar("spinney_traceparent", default=None)
_tracer: ContextVar[Any] = ContextVar("spinney_tracer", default=None)


def traceparent() -> str | None:
    """Return the ``traceparent`` of the current span; None outside of any."""
    api = _loaded_api()
    if api is not None:
        span = api.get_current_span().get_span_context()
        if span.is_valid:
            return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"
    return _entered.get()


def _loaded_api() -> Any:
    """Return OpenTelemetry's API where this process has loaded it; None also while another thread is loading it."""
    api = sys.modules.get(_API)
    return api if hasattr(api, "__all__") else None  # which is the last that it sets


def enter(text: str | None) -> None:
    """Make this the current span of this context (``contextvars``), unless it is in one of OpenTelemetry."""
    _entered.set(text)


def attempt_context(trace: str, fence: int) -> Context:
    """Return a context whose current span is that of the attempt of this fence; ``trace``: that of its job's
    submission.

    It is so for OpenTelemetry, too, where that is installed: user code finds the span by
    ``opentelemetry.trace.get_current_span()``, and spans of its own are below it. The node makes the span itself when
    the attempt is recorded, because it knows how that ended, whatever becomes of this process."""
    context = copy_context()
    context.run(_enter_attempt, of_attempt(trace, fence))
    return context


def _enter_attempt(text: str) -> None:
    _entered.set(text)
    if (context := _installed_context()) is not None:
        context.attach(_context_of(text))


def use_tracer(tracer: Any) -> None:
    """Have submissions of this context make their spans by this tracer of OpenTelemetry, instead of the process's."""
    _tracer.set(tracer)


@contextmanager
def submission_span(type_: str | None) -> Iterator[None]:
    """Make a span of a submission, where this process uses OpenTelemetry. Its jobs are in that span's trace. ``type_``:
    the type of all jobs; None: each has its own."""
    api = _loaded_api()
    if api is None:
        yield
        return
    tracer = _tracer.get() or api.get_tracer("spinney")
    inside = api.get_current_span().get_span_context().is_valid
    entered = _entered.get()
    context = None if inside or entered is None else _context_of(entered)
    # Without the exception's message and traceback, because they quote parameters, which may be private.
    with tracer.start_as_current_span(
        f"submit {type_ or 'jobs'}",
        context,
        kind=api.SpanKind.PRODUCER,
        attributes={} if type_ is None else {"spinney.job.type": type_},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except BaseException as error:
            span.set_status(api.StatusCode.ERROR, type(error).__name__)
            raise


@cache
def _installed_context() -> Any:
    """Return the module ``opentelemetry.context``; None where it is not installed, which is looked for once, because
    that takes 20 times as long as the rest of ``attempt_context``."""
    try:
        from opentelemetry import context
    except ImportError:
        return None
    return context


def _context_of(text: str) -> Any:
    from opentelemetry import trace

    trace_id, span_id, flags = ids(text)
    span = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
    return trace.set_span_in_context(trace.NonRecordingSpan(span))
