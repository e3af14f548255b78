"""Jobs, their attempts and their records become spans of the trace in which a job was submitted.

``traceparents``  the rules of W3C Trace Context, and the spans' ids
``current``       the span that a thread or task is in, with or without OpenTelemetry
``otlp``          spans sent to a collector; it is loaded only where a setting names one

A job keeps the ``traceparent`` of its submission. The span of an attempt has an id that follows from the trace and the
attempt's fence. So the worker can make it the current span of user code, and the node, which alone knows how the
attempt ended, can send it, without a message between the two. Spans are sent in the background and dropped when the
collector does not answer: no job waits for them.

Specified by ``tests/tracing``, ``tests/node/test_traces.py`` (a node's spans) and
``tests/server/test_instrumentation.py`` (a server's).
"""
