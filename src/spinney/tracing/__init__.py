"""Traces: jobs, their attempts and their records as spans of the trace in which a job was submitted.

``traceparents`` the rules of W3C Trace Context, and the spans' ids · ``current`` the span that a process is in, with or
without OpenTelemetry · ``otlp`` sends spans to a collector, and is loaded only where that is asked for.

A job keeps the ``traceparent`` of its submission. The span of an attempt has an id that follows from the trace and the
attempt's fence. So the worker can make it the current span of user code, and the node, which alone knows how the
attempt ended, can send it, without a message between the two."""
