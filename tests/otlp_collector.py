"""A collector of traces: a real HTTP server that takes OTLP."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """``address`` is for settings; ``spans`` is what has come."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.requests: list[ExportTraceServiceRequest] = []

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]

    def named(self, name: str) -> Span:
        """Return the one span of this name."""
        (span,) = [span for span in self.spans() if span.name == name]
        return span


def attributes(span: Span) -> dict[str, Any]:
    values = {each.key: each.value for each in span.attributes}
    return {key: getattr(value, value.WhichOneof("value") or "") for key, value in values.items()}


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            collector.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Not to the test's output."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}/v1/traces")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
