"""What a server records of its requests, for its log, Prometheus and collectors of traces.

``instrumentation``  a log line, a metric and a span for each request
``counters``         metrics of what happens beside requests
``request_spans``    what measuring needs of a trace, without OpenTelemetry
``tracing``          spans sent to an OTLP receiver

Specified by ``tests/server/test_instrumentation.py``.
"""
