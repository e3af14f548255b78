"""The sending of spans to a collector that does not answer."""

import socket
import time

import pytest

from spinney.tracing import otlp

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BATCH = 512
"""The most spans of one request, by default."""


def test_the_end_waits_for_one_time_limit_and_not_for_that_of_each_batch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a collector that takes connections and never answers, and spans of several batches, when the sender is
    closed, then it has given up after the time limit."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setattr(otlp, "TIMEOUT_S", 25)
        collector = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1/traces"
        sender = otlp.SpanSender(collector, "oak")
        for _ in range(3 * BATCH):
            sender.send("work", traceparent=TRACE, parent=TRACE, begun_us=1, ended_us=2, attributes={})
        monkeypatch.setattr(otlp, "TIMEOUT_S", 0.1)
        begun_s = time.monotonic()
        sender.close()
        assert time.monotonic() - begun_s < 20
    assert "did not take them" in caplog.text
